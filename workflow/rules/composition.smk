# Compositional entailment: candidates, filter, composites, scores (paper §4.4, Table 6). Elicitation runs only when it is asked for
# by name: `snakemake -- data/composition/candidates.csv` with a key in the environment, then `subspaces composition review`.


localrules:
    elicit_candidates,
    parse_candidates,


rule elicit_candidates:
    output:
        "data/composition/answers.jsonl",
    log:
        "logs/composition/elicit.log",
    conda:
        "../../environment.yml"
    params:
        settings=str(PARAMS_FILE),
    shell:
        "subspaces composition elicit --settings {params.settings} --out {output} > {log} 2>&1"


rule parse_candidates:
    input:
        "data/composition/answers.jsonl",
    output:
        candidates="data/composition/candidates.csv",
        rejects="data/composition/rejects.csv",
    log:
        "logs/composition/parse.log",
    conda:
        "../../environment.yml"
    shell:
        "subspaces composition parse {input} --out {output.candidates} --rejects {output.rejects} > {log} 2>&1"


rule build_composition:
    input:
        made_from(f"{composition.SET}.json"),
        key=key(f"{composition.SET}.json"),
    output:
        multiext(composition.SET, ".json", ".csv"),
    log:
        "logs/composition/build.log",
    conda:
        "../../environment.yml"
    resources:
        **slurm("evaluation"),
        mem_mb=6000,
    shell:
        "subspaces make {output} > {log} 2>&1"


rule evaluate_composition:
    input:
        made_from(composition.EVALUATION),
        key=key(composition.EVALUATION),
    output:
        composition.EVALUATION,
    log:
        "logs/composition/{row}/seed-{seed}.log",
    conda:
        "../../environment.yml"
    resources:
        **slurm("evaluation"),
        mem_mb=text_memory,
    shell:
        "subspaces make {output} > {log} 2>&1"
