# From SNLI's files to judged models of textual entailment (paper §4.3).


rule build_snli:
    input:
        key=lambda wildcards: stamp(RECIPES.snli_data()),
        source=lambda wildcards: made_from(RECIPES.snli_data()),
    output:
        pairs="data/snli.parquet",
        record="data/snli.json",
    log:
        "logs/snli/build.log",
    conda:
        "../../environment.yml"
    resources:
        **asks("other"),
        mem_mb=4000,
    params:
        scale=PARAMS.scale,
    shell:
        "subspaces --scale {params.scale} snli build > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"


rule train_snli:
    input:
        key=lambda wildcards: stamp(RECIPES.snli_model(*snli_job_of(wildcards))),
        data=lambda wildcards: needs(
            RECIPES.snli_model(*snli_job_of(wildcards)),
            [
                "data/snli.parquet",
                *(
                    one.output
                    for one in RECIPES.snli_model(*snli_job_of(wildcards)).inputs
                ),
            ],
            wildcards,
        ),
    output:
        weights=f"{SNLI}/weights.safetensors",
        tokenizer=f"{SNLI}/tokenizer.json",
        history=f"{SNLI}/history.csv",
        timing=f"{SNLI}/timing.json",
        settings=f"{SNLI}/settings.json",
    log:
        "logs/snli/{row}/{ways}way/seed-{seed}.train.log",
    conda:
        "../../environment.yml"
    threads: PARAMS.job_threads
    resources:
        **asks("training"),
        mem_mb=snli_memory,
    params:
        scale=PARAMS.scale,
    shell:
        "subspaces --scale {params.scale} snli train {wildcards.row} {wildcards.ways} {wildcards.seed} --threads {threads}"
        " 2>&1 | tee {log} >&2; exit ${{PIPESTATUS[0]}}"


rule evaluate_snli:
    input:
        key=lambda wildcards: stamp(RECIPES.snli_evaluation(*snli_job_of(wildcards))),
        data=lambda wildcards: needs(
            RECIPES.snli_evaluation(*snli_job_of(wildcards)),
            [
                f"{SNLI}/settings.json",
                f"{SNLI}/weights.safetensors",
                f"{SNLI}/tokenizer.json",
                f"{SNLI}/history.csv",
                f"{SNLI}/timing.json",
                "data/snli.parquet",
            ],
            wildcards,
        ),
    output:
        "results/evaluations/snli/{row}/{ways}way/seed-{seed}.json",
    log:
        "logs/snli/{row}/{ways}way/seed-{seed}.evaluate.log",
    conda:
        "../../environment.yml"
    threads: PARAMS.job_threads
    resources:
        **asks("evaluation"),
        mem_mb=snli_memory,
    params:
        scale=PARAMS.scale,
    shell:
        "subspaces --scale {params.scale} snli evaluate {wildcards.row} {wildcards.ways} {wildcards.seed} --threads {threads}"
        " > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"
