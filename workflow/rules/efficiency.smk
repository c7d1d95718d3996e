# Captions, shards, indexes, and what is measured on them (paper §4.5, §4.6, Tables 7 and 8).


rule build_captions:
    input:
        made_from(f"{CAPTIONS}.json"),
        key=key(f"{CAPTIONS}.json"),
    output:
        multiext(CAPTIONS, ".json", ".txt"),
    log:
        "logs/efficiency/captions.log",
    conda:
        "../../environment.yml"
    resources:
        **slurm("other"),
        mem_mb=4000,
    shell:
        "subspaces make {output} > {log} 2>&1"


rule encode_shard:
    input:
        made_from(efficiency.SHARD),
        key=key(efficiency.SHARD),
    output:
        efficiency.SHARD,
    log:
        "logs/efficiency/{model}/shard-{shard}.log",
    wildcard_constraints:
        shard=r"\d+",
    conda:
        "../../environment.yml"
    threads: PARAMS.job_threads
    resources:
        **slurm("evaluation"),
        mem_mb=3000,
    shell:
        "subspaces make {output} --threads {threads} 2>&1 | tee {log} >&2"


rule build_index:
    input:
        made_from(efficiency.INDEX),
        key=key(efficiency.INDEX),
    output:
        efficiency.INDEX,
    log:
        "logs/efficiency/{model}/{kind}.log",
    wildcard_constraints:
        kind="|".join(PARAMS.retrieval.kinds),
    conda:
        "../../environment.yml"
    threads: PARAMS.job_threads
    resources:
        **slurm("evaluation"),
        mem_mb=10000,
    shell:
        "subspaces make {output} --threads {threads} > {log} 2>&1"


rule measure_latency:
    input:
        made_from(efficiency.LATENCY, f"{TEXT_MODEL}/weights.safetensors"),
        key=key(efficiency.LATENCY),
    output:
        efficiency.LATENCY,
    log:
        "logs/efficiency/latency.log",
    conda:
        "../../environment.yml"
    # nothing else runs beside a measurement; it uses one core, so that machines can be compared
    threads: whole_machine
    resources:
        **slurm("evaluation"),
        mem_mb=10000,
    shell:
        "subspaces make {output} --threads 1 > {log} 2>&1"


rule measure_encoding:
    input:
        made_from(efficiency.ENCODING),
        key=key(efficiency.ENCODING),
    output:
        efficiency.ENCODING,
    log:
        "logs/efficiency/encoding.log",
    conda:
        "../../environment.yml"
    threads: whole_machine
    resources:
        **slurm("evaluation"),
        mem_mb=4000,
    params:
        threads=PARAMS.job_threads,
    shell:
        "subspaces make {output} --threads {params.threads} > {log} 2>&1"


rule answer_queries:
    input:
        made_from(efficiency.QUERIES, f"{TEXT_MODEL}/weights.safetensors"),
        key=key(efficiency.QUERIES),
    output:
        efficiency.QUERIES,
    log:
        "logs/efficiency/queries.log",
    conda:
        "../../environment.yml"
    threads: PARAMS.job_threads
    resources:
        **slurm("evaluation"),
        mem_mb=6000,
    shell:
        "subspaces make {output} --threads {threads} > {log} 2>&1"


rule measure_compression:
    input:
        made_from(
            efficiency.COMPRESSION,
            lambda wildcards: (
                f"{HIERARCHY.format(pos='nouns')}.npz"
                if wildcards.part == "wordnet"
                else f"{SNLI}.parquet"
            ),
        ),
        key=key(efficiency.COMPRESSION),
    output:
        efficiency.COMPRESSION,
    log:
        "logs/efficiency/compression-{part}.log",
    wildcard_constraints:
        part="|".join(efficiency.PARTS),
    conda:
        "../../environment.yml"
    threads: PARAMS.job_threads
    resources:
        **slurm("evaluation"),
        mem_mb=8000,
    shell:
        "subspaces make {output} --threads {threads} > {log} 2>&1"
