"""The whole reproduction as one graph. `snakemake --cores 2 -- results/tables/reconstruction.tex`, or any other output by name.

Parameters come from params.yaml beside this file, checked by type; `--config scale=quick` chooses another scale,
`--directory runs/quick` another place for everything that is made. What has to be made is decided by content: see subspaces.keys.
"""


include: "workflow/rules/common.smk"


report: "workflow/report/workflow.rst"


wildcard_constraints:
    pos="|".join(POS),
    coverage="|".join(map(str, COVERAGES)),
    ways="2|3",
    row="[^/]+",
    seed=r"\d+",
    table="|".join(registry.tables()),


include: "workflow/rules/sources.smk"
include: "workflow/rules/wordnet.smk"
include: "workflow/rules/hyperlex.smk"
include: "workflow/rules/link_prediction.smk"
include: "workflow/rules/snli.smk"
include: "workflow/rules/composition.smk"
include: "workflow/rules/retrieval.smk"
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
        "results/report.html",
        # also those that no number of the paper asks for
        [RECIPES.hyperlex_evaluation(*job).output for job in RECIPES.hyperlex_jobs],


# `--retries` is for training, which goes on from its checkpoint; anything else would only fail once more
for one in workflow.rules:
    if not one.name.startswith("train_"):
        one.restart_times = 0
