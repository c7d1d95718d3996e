# HyperLex, zero-shot from noun models (paper §4.1, Table 3); only the Gaussians are trained for it.


rule train_gaussians:
    input:
        made_from(f"{hyperlex.MODEL}/settings.json"),
        key=key(f"{hyperlex.MODEL}/settings.json"),
    output:
        model_files(hyperlex),
    log:
        "logs/hyperlex/gaussians/seed-{seed}.train.log",
    conda:
        "../../environment.yml"
    resources:
        **slurm("training"),
        mem_mb=3000,
    shell:
        "subspaces make {output} --threads {threads} 2>&1 | tee {log} >&2"


rule evaluate_hyperlex:
    input:
        made_from(hyperlex.EVALUATION, f"{HIERARCHY.format(pos='nouns')}.npz"),
        key=key(hyperlex.EVALUATION),
    output:
        hyperlex.EVALUATION,
    log:
        "logs/hyperlex/{row}/seed-{seed}.evaluate.log",
    conda:
        "../../environment.yml"
    threads: wordnet_threads
    resources:
        **slurm("evaluation"),
        mem_mb=wordnet_memory(1.5),
    shell:
        "subspaces make {output} --threads {threads} > {log} 2>&1"
