# Captions, shards, indexes, and what is measured on them (paper §4.5, §4.6).


rule build_captions:
    input:
        key=lambda wildcards: stamp(RECIPES.captions()),
        source=lambda wildcards: made_from(RECIPES.captions()),
    output:
        documents="data/captions.txt",
        record="data/captions.json",
    log:
        "logs/retrieval/captions.log",
    conda:
        "../../environment.yml"
    resources:
        **asks("other"),
        mem_mb=4000,
    params:
        scale=PARAMS.scale,
    shell:
        "subspaces --scale {params.scale} retrieval captions > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"


rule encode_shard:
    input:
        key=lambda wildcards: stamp(RECIPES.shard(int(wildcards.shard))),
        data=lambda wildcards: needs(
            RECIPES.shard(int(wildcards.shard)),
            ["data/captions.txt", "data/captions.json", *RETRIEVAL_MODEL],
        ),
    output:
        f"data/retrieval/{PARAMS.retrieval.model}/shard-{{shard}}.json",
    log:
        "logs/retrieval/shard-{shard}.log",
    wildcard_constraints:
        shard=r"\d+",
    conda:
        "../../environment.yml"
    threads: PARAMS.job_threads
    resources:
        **asks("evaluation"),
        mem_mb=3000,
    params:
        scale=PARAMS.scale,
    shell:
        "subspaces --scale {params.scale} retrieval shard {wildcards.shard} --threads {threads} 2>&1 | tee {log} >&2; exit ${{PIPESTATUS[0]}}"


rule build_index:
    input:
        key=lambda wildcards: stamp(RECIPES.index(wildcards.kind)),
        shards=lambda wildcards: made_from(RECIPES.index(wildcards.kind)),
    output:
        f"data/retrieval/{PARAMS.retrieval.model}/{{kind}}.json",
    log:
        "logs/retrieval/{kind}.log",
    wildcard_constraints:
        kind="|".join(PARAMS.retrieval.kinds),
    conda:
        "../../environment.yml"
    threads: PARAMS.job_threads
    resources:
        **asks("evaluation"),
        mem_mb=10000,
    params:
        scale=PARAMS.scale,
    shell:
        "subspaces --scale {params.scale} retrieval index {wildcards.kind} --threads {threads} > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"


rule measure_latency:
    input:
        key=lambda wildcards: [
            stamp(one)
            for one in (RECIPES.latency, *map(RECIPES.latency_row, LATENCY_ROWS))
        ],
        data=lambda wildcards: needs(
            RECIPES.latency,
            [*(one.output for one in RECIPES.latency.inputs), *RETRIEVAL_MODEL],
        ),
    output:
        expand(
            "results/evaluations/retrieval_latency/{row}.json",
            row=["all", *LATENCY_ROWS],
        ),
    log:
        "logs/retrieval/latency.log",
    conda:
        "../../environment.yml"
    # nothing else runs beside a measurement; it uses one core of them, so that machines can be compared
    threads: whole_machine
    resources:
        **asks("evaluation"),
        mem_mb=10000,
    params:
        scale=PARAMS.scale,
    shell:
        "subspaces --scale {params.scale} retrieval latency --threads 1 > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"


rule measure_encoding:
    input:
        key=lambda wildcards: [
            stamp(one)
            for one in (RECIPES.encoding, *map(RECIPES.encoding_row, ENCODING_ROWS))
        ],
        data=lambda wildcards: needs(
            RECIPES.encoding,
            ["data/captions.txt", *(one.output for one in RECIPES.encoding.inputs)],
        ),
    output:
        expand(
            "results/evaluations/encoding_time/{row}.json",
            row=["all", *ENCODING_ROWS],
        ),
    log:
        "logs/retrieval/encoding.log",
    conda:
        "../../environment.yml"
    threads: whole_machine
    resources:
        **asks("evaluation"),
        mem_mb=4000,
    params:
        scale=PARAMS.scale,
        threads=PARAMS.job_threads,
    shell:
        "subspaces --scale {params.scale} retrieval encoding --threads {params.threads} > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"


rule answer_queries:
    input:
        key=lambda wildcards: stamp(RECIPES.found),
        data=lambda wildcards: needs(
            RECIPES.found,
            [*(one.output for one in RECIPES.found.inputs), *RETRIEVAL_MODEL],
        ),
    output:
        "results/evaluations/retrieval_queries.json",
    log:
        "logs/retrieval/queries.log",
    conda:
        "../../environment.yml"
    threads: PARAMS.job_threads
    resources:
        **asks("evaluation"),
        mem_mb=6000,
    params:
        scale=PARAMS.scale,
    shell:
        "subspaces --scale {params.scale} retrieval queries --threads {threads} > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"


rule measure_compression:
    input:
        key=lambda wildcards: stamp(RECIPES.compression(wildcards.part)),
        data=lambda wildcards: needs(
            RECIPES.compression(wildcards.part),
            [
                *(one.output for one in RECIPES.compression(wildcards.part).inputs),
                *(
                    ["data/wordnet/nouns.npz"]
                    if wildcards.part == "wordnet"
                    else ["data/snli.parquet", *RETRIEVAL_MODEL]
                ),
            ],
        ),
    output:
        "results/evaluations/compression/{part}.json",
    log:
        "logs/retrieval/compression-{part}.log",
    wildcard_constraints:
        part="wordnet|snli",
    conda:
        "../../environment.yml"
    threads: PARAMS.job_threads
    resources:
        **asks("evaluation"),
        mem_mb=8000,
    params:
        scale=PARAMS.scale,
    shell:
        "subspaces --scale {params.scale} retrieval compression {wildcards.part} --threads {threads} > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"
