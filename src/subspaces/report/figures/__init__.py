"""The registry of figures: what each one shows, which artefacts it is drawn from, and the function that draws it.

A new figure is one function here, decorated with `@figure`, that calls the drawing code of a module in this folder. The drawing
modules are imported when a figure is drawn, so that the workflow can read the registry without matplotlib.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subspaces.files import read_json
from subspaces.report.layouts import LAYOUTS

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

Project = Any  # the pipeline's object that knows every artefact; this package does not import the pipeline
Inputs = Callable[[Project], Sequence[Any]]


@dataclass(frozen=True)
class FigureData:
    """The input files of a figure in the order of its inputs, its settings, and the working folder."""

    paths: Sequence[Path]
    settings: Mapping[str, Any] = field(default_factory=dict)
    folder: Path = Path()

    @property
    def contents(self) -> list[dict[str, Any]]:
        return [read_json(path) for path in self.paths]

    def records(self, table: str) -> list[dict[str, Any]]:
        """The numbers of one table."""
        from subspaces.report.numbers import frame_of, records

        return records(frame_of(table, self.folder), table)


@dataclass(frozen=True)
class Figure:
    """`settings` are the arguments that change what is drawn; they are part of the figure's key."""

    name: str
    title: str
    caption: str
    alt: str
    draw: Callable[[FigureData], Drawing]
    inputs: Inputs
    settings: Callable[[Project], Mapping[str, Any]]
    run: Callable[[Project], bool] = lambda project: True  # false: what it shows is not run


FIGURES: dict[str, Figure] = {}


def figure(
    name: str,
    title: str,
    caption: str,
    alt: str,
    inputs: Inputs = lambda project: (),
    settings: Callable[[Project], Mapping[str, Any]] = lambda project: {},
    run: Callable[[Project], bool] = lambda project: True,
) -> Callable[[Callable[[FigureData], Drawing]], Callable[[FigureData], Drawing]]:
    """Register the decorated function as the one that draws figure `name`."""

    def register(draw: Callable[[FigureData], Drawing]) -> Callable[[FigureData], Drawing]:
        FIGURES[name] = Figure(name, title, caption, alt, draw, inputs, settings, run)
        return draw

    return register


# --- drawings of the method -------------------------------------------------------------------------------------------


@figure(
    "overview",
    title="Concepts as subspaces",
    caption="Two concepts as planes of ℝ³ and the results of the operations. Drawn from computed projectors.",
    alt="Four drawings of planes in space: two concepts as planes, their intersection as a line, the part of one that is "
    "orthogonal to the other as a line, and the plane that the two lines span.",
)
def _overview(data: FigureData) -> Drawing:
    from subspaces.report.figures.overview import draw_overview

    return draw_overview()


@figure(
    "sph",
    title="The projection head",
    caption="How a sentence becomes a subspace: hidden states of the backbone, learnable queries that attend to them, an MLP, "
    "and the soft projector of the resulting vectors (the paper’s Figure 2, drawn by code).",
    alt="Block diagram from left to right: tokens, backbone, attention of learnable queries, MLP, soft projector.",
)
def _sph(data: FigureData) -> Drawing:
    from subspaces.report.figures.sph import draw_sph

    return draw_sph()


# --- WordNet ----------------------------------------------------------------------------------------------------------


@figure(
    "rank_vs_descendants",
    title="Rank and generality",
    caption="Effective rank of every WordNet noun against its number of descendants, with the chain from homo sapiens to "
    "entity.",
    alt="Scatter plot: effective rank against the number of descendants on a logarithmic axis, one dot per noun, with the "
    "median and the chain from homo sapiens to entity.",
    inputs=lambda project: (
        project.experiment("reconstruction").ranks(
            project.params.figures.rank_vs_descendants.model, "nouns", project.experiment("reconstruction").first_seed
        ),
    ),
    settings=lambda project: project.params.figures.rank_vs_descendants.model_dump(),
)
def _rank_vs_descendants(data: FigureData) -> Drawing:
    from subspaces.report.figures.rank_vs_descendants import draw_ranks

    return draw_ranks(data.paths[0], data.settings["points"], data.settings["chain"])


@figure(
    "link_prediction_coverage",
    title="Link prediction by coverage",
    caption="F1 by share of non-basic edges seen in training. Filled: ours; open: the paper’s.",
    alt="Line plot: F1 at 0, 10, 25 and 50 % of the non-basic edges, one line per geometry, with the paper’s values as open "
    "markers. The numbers are those of Table 4.",
    inputs=lambda project: (project.experiment("report").numbers("link_prediction"),),
)
def _link_prediction_coverage(data: FigureData) -> Drawing:
    from subspaces.report.figures.link_prediction import draw_coverage

    return draw_coverage(data.records("link_prediction"), LAYOUTS["link_prediction"])


@figure(
    "link_prediction_time",
    title="Link prediction by training time",
    caption="F1 against training time, one marker per geometry and coverage.",
    alt="Scatter plot: F1 against training time on a logarithmic axis, markers of one geometry joined in the order of "
    "coverage.",
    inputs=lambda project: tuple(
        project.experiment("link_prediction").evaluation(job.row, job.condition, job.seed)
        for job in project.experiment("link_prediction").jobs()
    ),
)
def _link_prediction_time(data: FigureData) -> Drawing:
    from subspaces.report.figures.link_prediction import draw_time

    return draw_time(data.contents, LAYOUTS["link_prediction"].rows)


# --- sentences --------------------------------------------------------------------------------------------------------


def _snli(project: Project, row: str, ways: str) -> Any:
    """The evaluation of the first seed of a row."""
    return project.experiment("snli").evaluation(row, ways, project.experiment("snli").first_seed)


def _subspace_row(project: Project) -> str:
    return project.experiment("snli").subspace_row(project.params.figures.snli_model)


def _snli_row(project: Project) -> dict[str, Any]:
    return {"row": _subspace_row(project), "seed": project.experiment("snli").first_seed}


@figure(
    "inclusion_histograms",
    title="Inclusion by class",
    caption="Normalised inclusion of test pairs by their gold label, 2-way and 3-way.",
    alt="Histograms of the inclusion score between 0 and 1, one colour per class, for the 2-way and the 3-way model.",
    inputs=lambda project: tuple(
        _snli(project, row, ways)
        for ways in ("2way", "3way")
        if (row := _subspace_row(project)) == project.params.snli.shipped
        or not project.experiment("snli").not_run(row, ways)
    ),
    settings=_snli_row,
)
def _inclusion_histograms(data: FigureData) -> Drawing:
    from subspaces.report.figures.nli import draw_histograms

    contents = data.contents
    return draw_histograms(*([one for one in contents if one["settings"]["ways"] == ways] for ways in (2, 3)))


@figure(
    "entailment_chains",
    title="Rank along entailment chains",
    caption="Effective rank of sentences that become more general from left to right. Rank should rise; steps where it falls are "
    "marked.",
    alt="Line plots of effective rank, one per chain of sentences, from the most specific sentence to the most general.",
    inputs=lambda project: (_snli(project, _subspace_row(project), "2way"),),
    settings=_snli_row,
)
def _entailment_chains(data: FigureData) -> Drawing:
    from subspaces.report.figures.nli import draw_chains

    return draw_chains(data.contents[0])


@figure(
    "training_curves",
    title="Training curves",
    caption="Validation accuracy of the SNLI models during training.",
    alt="Line plot: validation accuracy against training pairs seen, one line per model.",
    inputs=lambda project: tuple(
        _snli(project, job.row, job.condition)
        for job in project.experiment("snli").jobs()
        if job.row in project.params.snli.models and job.seed == project.experiment("snli").first_seed
    ),
)
def _training_curves(data: FigureData) -> Drawing:
    from subspaces.report.figures.nli import draw_training_curves

    return draw_training_curves(data.contents)


@figure(
    "accuracy_by_pairs",
    title="Accuracy by number of training pairs",
    caption="2-way test accuracy of the projection head and of the MLP on [p, h, p − h] by number of training pairs. Not in "
    "the paper.",
    alt="Line plot: accuracy against the number of training pairs on a logarithmic axis, one line per model.",
    inputs=lambda project: tuple(
        _snli(project, row, "2way")
        for row in (
            *project.experiment("snli").curve_rows(),
            *(row for row in project.params.snli.curve.models if not project.experiment("snli").not_run(row, "2way")),
        )
    ),
)
def _accuracy_by_pairs(data: FigureData) -> Drawing:
    from subspaces.report.figures.nli import draw_accuracy_by_pairs

    return draw_accuracy_by_pairs(data.contents)


@figure(
    "composition",
    title="Compositional entailment",
    caption="AUC of conjunction and negation per model with 95 % bootstrap intervals; open markers are the paper’s values.",
    alt="Dot plot: AUC of conjunction and of negation, one line per model, with intervals. The numbers are those of Table 6.",
    inputs=lambda project: (project.experiment("report").numbers("composition"),),
)
def _composition(data: FigureData) -> Drawing:
    from subspaces.report.figures.composition import draw_composition

    return draw_composition(data.records("composition"), LAYOUTS["composition"].rows)


# --- efficiency -------------------------------------------------------------------------------------------------------


@figure(
    "compression",
    title="Compression",
    caption="mAP, 2-way accuracy and mean rank when eigenvalues below τ are dropped; fourfold compression is marked.",
    alt="Line plots against the threshold τ: mean average precision, accuracy and mean rank.",
    inputs=lambda project: tuple(map(project.experiment("efficiency").compression, ("wordnet", "snli"))),
)
def _compression(data: FigureData) -> Drawing:
    from subspaces.report.figures.compression import draw_compression

    return draw_compression({name: value for content in data.contents for name, value in content.items()})


@figure(
    "storage",
    title="Storage against quality",
    caption="Recall@10 against bytes per caption for every stored form. Not in the paper.",
    alt="Scatter plot: recall at 10 against bytes per caption on a logarithmic axis, one marker per index or truncated form.",
    inputs=lambda project: (project.experiment("efficiency").latency(),),
)
def _storage(data: FigureData) -> Drawing:
    from subspaces.report.figures.storage import draw_storage

    return draw_storage(data.contents[0])


@figure(
    "retrieval",
    title="Logic over captions",
    caption="The best captions for the paper’s seven queries, beside the results of the query’s plain text and of vector "
    "arithmetic.",
    alt="Seven blocks of text, one per query, with the best captions by subspaces, by plain text and by vector arithmetic.",
    inputs=lambda project: (project.experiment("efficiency").queries(),),
)
def _retrieval(data: FigureData) -> Drawing:
    from subspaces.report.figures.retrieval import draw_retrieval

    return draw_retrieval(data.contents[0])


@figure(
    "compositional_retrieval",
    title="Composed queries, measured",
    caption="nDCG@10 of ways to answer composed queries over Flickr30k captions, with 95 % bootstrap intervals over the queries "
    "of the reporting half. Not in the paper.",
    alt="Dot plot with one panel per form of query: nDCG at 10 of the chosen method, the paper’s product, plain text, vector "
    "arithmetic and BM25, with intervals.",
    inputs=lambda project: tuple(project.experiment("compositional_retrieval").evaluations()),
    run=lambda project: not project.experiment("compositional_retrieval").not_run(),
)
def _compositional_retrieval(data: FigureData) -> Drawing:
    from subspaces.report.figures.compositional_retrieval import draw_benchmark

    return draw_benchmark(data.contents[0])
