"""The whole reproduction as one graph. `snakemake --cores 2 -- results/tables/reconstruction.tex`, or any other output by name.

Parameters come from params.yaml beside this file, checked by type; `--config scale=quick` chooses another scale,
`--directory runs/quick` another place for everything that is made. What has to be made is decided by content: see subspaces.keys.
"""

import os
import sys
from pathlib import Path

from subspaces.errors import UserError
from subspaces.keys import stamp
from subspaces.paper import registry
from subspaces.params import POS, load_params
from subspaces.recipes import FIGURES, Recipes
from snakemake.exceptions import WorkflowError

PARAMS_FILE = Path(workflow.basedir) / "params.yaml"
try:
    PARAMS = load_params(PARAMS_FILE, config.get("scale"))
except UserError as error:
    raise WorkflowError(str(error))
RECIPES = Recipes(PARAMS)

# jobs run the `subspaces` command of the interpreter that runs this workflow, whether or not its environment is activated
os.environ["PATH"] = os.pathsep.join(
    [str(Path(sys.executable).parent), os.environ["PATH"]]
)
os.environ["SUBSPACES_PARAMS"] = str(PARAMS_FILE)


wildcard_constraints:
    pos="|".join(POS),
    row="[^/]+",
    seed=r"\d+",
    table="|".join(registry.tables()),


include: "workflow/rules/sources.smk"
include: "workflow/rules/wordnet.smk"
include: "workflow/rules/paper.smk"


localrules:
    all,


rule all:
    default_target: True
    input:
        expand("results/numbers/{id}.json", id=registry.numbers()),
        expand(
            "results/tables/{name}.{kind}",
            name=RECIPES.table_names,
            kind=["tex", "md"],
        ),
        expand("figures/{name}.{kind}", name=FIGURES, kind=["pdf", "png"]),
