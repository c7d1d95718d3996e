# From WordNet's files to evaluated models of reconstruction (paper §4.1, Table 2).


rule build_hierarchy:
    input:
        made_from(f"{HIERARCHY}.json"),
        key=key(f"{HIERARCHY}.json"),
    output:
        multiext(HIERARCHY, ".json", ".npz"),
    log:
        "logs/wordnet/{pos}.log",
    conda:
        "../../environment.yml"
    resources:
        **slurm("other"),
        mem_mb=4000,
    shell:
        "subspaces make {output} > {log} 2>&1"


rule train_reconstruction:
    input:
        made_from(f"{reconstruction.MODEL}/settings.json"),
        key=key(f"{reconstruction.MODEL}/settings.json"),
    output:
        model_files(reconstruction),
    log:
        "logs/reconstruction/{row}/{pos}/seed-{seed}.train.log",
    conda:
        "../../environment.yml"
    threads: wordnet_threads
    resources:
        **slurm("training", gpu=is_subspace),
        mem_mb=wordnet_memory(3.6),
    shell:
        "subspaces make {output} --threads {threads} 2>&1 | tee {log} >&2"


rule evaluate_reconstruction:
    input:
        made_from(reconstruction.EVALUATION, f"{HIERARCHY}.npz"),
        key=key(reconstruction.EVALUATION),
    output:
        reconstruction.EVALUATION,
    log:
        "logs/reconstruction/{row}/{pos}/seed-{seed}.evaluate.log",
    conda:
        "../../environment.yml"
    threads: wordnet_threads
    resources:
        **slurm("evaluation"),
        mem_mb=wordnet_memory(2.2),
    shell:
        "subspaces make {output} --threads {threads} > {log} 2>&1"


rule list_ranks:
    input:
        made_from(reconstruction.RANKS, f"{HIERARCHY}.npz"),
        key=key(reconstruction.RANKS),
    output:
        reconstruction.RANKS,
    log:
        "logs/reconstruction/{row}/{pos}/seed-{seed}.ranks.log",
    conda:
        "../../environment.yml"
    threads: wordnet_threads
    resources:
        **slurm("evaluation"),
        mem_mb=wordnet_memory(1.5),
    shell:
        "subspaces make {output} --threads {threads} > {log} 2>&1"
