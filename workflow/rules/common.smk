# The project, and the few functions that the rules share.

import sys
from functools import cache
from pathlib import Path

from snakemake.exceptions import WorkflowError

from subspaces.errors import UserError
from subspaces.experiments.composition import experiment as composition
from subspaces.experiments.compositional_retrieval import (
    experiment as compositional_retrieval,
)
from subspaces.experiments.data import CAPTIONS, HIERARCHY, SNLI, SPLIT
from subspaces.experiments.efficiency import experiment as efficiency
from subspaces.experiments.hyperlex import experiment as hyperlex
from subspaces.experiments.link_prediction import experiment as link_prediction
from subspaces.experiments.reconstruction import experiment as reconstruction
from subspaces.experiments.snli import experiment as snli
from subspaces.pipeline.artefact import no_later_than_now, stamp
from subspaces.pipeline.project import Project
from subspaces.report import registry
from subspaces.settings import COVERAGES, POS

PARAMS_FILE = Path(workflow.basedir) / "params.yaml"
try:
    PROJECT = Project.open(PARAMS_FILE, config.get("scale"))
    ARTEFACTS = PROJECT.artefacts
except UserError as error:
    raise WorkflowError(str(error))
PARAMS = PROJECT.params
TEXT_MODEL = Path(PROJECT.experiment("efficiency").text_model.output).parent

# once, before Snakemake looks at the folder; the jobs that it starts find the key files
if workflow.is_main_process:
    no_later_than_now()
    for artefact in ARTEFACTS.values():
        stamp(artefact)

# jobs run the `subspaces` command of the interpreter that runs this workflow, whether or not its environment is activated
shell.prefix(
    f"export PATH='{Path(sys.executable).parent}':$PATH"
    f" SUBSPACES_PARAMS='{PARAMS_FILE}' SUBSPACES_SCALE={PARAMS.scale}; "
)


def key(output):
    """The key file of an output: new when the output is stale. Content decides, not clocks, so all other inputs are `ancient`."""
    return f".keys/{output}"


@cache
def is_forced():
    """Is anything to be run whether or not it is current?"""
    dag = workflow.dag_settings
    return bool(dag.forceall or dag.forcerun or dag.forcetargets)


@cache
def is_whole(output):
    """All files of an artefact are there, and it is current."""
    artefact = ARTEFACTS[output]
    return artefact.is_built() and all(Path(file).exists() for file in artefact.beside)


@cache
def files_of(output):
    """The files of an artefact as inputs. They are `ancient` unless it is stale: Snakemake does not run what depends on ancient files
    when it makes them anew. Of results, only the file with the key is read."""
    artefact = ARTEFACTS[output]
    beside = () if output.startswith(("results/", "figures/")) else artefact.beside
    files = (artefact.output, *beside)
    return files if artefact.is_stale() else [ancient(file) for file in files]


def made_from(template, *data):
    """The files that an output is made from; `data`: further ones, in which its inputs were made.

    What is current needs no inputs that are absent. A clone without models and data would make them for every row as soon as one row
    needs them, because Snakemake runs what depends on an absent file.
    """

    def files(wildcards):
        artefact = ARTEFACTS[template.format(**wildcards)]
        found = [file for source in artefact.inputs for file in files_of(source.output)]
        found += [
            ancient(file(wildcards) if callable(file) else file.format(**wildcards))
            for file in data
        ]
        if not is_forced() and is_whole(artefact.output):
            found = [file for file in found if Path(file).exists()]
        return found

    return files


def model_files(experiment):
    """All files of a trained model, as outputs of its training or inputs of its evaluation."""
    return expand(
        f"{experiment.MODEL}/{{file}}", file=experiment.FILES, allow_missing=True
    )


# --- what a job asks of the machine or of SLURM; nothing here changes what is computed ------------------------------------


def geometry(wildcards):
    """The geometry of a WordNet row."""
    if hasattr(wildcards, "coverage"):
        return PARAMS.link_prediction.models[wildcards.row]
    return PARAMS.reconstruction.models.get(
        getattr(wildcards, "row", None), PARAMS.hyperlex.gaussian
    )


def wordnet_threads(wildcards):
    """Small vectors gain nothing from a second thread; two such jobs side by side do."""
    return PARAMS.job_threads if geometry(wildcards).geometry == "subspace" else 1


def wordnet_memory(copies):
    """Megabytes for some copies of a model's parameters, on the whole hierarchy."""

    def megabytes(wildcards):
        model = geometry(wildcards)
        columns = (model.vectors or model.dim) if model.geometry == "subspace" else 1
        pos = getattr(wildcards, "pos", "nouns")
        nodes = registry.claims()[f"wordnet-{pos.removesuffix('s')}-nodes"]
        return 1500 + int(copies * nodes * model.dim * columns * 4 / 2**20)

    return megabytes


def text_memory(wildcards):
    """Megabytes of a sentence model's weights, gradients and moments, and of one micro-batch."""
    ways = snli.WAYS[getattr(wildcards, "ways", "2way")]
    return PARAMS.snli.job(wildcards.row, ways, PARAMS.scale).mem_mb


def whole_machine(wildcards):
    """Every core, for what measures time; on SLURM, where the number is unknown, those of a training job."""
    return workflow.resource_settings.cores or PARAMS.job_threads


def site(name):
    return str(config.get(name) or getattr(PARAMS.cluster, name) or "")


def slurm(kind, gpu=lambda wildcards: False):
    """Time limit, partition, account and GPUs of a job (training, evaluation, other); runs without SLURM ignore them."""
    gpus = getattr(PARAMS.cluster.gpus, PARAMS.scale)

    def gpus_of(wildcards):
        return gpus if gpu(wildcards) else 0

    def partition(wildcards):
        special = gpus_of(wildcards) and site("gpu_partition")
        return special or site("partition")

    return {
        "runtime": getattr(getattr(PARAMS.cluster.minutes, kind), PARAMS.scale),
        "gpu": gpus_of,
        "slurm_partition": partition,
        "slurm_account": site("account"),
    }


def is_subspace(wildcards):
    return geometry(wildcards).geometry == "subspace"
