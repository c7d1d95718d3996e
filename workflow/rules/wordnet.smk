# From WordNet's files to evaluated models of the reconstruction task (paper §4.1).
# Inputs that a key already covers are `ancient`: content decides, not clocks.

_TRAIN = RECIPES.reconstruction_model
_EVALUATE = RECIPES.reconstruction_evaluation
_RANKS = RECIPES.reconstruction_ranks
_MODEL = "models/reconstruction/{row}/{pos}/seed-{seed}"


def _job(wildcards):
    return wildcards.row, wildcards.pos, int(wildcards.seed)


def _memory(wildcards, copies):
    """Megabytes for `copies` of one model's parameters, from the largest hierarchy it may be trained on."""
    model = PARAMS.reconstruction.models[wildcards.row]
    columns = (
        (getattr(model, "vectors", 0) or model.dim)
        if model.geometry == "subspace"
        else 1
    )
    nodes = registry.claims()[f"wordnet-{wildcards.pos[:-1]}-nodes"]
    return 1500 + int(copies * nodes * model.dim * columns * 4 / 2**20)


rule build_hierarchy:
    input:
        key=lambda wildcards: stamp(RECIPES.hierarchy(wildcards.pos)),
        source=ancient("data/sources/wordnet.json"),
    output:
        graph="data/wordnet/{pos}.npz",
        record="data/wordnet/{pos}.json",
    log:
        "logs/wordnet/{pos}.log",
    params:
        scale=PARAMS.scale,
    shell:
        "subspaces --scale {params.scale} wordnet build {wildcards.pos} > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"


rule train_reconstruction:
    input:
        key=lambda wildcards: stamp(_TRAIN(*_job(wildcards))),
        graph=ancient("data/wordnet/{pos}.npz"),
        record=ancient("data/wordnet/{pos}.json"),
    output:
        weights=f"{_MODEL}/weights.safetensors",
        history=f"{_MODEL}/history.csv",
        timing=f"{_MODEL}/timing.json",
        settings=f"{_MODEL}/settings.json",
    log:
        "logs/reconstruction/{row}/{pos}/seed-{seed}.train.log",
    threads: PARAMS.job_threads
    resources:
        mem_mb=lambda wildcards: _memory(wildcards, 3.6),
    params:
        scale=PARAMS.scale,
    shell:
        "subspaces --scale {params.scale} reconstruction train {wildcards.row} {wildcards.pos} {wildcards.seed} --threads {threads}"
        " 2>&1 | tee {log} >&2; exit ${{PIPESTATUS[0]}}"


rule evaluate_reconstruction:
    input:
        key=lambda wildcards: stamp(_EVALUATE(*_job(wildcards))),
        settings=ancient(f"{_MODEL}/settings.json"),
        weights=ancient(f"{_MODEL}/weights.safetensors"),
        timing=ancient(f"{_MODEL}/timing.json"),
        graph=ancient("data/wordnet/{pos}.npz"),
    output:
        "results/evaluations/reconstruction/{row}/{pos}/seed-{seed}.json",
    log:
        "logs/reconstruction/{row}/{pos}/seed-{seed}.evaluate.log",
    threads: PARAMS.job_threads
    resources:
        mem_mb=lambda wildcards: _memory(wildcards, 2.2),
    params:
        scale=PARAMS.scale,
    shell:
        "subspaces --scale {params.scale} reconstruction evaluate {wildcards.row} {wildcards.pos} {wildcards.seed} --threads {threads}"
        " 2>&1 | tee {log} >&2; exit ${{PIPESTATUS[0]}}"


rule list_ranks:
    input:
        key=lambda wildcards: stamp(_RANKS(*_job(wildcards))),
        settings=ancient(f"{_MODEL}/settings.json"),
        weights=ancient(f"{_MODEL}/weights.safetensors"),
        graph=ancient("data/wordnet/{pos}.npz"),
    output:
        "results/evaluations/reconstruction/{row}/{pos}/seed-{seed}.ranks.parquet",
    log:
        "logs/reconstruction/{row}/{pos}/seed-{seed}.ranks.log",
    threads: PARAMS.job_threads
    resources:
        mem_mb=lambda wildcards: _memory(wildcards, 1.5),
    params:
        scale=PARAMS.scale,
    shell:
        "subspaces --scale {params.scale} reconstruction ranks {wildcards.row} {wildcards.pos} {wildcards.seed} --threads {threads}"
        " > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"
