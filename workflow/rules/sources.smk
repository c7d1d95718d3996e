# Verified raw files. The record data/sources/<name>.json appears when every file of the source has its digest.
# Fetched where Snakemake runs: the nodes of a cluster often have no network.


localrules:
    fetch_source,


rule fetch_source:
    input:
        key=lambda wildcards: stamp(RECIPES.source(wildcards.name)),
    output:
        "data/sources/{name}.json",
    log:
        "logs/sources/{name}.log",
    conda:
        "../../environment.yml"
    params:
        scale=PARAMS.scale,
    shell:
        "subspaces --scale {params.scale} fetch {wildcards.name} > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"
