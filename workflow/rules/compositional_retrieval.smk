# The compositional retrieval benchmark: composed queries over Flickr30k, judged by captions that are not searched (docs/search.md).


rule evaluate_compositional_retrieval:
    input:
        made_from(compositional_retrieval.EVALUATION),
        key=key(compositional_retrieval.EVALUATION),
    output:
        compositional_retrieval.EVALUATION,
        compositional_retrieval.SEARCH,
    log:
        "logs/compositional_retrieval.log",
    conda:
        "../../environment.yml"
    threads: PARAMS.job_threads
    resources:
        **slurm("evaluation"),
        mem_mb=4000,
    shell:
        "subspaces make {output} --threads {threads} 2>&1 | tee {log} >&2"
