# From the split files to evaluated models of link prediction (paper §4.2, Table 4).


rule build_split:
    input:
        made_from(f"{SPLIT}.json"),
        key=key(f"{SPLIT}.json"),
    output:
        multiext(SPLIT, ".json", ".npz"),
    log:
        "logs/link_prediction/{coverage}.log",
    conda:
        "../../environment.yml"
    resources:
        **slurm("other"),
        mem_mb=4000,
    shell:
        "subspaces make {output} > {log} 2>&1"


rule train_link_prediction:
    input:
        made_from(f"{link_prediction.MODEL}/settings.json"),
        key=key(f"{link_prediction.MODEL}/settings.json"),
    output:
        model_files(link_prediction),
    log:
        "logs/link_prediction/{row}/{coverage}/seed-{seed}.train.log",
    conda:
        "../../environment.yml"
    threads: wordnet_threads
    resources:
        **slurm("training", gpu=is_subspace),
        mem_mb=wordnet_memory(3.8),
    shell:
        "subspaces make {output} --threads {threads} 2>&1 | tee {log} >&2"


rule evaluate_link_prediction:
    input:
        made_from(link_prediction.EVALUATION, f"{SPLIT}.npz"),
        key=key(link_prediction.EVALUATION),
    output:
        link_prediction.EVALUATION,
    log:
        "logs/link_prediction/{row}/{coverage}/seed-{seed}.evaluate.log",
    conda:
        "../../environment.yml"
    threads: wordnet_threads
    resources:
        **slurm("evaluation"),
        mem_mb=wordnet_memory(2.2),
    shell:
        "subspaces make {output} --threads {threads} > {log} 2>&1"
