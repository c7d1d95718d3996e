# Verified raw files, downloaded where Snakemake runs: compute nodes often have no network.
# The record data/sources/NAME.json appears when every file of the source has its digest.


localrules:
    fetch_source,


rule fetch_source:
    input:
        key=key("data/sources/{name}.json"),
    output:
        "data/sources/{name}.json",
    log:
        "logs/sources/{name}.log",
    conda:
        "../../environment.yml"
    shell:
        "subspaces fetch {wildcards.name} > {log} 2>&1"
