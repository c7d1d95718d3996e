# From SNLI's files to judged models of textual entailment (paper §4.3, Tables 5 and 9).


rule build_snli:
    input:
        made_from(f"{SNLI}.json"),
        key=key(f"{SNLI}.json"),
    output:
        multiext(SNLI, ".json", ".parquet"),
    log:
        "logs/snli/build.log",
    conda:
        "../../environment.yml"
    resources:
        **slurm("other"),
        mem_mb=4000,
    shell:
        "subspaces make {output} > {log} 2>&1"


rule train_snli:
    input:
        made_from(f"{snli.MODEL}/settings.json"),
        key=key(f"{snli.MODEL}/settings.json"),
    output:
        model_files(snli),
    log:
        "logs/snli/{row}/{ways}/seed-{seed}.train.log",
    conda:
        "../../environment.yml"
    threads: PARAMS.job_threads
    resources:
        **slurm("training", gpu=lambda wildcards: True),
        mem_mb=text_memory,
    shell:
        "subspaces make {output} --threads {threads} 2>&1 | tee {log} >&2"


rule evaluate_snli:
    input:
        made_from(snli.EVALUATION, f"{SNLI}.parquet"),
        key=key(snli.EVALUATION),
    output:
        snli.EVALUATION,
    log:
        "logs/snli/{row}/{ways}/seed-{seed}.evaluate.log",
    conda:
        "../../environment.yml"
    threads: PARAMS.job_threads
    resources:
        **slurm("evaluation"),
        mem_mb=text_memory,
    shell:
        "subspaces make {output} --threads {threads} > {log} 2>&1"


rule ship_model:
    input:
        made_from(f"{snli.SHIPPED}/settings.json"),
        key=key(f"{snli.SHIPPED}/settings.json"),
    output:
        expand(f"{snli.SHIPPED}/{{file}}", file=snli.SHIPPED_FILES),
    log:
        "logs/snli/ship.log",
    conda:
        "../../environment.yml"
    resources:
        **slurm("other"),
        mem_mb=2000,
    shell:
        "subspaces make {output} > {log} 2>&1"


rule:
    name:
        snli.SHIPPED
    input:
        f"{snli.SHIPPED}/settings.json",
    localrule: True
