"""Tables that the paper does not print. Each is one function from evaluations to rows of text, registered with what it is made from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from subspaces.report import registry
from subspaces.report.labels import NLI_LABELS, geometry_label
from subspaces.report.tables import escape, plain

if TYPE_CHECKING:
    from subspaces.pipeline.artefact import Artefact
    from subspaces.pipeline.project import Project

Evaluation = Mapping[str, Any]


@dataclass(frozen=True)
class OwnTable:
    """`rows` begin with a LaTeX label; the other cells are plain text."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str

    def markdown(self, key: str) -> str:
        lines = [f"<!-- key:{key} -->", f"**{self.caption}.** {self.note}", ""]
        lines += ["| | " + " | ".join(self.heads) + " |", "|---" * (len(self.heads) + 1) + "|"]
        return "\n".join([*lines, *("| " + " | ".join([plain(row[0]), *row[1:]]) + " |" for row in self.rows), ""])

    def latex(self, key: str, name: str) -> str:
        lines = [
            f"% key:{key}",
            "% needs booktabs",
            r"\begin{table*}[t]",
            r"  \centering",
            r"  \small",
            rf"  \caption{{{escape(self.caption)}. {escape(self.note)}}}",
            rf"  \label{{tab:{name.replace('_', '-')}}}",
            rf"  \begin{{tabular}}{{l{'c' * len(self.heads)}}}",
            r"    \toprule",
            "     & " + " & ".join(map(escape, self.heads)) + r" \\",
            r"    \midrule",
        ]
        lines += ["    " + " & ".join([row[0], *map(escape, row[1:])]) + r" \\" for row in self.rows]
        return "\n".join([*lines, r"    \bottomrule", r"  \end{tabular}", r"\end{table*}", ""])


@dataclass(frozen=True)
class WrittenTable:
    """A table whose Markdown and LaTeX are written by a function of the key."""

    write: Callable[[str], tuple[str, str]]

    def markdown(self, key: str) -> str:
        return self.write(key)[0]

    def latex(self, key: str, name: str) -> str:
        return self.write(key)[1]


@dataclass(frozen=True)
class Registered:
    make: Callable[[Sequence[Evaluation]], OwnTable | WrittenTable]
    inputs: Callable[[Project], Sequence[Artefact]]
    on_page: bool  # as a section of its own among the tables of results/report.html


OWN_TABLES: dict[str, Registered] = {}


def own_table(inputs: Callable[[Project], Sequence[Artefact]], on_page: bool = True):
    """Register a table under its function's name; `inputs` says which evaluations it reads."""

    def register(make: Callable[[Sequence[Evaluation]], OwnTable | WrittenTable]):
        OWN_TABLES[make.__name__] = Registered(make, inputs, on_page)
        return make

    return register


def _link_evaluations(project: Project) -> Sequence[Artefact]:
    experiment = project.experiment("link_prediction")
    return [experiment.evaluation(job.row, job.condition, job.seed) for job in experiment.jobs()]


_LINK: dict[str, Callable[[Evaluation], float | None]] = {
    "AUPRC (%)": lambda evaluation: evaluation["metrics"]["auprc"],
    "F1 reversed (%)": lambda evaluation: evaluation["metrics"]["f1_reversed"],
    "AUPRC reversed (%)": lambda evaluation: evaluation["metrics"]["auprc_reversed"],
    "F1 by parent (%)": lambda evaluation: evaluation["metrics"].get("f1_by_parent"),
    "epochs": lambda evaluation: evaluation["settings"]["training"]["epochs"],
    "minutes": lambda evaluation: evaluation["timing"]["train_seconds"] / 60,
}


@own_table(_link_evaluations)
def link_prediction_extra(evaluations: Sequence[Evaluation]) -> OwnTable:
    coverages = sorted({evaluation["coverage"] for evaluation in evaluations})
    columns = {name: value for name, value in _LINK.items() if any(value(one) is not None for one in evaluations)}
    rows = []
    for row in registry.rows("link_prediction"):
        cells = [
            [evaluation for evaluation in evaluations if (evaluation["row"], evaluation["coverage"]) == (row, coverage)]
            for coverage in coverages
        ]
        if any(cells):
            rows.append(
                [geometry_label(row), *(" / ".join(_mean(cell, value) for cell in cells) for value in columns.values())]
            )
    covered = " / ".join(map(str, coverages))
    note = (
        f"At {covered} % of the non-basic edges, test. Reversed: the reversed test edges are the negatives, with the "
        "threshold of Table 4. "
    )
    if "F1 by parent (%)" in columns:
        note += "By parent: ten random nodes outside the parent of every test edge are the negatives, same threshold. "
    note += "Minutes: training time on a shared machine."
    return OwnTable("WordNet noun link prediction beyond the paper's table", list(columns), rows, note)


def _mean(evaluations: Sequence[Evaluation], value: Callable[[Evaluation], float | None]) -> str:
    values = [found for evaluation in evaluations if (found := value(evaluation)) is not None]
    if not values:
        return "—"
    return f"{values[0]}" if isinstance(values[0], int) else f"{fmean(values):.1f}"


_KINDS = {
    "poincare-10": r"$\mathcal{P}^{10}$, brute force as one product",
    "poincare-10-obvious": r"$\mathcal{P}^{10}$, all distances with arcosh, then the best",
    "subspace-64": "SE$^{64}$, all entries scored",
    "exact-fp32": "SE$^{128}$ exact, fp32",
    "exact-fp16": "SE$^{128}$ exact, fp16",
    "ivfpq": "SE$^{128}$ IVFPQ, the paper's",
    "reduced": "SE$^{128}$ reduced",
    "compact": "SE$^{128}$ compact",
}


@own_table(lambda project: [project.experiment("efficiency").latency()])
def retrieval_extra(evaluations: Sequence[Evaluation]) -> OwnTable:
    (latency,) = evaluations
    rows, times = [], latency["rows"]
    for kind, label in _KINDS.items():
        if (measured := times.get(kind)) is None:
            continue
        forms = ("plain", "conjunction", "negation")
        recall = [f"{measured['recall'][form]:.3f}" for form in forms] if measured["recall"] else ["1"] * 3
        share = f"{measured['latency_ms'] / times['poincare-10']['latency_ms']:.1f}×"
        rows.append([label, f"{measured['latency_ms']:.2f}", share, *recall, f"{measured['bytes_per_document']:,.0f}"])
    first = next(iter(times.values()))
    note = (
        f"{latency['documents']:,} captions, captions as queries in batches of {first['batch']}, top {first['top']}, "
        f"{first['threads']} thread{'s' * (first['threads'] > 1)}, all rows in one run; recall against exact search. "
        f"Half-vectors take {latency['half_over_full']:.2f} of the time of all entries."
    )
    heads = ["ms per query", "of Poincaré's", "recall@10 plain", "conjunction", "negation", "bytes per caption"]
    return OwnTable("Retrieval beyond the paper's Table 8: every index with its recall and size", heads, rows, note)


@own_table(lambda project: [project.experiment("efficiency").encoding()])
def encoding_overhead(evaluations: Sequence[Evaluation]) -> OwnTable:
    (times,) = evaluations
    bare, head = registry.rows("encoding_time")
    columns = registry.columns("encoding_time")
    paper = {
        (row, column): registry.number(f"encoding_time/{row}/{column}").value
        for row in (bare, head)
        for column in columns
    }
    ours = {(row, column): value for row in (bare, head) for column, value in times["metrics"][row].items()}
    rows = [
        [label, *(_ratio(found.get((head, column)), found.get((bare, column))) for column in columns)]
        for label, found in (("ours", ours), ("the paper's", paper))
    ]
    heads = [f"batch {column.removeprefix('batch-')}" for column in columns]
    note = f"Ours: {times['extent']['text']}."
    return OwnTable("Encoding time with the projection head over without it", heads, rows, note)


def _ratio(above: float | None, below: float | None) -> str:
    return "—" if above is None or below is None else f"{above / below:.2f}×"


def _composition_evaluations(project: Project) -> Sequence[Artefact]:
    experiment = project.experiment("composition")
    return [experiment.evaluation(*job) for job in experiment.judged()]


@own_table(lambda project: project.experiment("compositional_retrieval").evaluations())
def compositional_retrieval(evaluations: Sequence[Evaluation]) -> OwnTable:
    """nDCG@10, P@10 and average precision of each way to answer, by form of query."""
    (found,) = evaluations
    reporting = [row for row in found["summary"] if row["half"] == "reporting"]
    cells = {(row["system"], row["form"], row["metric"]): row for row in reporting}
    forms = list(dict.fromkeys(row["form"] for row in reporting))
    negated = [form for form in forms if "~" in form]
    rows = []
    for system in dict.fromkeys(row["system"] for row in reporting):
        shown = []
        for form in forms:
            ndcg, precision, average = (
                cells[system, form, name] for name in ("ndcg", "precision", "average_precision")
            )
            interval = f"[{ndcg['low']:.0f}, {ndcg['high']:.0f}]"
            shown.append(f"{ndcg['mean']:.1f} {interval} / {precision['mean']:.0f} / {average['mean']:.0f}")
        shown += [f"{cells[system, form, 'excluded']['mean']:.0f}" for form in negated]
        rows.append([f"{escape(system)} (default)" if system == found["chosen"] else escape(system), *shown])
    count = {form: next(row["queries"] for row in reporting if row["form"] == form) for form in forms}
    queries = ", ".join(f"{form}: {number}" for form, number in count.items())
    note = (
        f"{found['documents']:,} Flickr30k images, one caption each; the other four captions judge. nDCG@10 with its 95 % "
        f"bootstrap interval / P@10 / average precision, in per cent, on the reporting half ({queries} queries); last "
        "columns: share of the first ten that shows what was excluded. Default: chosen on the other half."
    )
    return OwnTable("Compositional retrieval", [*forms, *(f"excluded, {form}" for form in negated)], rows, note)


@own_table(_composition_evaluations)
def composition_extra(evaluations: Sequence[Evaluation]) -> WrittenTable:
    """Other operators, disjunction, double negation, plain text, and the other set."""
    from subspaces.report.composition_table import extra_table

    by_row: dict[str, list[Evaluation]] = {}
    for evaluation in evaluations:
        by_row.setdefault(evaluation["row"], []).append(evaluation)
    return WrittenTable(lambda key: extra_table(by_row, NLI_LABELS, key))


@own_table(lambda project: [project.experiment("report").bounds()])
def soft_projectors(evaluations: Sequence[Evaluation]) -> WrittenTable:
    """Table 1: the worst observed error over the bound, for each bound."""
    from subspaces.bounds import BoundRow, soft_projectors_table

    rows = [BoundRow(**row) for row in evaluations[0]["rows"]]
    markdown, latex = soft_projectors_table(rows, "md"), soft_projectors_table(rows, "tex")
    return WrittenTable(lambda key: (f"<!-- key:{key} -->\n{markdown}", f"% key:{key}\n{latex}"))


def _judged(project: Project) -> Sequence[Artefact]:
    """All numbers, the evaluations behind them, and those that a claim reads beside them."""
    report, efficiency = project.experiment("report"), project.experiment("efficiency")
    numbers = [report.numbers(name) for name in report.layouts]
    evaluations = {source.output: source for table in numbers for source in table.inputs}
    return [*numbers, *evaluations.values(), report.bounds(), *map(efficiency.compression, ("wordnet", "snli"))]


@own_table(_judged, on_page=False)  # the page begins with the claims
def claims(evaluations: Sequence[Evaluation]) -> WrittenTable:
    """The paper's claims; a claim names its evaluations by their paths, so they are read from the working folder."""
    from subspaces.report.claims import claims_latex, claims_markdown, judge
    from subspaces.report.numbers import frame

    judged = judge(frame(), Path())
    return WrittenTable(
        lambda key: (f"<!-- key:{key} -->\n{claims_markdown(judged)}", f"% key:{key}\n{claims_latex(judged)}")
    )
