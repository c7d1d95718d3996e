# Records of trained models, numbers, tables, figures and the page.

from subspaces.pipeline import report as outputs
from subspaces.pipeline.models import RECORD
from subspaces.report.figures import FIGURES
from subspaces.report.layouts import LAYOUTS
from subspaces.report.numbers import FRAME, METRICS, NUMBERS
from subspaces.report.own_tables import OWN_TABLES


localrules:
    record_models,
    check_bounds,
    write_frame,
    write_table,
    draw_figure,
    write_page,


rule record_models:
    input:
        made_from(RECORD),
        key=key(RECORD),
    output:
        RECORD,
    log:
        "logs/models/{experiment}/{row}/{condition}.log",
    conda:
        "../../environment.yml"
    shell:
        "subspaces make {output} > {log} 2>&1"


rule check_bounds:
    input:
        key=key(outputs.BOUNDS),
    output:
        outputs.BOUNDS,
    log:
        "logs/bounds.log",
    conda:
        "../../environment.yml"
    shell:
        "subspaces make {output} > {log} 2>&1"


# one rule per table, because its numbers are its outputs
for name in registry.tables():

    rule:
        name:
            f"write_{name}_numbers"
        input:
            made_from(NUMBERS.format(table=name)),
            key=key(NUMBERS.format(table=name)),
        output:
            NUMBERS.format(table=name),
            [METRICS.format(id=number.id) for number in registry.of_table(name)],
        log:
            f"logs/numbers/{name}.log",
        localrule: True
        conda:
            "../../environment.yml"
        shell:
            "subspaces make {output} > {log} 2>&1"


rule write_frame:
    input:
        made_from(FRAME),
        key=key(FRAME),
    output:
        FRAME,
    log:
        "logs/numbers/frame.log",
    conda:
        "../../environment.yml"
    shell:
        "subspaces make {output} > {log} 2>&1"


rule write_table:
    input:
        made_from(outputs.TABLE),
        key=key(outputs.TABLE),
    output:
        tex=outputs.TABLE,
        md=report(
            outputs.TABLE.replace(".tex", ".md"),
            caption="../report/table.rst",
            category="Tables",
            labels={"table": "{name}"},
        ),
    log:
        "logs/tables/{name}.log",
    wildcard_constraints:
        name="|".join([*LAYOUTS, *OWN_TABLES]),
    conda:
        "../../environment.yml"
    params:
        title=lambda wildcards: (
            "Table {0.number}: {0.caption}".format(LAYOUTS[wildcards.name])
            if wildcards.name in LAYOUTS
            else wildcards.name.replace("_", " ")
        ),
    shell:
        "subspaces make {output.tex} > {log} 2>&1"


rule draw_figure:
    input:
        made_from(outputs.FIGURE),
        key=key(outputs.FIGURE),
    output:
        png=report(
            outputs.FIGURE,
            caption="../report/figure.rst",
            category="Figures",
            labels={"figure": "{name}"},
        ),
        pdf=outputs.FIGURE.replace(".png", ".pdf"),
    log:
        "logs/figures/{name}.log",
    wildcard_constraints:
        name="|".join(FIGURES),
    conda:
        "../../environment.yml"
    params:
        title=lambda wildcards: FIGURES[wildcards.name].caption,
    shell:
        "subspaces make {output.png} > {log} 2>&1"


rule write_page:
    input:
        made_from(outputs.PAGE),
        key=key(outputs.PAGE),
    output:
        report(
            outputs.PAGE,
            caption="../report/page.rst",
            category="Page",
            labels={"page": "the whole reproduction"},
        ),
    log:
        "logs/page.log",
    conda:
        "../../environment.yml"
    shell:
        "subspaces make {output} > {log} 2>&1"
