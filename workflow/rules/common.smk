# Parameters, recipes and the small functions that the rules share.

import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

from subspaces.errors import UserError
from subspaces.keys import no_later_than_now, stamp
from subspaces.paper import registry
from subspaces.paper.layouts import LAYOUTS
from subspaces.paper.page.captions import KNOWN
from subspaces.params import COVERAGES, POS, load_params
from subspaces.recipes import EXTRA_TABLES, FIGURES, Recipes
from subspaces.sources.registry import SOURCES

PARAMS_FILE = Path(workflow.basedir) / "params.yaml"
try:
    PARAMS = load_params(PARAMS_FILE, config.get("scale"))
except UserError as error:
    raise WorkflowError(str(error))
RECIPES = Recipes(PARAMS, project=Path(workflow.basedir))
# all at once and before Snakemake looks: it remembers what it saw of a folder. The jobs that it sends find the stamps there.
if workflow.is_main_process:
    no_later_than_now()
    for recipe in (*RECIPES.everything(), *map(RECIPES.source, SOURCES)):
        stamp(recipe)

MODEL = "models/reconstruction/{row}/{pos}/seed-{seed}"
LINK = "models/link_prediction/{row}/{coverage}/seed-{seed}"
SNLI = "models/snli/{row}/{ways}way/seed-{seed}"
RETRIEVAL_MODEL = [
    RECIPES.retrieval_model.output.replace("settings.json", name)
    for name in ("settings.json", "weights.safetensors", "tokenizer.json")
]
LATENCY_ROWS = RECIPES.rows_of("retrieval_latency")
ENCODING_ROWS = RECIPES.rows_of("encoding_time")
GAUSSIAN = "models/hyperlex/gaussian-50/seed-{seed}"

# jobs run the `subspaces` command of the interpreter that runs this workflow, whether or not its environment is activated
shell.prefix(
    f"set -euo pipefail; export PATH='{Path(sys.executable).parent}':$PATH SUBSPACES_PARAMS='{PARAMS_FILE}'; "
)


def forced():
    """Is a rerun asked for on the command line?"""
    asked = workflow.dag_settings
    return bool(asked and (asked.forceall or asked.forcerun or asked.forcetargets))


def needs(recipe, files, wildcards={}):
    """Input files of a job. When something that it is made from will change they are ordinary inputs, so that the job waits for it. Else they
    are `ancient`: content decides, whatever the clocks say; and what a current output was made from may be absent, as the models of a
    fresh clone are, unless a rerun is forced."""
    files = [file.format(**wildcards) for file in files]
    if recipe.will_change():
        return files
    return [
        ancient(file)
        for file in files
        if forced() or Path(file).exists() or not recipe.is_built()
    ]


def made_from(recipe):
    return needs(recipe, [one.output for one in recipe.inputs])


def job_of(wildcards):
    return wildcards.row, wildcards.pos, int(wildcards.seed)


def link_job_of(wildcards):
    return wildcards.row, int(wildcards.coverage), int(wildcards.seed)


def snli_job_of(wildcards):
    return wildcards.row, int(wildcards.ways), int(wildcards.seed)


def snli_memory(wildcards):
    """Megabytes of a model's weights, gradients and moments, and of one micro-batch."""
    return 6000 if "mpnet" in wildcards.row else 3000


def composition_models():
    """The models of the baselines that filter the set, with their weights and tokenisers."""
    recipe = RECIPES.composition_set()
    folders = [str(Path(one.output).parent) for one in recipe.inputs]
    names = ("settings.json", "weights.safetensors", "tokenizer.json")
    return needs(recipe, [f"{folder}/{name}" for folder in folders for name in names])


def model_of(wildcards):
    """The row's model; a row of HyperLex is one of reconstruction, or the Gaussians, which are small."""
    if hasattr(wildcards, "coverage"):
        return PARAMS.link_prediction.models[wildcards.row]
    return PARAMS.reconstruction.models.get(wildcards.row, PARAMS.hyperlex.gaussian)


def threads_of(wildcards):
    """Small vectors gain nothing from a second thread; two such jobs side by side do."""
    return PARAMS.job_threads if model_of(wildcards).geometry == "subspace" else 1


def memory_of(wildcards, copies):
    """Megabytes for `copies` of one model's parameters, on the whole hierarchy."""
    model = model_of(wildcards)
    columns = (model.vectors or model.dim) if model.geometry == "subspace" else 1
    nodes = registry.claims()[
        f"wordnet-{getattr(wildcards, 'pos', 'nouns')[:-1]}-nodes"
    ]
    return 1500 + int(copies * nodes * model.dim * columns * 4 / 2**20)


def whole_machine(wildcards):
    """Every core, for what measures time; on SLURM, where nobody says how many there are, those of a training job."""
    return workflow.resource_settings.cores or PARAMS.job_threads


def learns_on_gpu(wildcards):
    """Sentence encoders and subspaces do; the other geometries, and the Gaussians of HyperLex, are small vectors."""
    if not hasattr(wildcards, "row"):
        return False
    return hasattr(wildcards, "ways") or model_of(wildcards).geometry == "subspace"


def asks(kind):
    """What a job of this kind (training, evaluation, other) asks of SLURM beside memory and threads; runs without SLURM pass over it."""
    cluster = PARAMS.cluster
    site = {
        name: str(config.get(name) or getattr(cluster, name) or "")
        for name in ("partition", "gpu_partition", "account")
    }
    gpus = getattr(cluster.gpus, PARAMS.scale) if kind == "training" else 0

    def gpu(wildcards):
        return gpus if gpus and learns_on_gpu(wildcards) else 0

    def partition(wildcards):
        special = gpu(wildcards) and site["gpu_partition"]
        return special or site["partition"]

    return {
        "runtime": getattr(getattr(cluster.minutes, kind), PARAMS.scale),
        "gpu": gpu,
        "slurm_partition": partition,
        "slurm_account": site["account"],
    }


def hyperlex_files(wildcards):
    """The model, the pairs, and WordNet's files for the senses of a word."""
    recipe = RECIPES.hyperlex_evaluation(wildcards.row, int(wildcards.seed))
    model = recipe.inputs[0].output.removesuffix("settings.json")
    files = [
        f"{model}{name}"
        for name in ("settings.json", "weights.safetensors", "timing.json")
    ]
    data = [
        "data/wordnet/nouns.npz",
        "data/sources/hyperlex.json",
        "data/sources/wordnet.json",
    ]
    return needs(recipe, [*files, *data])
