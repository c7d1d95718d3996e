"""The whole reproduction as one graph. `snakemake --cores 2 -- results/tables/reconstruction.tex`, or any other output by name.

Parameters come from params.yaml beside this file; `--config scale=quick` chooses another scale, `--directory runs/quick` another
working folder. Keys decide what is rebuilt (subspaces/pipeline/artefact.py): each rule has its key file as an input.
"""


include: "workflow/rules/common.smk"


report: "workflow/report/workflow.rst"


wildcard_constraints:
    row="[^/]+",
    pos="|".join(POS),
    coverage="|".join(map(str, COVERAGES)),
    ways="|".join(snli.WAYS),
    seed=r"\d+",
    table="|".join(registry.tables()),


include: "workflow/rules/sources.smk"
include: "workflow/rules/wordnet.smk"
include: "workflow/rules/hyperlex.smk"
include: "workflow/rules/link_prediction.smk"
include: "workflow/rules/snli.smk"
include: "workflow/rules/composition.smk"
include: "workflow/rules/efficiency.smk"
include: "workflow/rules/compositional_retrieval.smk"
include: "workflow/rules/report.smk"


localrules:
    all,


rule all:
    default_target: True
    input:
        [
            file
            for artefact in PROJECT.artefacts.values()
            if artefact.output.startswith(("results/", "figures/"))
            for file in (artefact.output, *artefact.beside)
        ],


# One name per family of evaluations, for people and for DVC's stages.
for family in ("reconstruction", "hyperlex", "link_prediction", "snli", "composition"):

    rule:
        name:
            f"{family}_evaluations"
        input:
            [
                artefact.output
                for artefact in PROJECT.experiment(family).artefacts()
                if artefact.output.startswith("results/")
            ],
        localrule: True


# `--retries` is for training, which resumes from its checkpoint; any other job would only fail again
for item in workflow.rules:
    if not item.name.startswith("train_"):
        item.restart_times = 0
