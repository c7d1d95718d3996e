# Compositional entailment: candidates, filter, composites, scores (paper §4.4). Elicitation is asked for by name only:
# `snakemake -- data/composition/candidates.csv` with a key in the environment, then `subspaces composition review`.


localrules:
    elicit_candidates,
    parse_candidates,
    write_composition_extra,


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
        "subspaces composition elicit --settings {params.settings} --out {output} > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"


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
        "subspaces composition parse {input} --out {output.candidates} --rejects {output.rejects}"
        " > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"


rule build_composition:
    input:
        key=lambda wildcards: stamp(RECIPES.composition_set()),
        data=lambda wildcards: composition_models(),
    output:
        pairs="results/composition/elicited.csv",
        report="results/composition/elicited.json",
    log:
        "logs/composition/build.log",
    conda:
        "../../environment.yml"
    resources:
        **asks("evaluation"),
        mem_mb=6000,
    params:
        scale=PARAMS.scale,
    shell:
        "subspaces --scale {params.scale} composition build > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"


rule evaluate_composition:
    input:
        key=lambda wildcards: stamp(
            RECIPES.composition_evaluation(wildcards.row, int(wildcards.seed))
        ),
        data=lambda wildcards: needs(
            RECIPES.composition_evaluation(wildcards.row, int(wildcards.seed)),
            [
                "models/snli/{row}/2way/seed-{seed}/settings.json",
                "models/snli/{row}/2way/seed-{seed}/weights.safetensors",
                "models/snli/{row}/2way/seed-{seed}/tokenizer.json",
                "results/composition/elicited.json",
                "data/sources/composition.json",
            ],
            wildcards,
        ),
    output:
        "results/evaluations/composition/{row}/seed-{seed}.json",
    log:
        "logs/composition/{row}/seed-{seed}.log",
    conda:
        "../../environment.yml"
    resources:
        **asks("evaluation"),
        mem_mb=snli_memory,
    params:
        scale=PARAMS.scale,
    shell:
        "subspaces --scale {params.scale} composition evaluate {wildcards.row} {wildcards.seed} > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"


rule write_composition_extra:
    input:
        key=lambda wildcards: stamp(RECIPES.composition_extra),
        evaluations=lambda wildcards: made_from(RECIPES.composition_extra),
    output:
        tex="results/tables/composition_extra.tex",
        md="results/tables/composition_extra.md",
    log:
        "logs/tables/composition_extra.log",
    conda:
        "../../environment.yml"
    params:
        scale=PARAMS.scale,
    shell:
        "subspaces --scale {params.scale} composition extra > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"
