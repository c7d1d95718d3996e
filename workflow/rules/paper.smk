# Numbers, tables and figures of the paper.


localrules:
    write_number,
    write_table,
    check_bounds,
    write_bounds_table,
    write_extra_table,
    draw_figure,
    write_page,


rule write_number:
    input:
        key=lambda wildcards: stamp(RECIPES.number(wildcards.id)),
        evaluations=lambda wildcards: made_from(RECIPES.number(wildcards.id)),
    output:
        "results/numbers/{id}.json",
    log:
        "logs/numbers/{id}.log",
    wildcard_constraints:
        id="|".join(registry.numbers()),
    conda:
        "../../environment.yml"
    params:
        scale=PARAMS.scale,
    shell:
        "subspaces --scale {params.scale} paper number {wildcards.id} > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"


rule write_table:
    input:
        key=lambda wildcards: stamp(RECIPES.table(wildcards.table)),
        numbers=lambda wildcards: made_from(RECIPES.table(wildcards.table)),
    output:
        tex="results/tables/{table}.tex",
        md=report(
            "results/tables/{table}.md",
            caption="../report/table.rst",
            category="Tables",
            labels={"table": "{table}"},
        ),
    log:
        "logs/tables/{table}.log",
    conda:
        "../../environment.yml"
    params:
        scale=PARAMS.scale,
        said=lambda wildcards: "Table {0.number}: {0.caption}".format(
            LAYOUTS[wildcards.table]
        ),
    shell:
        "subspaces --scale {params.scale} paper table {wildcards.table} > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"


rule check_bounds:
    input:
        key=lambda wildcards: stamp(RECIPES.bounds),
    output:
        "results/evaluations/soft_projectors.json",
    log:
        "logs/bounds.log",
    conda:
        "../../environment.yml"
    params:
        scale=PARAMS.scale,
    shell:
        "subspaces --scale {params.scale} paper bounds > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"


rule write_bounds_table:
    input:
        key=lambda wildcards: stamp(RECIPES.bounds_table),
        bounds=lambda wildcards: made_from(RECIPES.bounds_table),
    output:
        tex="results/tables/soft_projectors.tex",
        md=report(
            "results/tables/soft_projectors.md",
            caption="../report/bounds.rst",
            category="Tables",
            labels={"table": "soft_projectors"},
        ),
    log:
        "logs/tables/soft_projectors.log",
    conda:
        "../../environment.yml"
    params:
        scale=PARAMS.scale,
    shell:
        "subspaces --scale {params.scale} paper table soft_projectors > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"


rule write_extra_table:
    input:
        key=lambda wildcards: stamp(RECIPES.extra_table(wildcards.extra)),
        evaluations=lambda wildcards: made_from(RECIPES.extra_table(wildcards.extra)),
    output:
        tex="results/tables/{extra}.tex",
        md="results/tables/{extra}.md",
    log:
        "logs/tables/{extra}.log",
    wildcard_constraints:
        extra="|".join(EXTRA_TABLES),
    conda:
        "../../environment.yml"
    params:
        scale=PARAMS.scale,
    shell:
        "subspaces --scale {params.scale} paper table {wildcards.extra} > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"


rule draw_figure:
    input:
        key=lambda wildcards: stamp(RECIPES.figure(wildcards.figure)),
        data=lambda wildcards: made_from(RECIPES.figure(wildcards.figure)),
    output:
        pdf="figures/{figure}.pdf",
        png=report(
            "figures/{figure}.png",
            caption="../report/figure.rst",
            category="Figures",
            labels={"figure": "{figure}"},
        ),
    log:
        "logs/figures/{figure}.log",
    wildcard_constraints:
        figure="|".join(FIGURES),
    conda:
        "../../environment.yml"
    params:
        scale=PARAMS.scale,
        said=lambda wildcards: ". ".join(KNOWN[wildcards.figure][:2]),
    shell:
        "subspaces --scale {params.scale} paper figure {wildcards.figure} > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"


rule write_page:
    input:
        key=lambda wildcards: stamp(RECIPES.page),
        shown=lambda wildcards: made_from(RECIPES.page),
    output:
        report(
            "results/report.html",
            caption="../report/page.rst",
            category="Page",
            labels={"page": "the whole reproduction"},
        ),
    log:
        "logs/page.log",
    conda:
        "../../environment.yml"
    params:
        scale=PARAMS.scale,
    shell:
        "subspaces --scale {params.scale} paper page > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"
