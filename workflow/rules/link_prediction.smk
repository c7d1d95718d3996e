# From the split files to evaluated models of the link prediction task (paper §4.2).


rule build_split:
    input:
        key=lambda wildcards: stamp(RECIPES.split(int(wildcards.coverage))),
        source=lambda wildcards: made_from(RECIPES.split(int(wildcards.coverage))),
    output:
        split="data/link_prediction/{coverage}.npz",
        record="data/link_prediction/{coverage}.json",
    log:
        "logs/link_prediction/{coverage}.log",
    conda:
        "../../environment.yml"
    resources:
        **asks("other"),
        mem_mb=4000,
    params:
        scale=PARAMS.scale,
    shell:
        "subspaces --scale {params.scale} link-prediction build {wildcards.coverage} > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"


rule train_link_prediction:
    input:
        key=lambda wildcards: stamp(RECIPES.link_model(*link_job_of(wildcards))),
        data=lambda wildcards: needs(
            RECIPES.link_model(*link_job_of(wildcards)),
            [
                "data/link_prediction/{coverage}.npz",
                "data/link_prediction/{coverage}.json",
            ],
            wildcards,
        ),
    output:
        weights=f"{LINK}/weights.safetensors",
        history=f"{LINK}/history.csv",
        timing=f"{LINK}/timing.json",
        settings=f"{LINK}/settings.json",
    log:
        "logs/link_prediction/{row}/{coverage}/seed-{seed}.train.log",
    conda:
        "../../environment.yml"
    threads: threads_of
    resources:
        **asks("training"),
        mem_mb=lambda wildcards: memory_of(wildcards, 3.8),
    params:
        scale=PARAMS.scale,
    shell:
        "subspaces --scale {params.scale} link-prediction train {wildcards.row} {wildcards.coverage} {wildcards.seed} --threads {threads}"
        " 2>&1 | tee {log} >&2; exit ${{PIPESTATUS[0]}}"


rule evaluate_link_prediction:
    input:
        key=lambda wildcards: stamp(RECIPES.link_evaluation(*link_job_of(wildcards))),
        data=lambda wildcards: needs(
            RECIPES.link_evaluation(*link_job_of(wildcards)),
            [
                f"{LINK}/settings.json",
                f"{LINK}/weights.safetensors",
                f"{LINK}/timing.json",
                "data/link_prediction/{coverage}.npz",
            ],
            wildcards,
        ),
    output:
        "results/evaluations/link_prediction/{row}/{coverage}/seed-{seed}.json",
    log:
        "logs/link_prediction/{row}/{coverage}/seed-{seed}.evaluate.log",
    conda:
        "../../environment.yml"
    threads: threads_of
    resources:
        **asks("evaluation"),
        mem_mb=lambda wildcards: memory_of(wildcards, 2.2),
    params:
        scale=PARAMS.scale,
    shell:
        "subspaces --scale {params.scale} link-prediction evaluate {wildcards.row} {wildcards.coverage} {wildcards.seed} --threads {threads}"
        " > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"
