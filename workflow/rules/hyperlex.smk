# HyperLex, zero-shot from noun models (paper §4.1, Table 3); only the Gaussians are trained for it.


rule train_gaussians:
    input:
        key=lambda wildcards: stamp(RECIPES.gaussian_model(int(wildcards.seed))),
        data=lambda wildcards: needs(
            RECIPES.gaussian_model(int(wildcards.seed)),
            ["data/wordnet/nouns.npz", "data/wordnet/nouns.json"],
            wildcards,
        ),
    output:
        weights=f"{GAUSSIAN}/weights.safetensors",
        history=f"{GAUSSIAN}/history.csv",
        timing=f"{GAUSSIAN}/timing.json",
        settings=f"{GAUSSIAN}/settings.json",
    log:
        "logs/hyperlex/gaussian-50/seed-{seed}.train.log",
    conda:
        "../../environment.yml"
    resources:
        **asks("training"),
        mem_mb=3000,
    params:
        scale=PARAMS.scale,
    shell:
        "subspaces --scale {params.scale} hyperlex train {wildcards.seed} 2>&1 | tee {log} >&2; exit ${{PIPESTATUS[0]}}"


rule evaluate_hyperlex:
    input:
        key=lambda wildcards: stamp(
            RECIPES.hyperlex_evaluation(wildcards.row, int(wildcards.seed))
        ),
        data=hyperlex_files,
    output:
        "results/evaluations/hyperlex/{row}/seed-{seed}.json",
    log:
        "logs/hyperlex/{row}/seed-{seed}.evaluate.log",
    conda:
        "../../environment.yml"
    threads: threads_of
    resources:
        **asks("evaluation"),
        mem_mb=lambda wildcards: memory_of(wildcards, 1.5),
    params:
        scale=PARAMS.scale,
    shell:
        "subspaces --scale {params.scale} hyperlex evaluate {wildcards.row} {wildcards.seed} --threads {threads}"
        " > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"
