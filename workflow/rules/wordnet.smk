# From WordNet's files to evaluated models of the reconstruction task (paper §4.1).


rule build_hierarchy:
    input:
        key=lambda wildcards: stamp(RECIPES.hierarchy(wildcards.pos)),
        source=lambda wildcards: needs(
            RECIPES.hierarchy(wildcards.pos), ["data/sources/wordnet.json"], wildcards
        ),
    output:
        graph="data/wordnet/{pos}.npz",
        record="data/wordnet/{pos}.json",
    log:
        "logs/wordnet/{pos}.log",
    conda:
        "../../environment.yml"
    resources:
        **asks("other"),
        mem_mb=4000,
    params:
        scale=PARAMS.scale,
    shell:
        "subspaces --scale {params.scale} wordnet build {wildcards.pos} > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"


rule train_reconstruction:
    input:
        key=lambda wildcards: stamp(RECIPES.reconstruction_model(*job_of(wildcards))),
        data=lambda wildcards: needs(
            RECIPES.reconstruction_model(*job_of(wildcards)),
            ["data/wordnet/{pos}.npz", "data/wordnet/{pos}.json"],
            wildcards,
        ),
    output:
        weights=f"{MODEL}/weights.safetensors",
        history=f"{MODEL}/history.csv",
        timing=f"{MODEL}/timing.json",
        settings=f"{MODEL}/settings.json",
    log:
        "logs/reconstruction/{row}/{pos}/seed-{seed}.train.log",
    conda:
        "../../environment.yml"
    threads: threads_of
    resources:
        **asks("training"),
        mem_mb=lambda wildcards: memory_of(wildcards, 3.6),
    params:
        scale=PARAMS.scale,
    shell:
        "subspaces --scale {params.scale} reconstruction train {wildcards.row} {wildcards.pos} {wildcards.seed} --threads {threads}"
        " 2>&1 | tee {log} >&2; exit ${{PIPESTATUS[0]}}"


rule evaluate_reconstruction:
    input:
        key=lambda wildcards: stamp(
            RECIPES.reconstruction_evaluation(*job_of(wildcards))
        ),
        data=lambda wildcards: needs(
            RECIPES.reconstruction_evaluation(*job_of(wildcards)),
            [
                f"{MODEL}/settings.json",
                f"{MODEL}/weights.safetensors",
                f"{MODEL}/timing.json",
                "data/wordnet/{pos}.npz",
            ],
            wildcards,
        ),
    output:
        "results/evaluations/reconstruction/{row}/{pos}/seed-{seed}.json",
    log:
        "logs/reconstruction/{row}/{pos}/seed-{seed}.evaluate.log",
    conda:
        "../../environment.yml"
    threads: threads_of
    resources:
        **asks("evaluation"),
        mem_mb=lambda wildcards: memory_of(wildcards, 2.2),
    params:
        scale=PARAMS.scale,
    shell:
        "subspaces --scale {params.scale} reconstruction evaluate {wildcards.row} {wildcards.pos} {wildcards.seed} --threads {threads}"
        " 2>&1 | tee {log} >&2; exit ${{PIPESTATUS[0]}}"


rule list_ranks:
    input:
        key=lambda wildcards: stamp(RECIPES.reconstruction_ranks(*job_of(wildcards))),
        data=lambda wildcards: needs(
            RECIPES.reconstruction_ranks(*job_of(wildcards)),
            [
                f"{MODEL}/settings.json",
                f"{MODEL}/weights.safetensors",
                "data/wordnet/{pos}.npz",
            ],
            wildcards,
        ),
    output:
        "results/evaluations/reconstruction/{row}/{pos}/seed-{seed}.ranks.parquet",
    log:
        "logs/reconstruction/{row}/{pos}/seed-{seed}.ranks.log",
    conda:
        "../../environment.yml"
    threads: threads_of
    resources:
        **asks("evaluation"),
        mem_mb=lambda wildcards: memory_of(wildcards, 1.5),
    params:
        scale=PARAMS.scale,
    shell:
        "subspaces --scale {params.scale} reconstruction ranks {wildcards.row} {wildcards.pos} {wildcards.seed} --threads {threads}"
        " > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"
