"""A tiny instance of every computation of workflow/versions.yaml.

Most are jobs of the real graph with the settings of params.yaml beside this file, on the samples that ship with the package. Numbers, tables and the
page are made from invented evaluations, so that they have every verdict and do not depend on training.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from subspaces.files import read_json, write_json
from subspaces.pipeline.artefact import Artefact, Machine
from subspaces.pipeline.params import load_params
from subspaces.pipeline.project import Project
from subspaces.report import registry
from tests.golden.summary import plain, summary, text

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
_KEY = "0" * 64  # of what is made from invented evaluations
_TIME = re.compile(r"(^|_)(ms|seconds)$|_over_")
_TIMED = ("results/evaluations/retrieval_latency.json", "results/evaluations/encoding_time.json")


class Golden:
    """The graph of params.yaml beside this file; a job runs when its result is asked for."""

    def __init__(self) -> None:
        self.project = self._open()
        for name in dict.fromkeys(self.project.experiment("data").sources):
            source = self.project.experiment("data").source(name)
            source.make(source, Machine())
        self.project = self._open()  # whether a source is a sample is part of the keys

    def _open(self) -> Project:
        return Project(load_params(HERE / "params.yaml"), root=ROOT)

    def __getattr__(self, name: str) -> Any:
        """golden.snli: the experiment of this name."""
        return self.project.experiment(name)

    def make(self, artefact: Artefact) -> Artefact:
        """Run the jobs that are still missing, inputs first."""
        if not artefact.is_built():
            for source in artefact.inputs:
                self.make(source)
            artefact.make(artefact, Machine())
            if artefact.output.startswith("results/evaluations/") and artefact.path.suffix == ".json":
                _without_times(artefact.path)
        return artefact

    def results(self, *artefacts: Artefact) -> dict[str, Any]:
        """Summaries of all files that these jobs write."""
        return {
            name: summary(Path(name))
            for artefact in artefacts
            for name in (self.make(artefact).output, *artefact.beside)
            if not name.endswith((".pdf", "timing.json", "tokenizer.json"))
        }

    def versions(self, computation: str, artefacts: Iterable[Artefact]) -> dict[str, int]:
        """Of a computation and of everything that its instance is made with."""
        versions = {computation: self.project.versions[computation]}
        for artefact in artefacts:
            versions |= artefact.versions
            versions |= self.versions(computation, artefact.inputs)
        return dict(sorted(versions.items()))


def _without_times(path: Path) -> None:
    """Set every time in an evaluation to 1, so that what is made from it is the same everywhere."""

    def walk(content: Any, timed: bool) -> Any:
        if isinstance(content, dict):
            return {name: walk(value, timed or bool(_TIME.search(name))) for name, value in content.items()}
        if isinstance(content, list):
            return [walk(value, timed) for value in content]
        return 1.0 if timed and isinstance(content, float) else content

    content = walk(read_json(path), False)
    if path.as_posix() in _TIMED:  # their metrics are times
        content["metrics"] = walk(content["metrics"], True)
        content.pop("best", None)  # the fastest index
    write_json(path, content)


# --- jobs of the graph ----------------------------------------------------------------------------------------------------

Jobs = Callable[[Golden], Iterable[Artefact]]


def _reconstruction(row: str) -> Jobs:
    return lambda golden: [golden.reconstruction.model(row, "nouns", 0)]


def _links(row: str) -> Jobs:
    return lambda golden: [golden.link_prediction.model(row, "10", 0)]


def _snli(row: str, *ways: str) -> Jobs:
    return lambda golden: [golden.snli.model(row, name, 0) for name in ways]


def _figures(golden: Golden) -> list[Artefact]:
    return [golden.report.figure(name) for name in golden.report.figure_names]


JOBS: dict[str, Jobs] = {
    "wordnet": lambda golden: map(golden.data.hierarchy, ("nouns", "verbs")),
    "captions": lambda golden: [golden.data.captions()],
    "bounds": lambda golden: [golden.report.bounds()],
    "reconstruction.train": _reconstruction("subspace-64"),
    "link_prediction.split": lambda golden: map(golden.data.split, (0, 50)),
    "link_prediction.train": lambda golden: [*_links("subspace-64")(golden), *_links("euclidean-10")(golden)],
    "geometries.cones": _links("cones-10"),
    "geometries.disk": _links("disk-10"),
    "geometries.euclidean": _reconstruction("euclidean-5"),
    "geometries.gaussian": lambda golden: [golden.hyperlex.model("gaussian-50", 0)],
    "geometries.lorentz": _reconstruction("lorentz-10"),
    "geometries.order": _links("order-10"),
    "geometries.poincare": lambda golden: [*_links("poincare-10")(golden), *_reconstruction("poincare-5")(golden)],
    "geometries.subspace": _reconstruction("subspace-64"),
    "geometries.umbral": _links("umbral-10"),
    "reconstruction.evaluate": lambda golden: [golden.reconstruction.evaluation("subspace-64", "nouns", 0)],
    "reconstruction.ranks": lambda golden: [golden.reconstruction.ranks("subspace-64", "nouns", 0)],
    "hyperlex.evaluate": lambda golden: [golden.hyperlex.evaluation(row, 0) for row in ("subspace-64", "gaussian-50")],
    "link_prediction.evaluate": lambda golden: [golden.link_prediction.evaluation("order-10", "10", 0)],
    "snli.data": lambda golden: [golden.data.snli()],
    "snli.train": _snli("minilm-mlp", "2way", "3way"),
    "encoders.box": _snli("mpnet-box-64", "2way"),
    "encoders.gru_hyperbolic": _snli("gru-hyperbolic", "2way"),
    "encoders.gru_order": _snli("gru-order", "2way"),
    "encoders.subspace": _snli("minilm-subspace-64", "2way", "3way"),
    "encoders.vector": _snli("minilm-mlp-diff", "2way"),
    "snli.ship": lambda golden: [golden.snli.shipped()],
    "snli.evaluate": lambda golden: [
        golden.snli.evaluation("minilm-subspace-64", ways, 0) for ways in ("2way", "3way")
    ],
    "composition.set": lambda golden: [golden.composition.elicited_set()],
    "composition.evaluate": lambda golden: [golden.composition.evaluation("minilm-subspace-64", 0)],
    "retrieval.encode": lambda golden: golden.efficiency.shards(),
    "retrieval.index": lambda golden: golden.efficiency.indexes(),
    "retrieval.latency": lambda golden: [golden.efficiency.latency()],
    "retrieval.queries": lambda golden: [golden.efficiency.queries()],
    "encoding_time.measure": lambda golden: [golden.efficiency.encoding()],
    "compression.measure": lambda golden: map(golden.efficiency.compression, ("wordnet", "snli")),
    "report.figures": _figures,
}


# --- invented evaluations -------------------------------------------------------------------------------------------------


def _invented(paper: registry.PaperNumber, number: int) -> dict[str, Any]:
    """A number as `report.numbers` writes it: the kinds take turns, so that every verdict occurs."""
    from subspaces.report.numbers import measured, unmeasured

    if number % 5 == 0:
        return unmeasured(paper, "laptop", "a row that is left out of this instance")
    better = -1 if paper.better == "lower" else 1
    change = (0.0, 0.1, -0.2, 0.001)[number % 5 - 1] * better * abs(paper.value)
    values = [paper.value + change * (1 + 0.01 * seed) for seed in range(1 + number % 3)]
    evaluation = {"settings": {"ways": 2}, "data": {"sample": False, "sha256": "c" * 64}, "weights_sha256": "d" * 64}
    evaluations = {f"results/evaluations/{paper.id}/seed-{seed}.json": evaluation for seed in range(len(values))}
    return measured(paper, "laptop", values, evaluations, (number % 4 != 3, "an invented evaluation"))


def _write_invented() -> Path:
    """The numbers of all tables; returns their folder."""
    from subspaces.report.numbers import write_numbers

    folder = Path("invented")
    for table in registry.tables():
        invented = [_invented(paper, number) for number, paper in enumerate(registry.of_table(table))]
        write_numbers(table, invented, _KEY, folder)
    return folder


def _numbers(golden: Golden) -> Any:
    from subspaces.report.numbers import read_numbers

    folder, kept = _write_invented(), ("value", "sd", "verdict", "reason", "seeds")
    return {
        identifier: {name: number[name] for name in kept}
        for table in registry.tables()
        for identifier, number in read_numbers(table, folder).items()
    }


def _frame(golden: Golden) -> Any:
    from subspaces.report.numbers import FRAME, write_frame

    folder = _write_invented()
    write_frame(_KEY, folder)
    return summary(folder / FRAME)


def _tables(golden: Golden) -> Any:
    """The paper's tables, and those of our own from evaluations of the graph."""
    from subspaces.report import tables
    from subspaces.report.claims import claims_latex, claims_markdown, judge
    from subspaces.report.layouts import LAYOUTS
    from subspaces.report.numbers import frame_of
    from subspaces.report.own_tables import OWN_TABLES
    from tests.report.made_results import make_results

    folder = _write_invented()
    found = {
        f"{name}, {write.__name__}": text(write(LAYOUTS[name], frame_of(name, folder), _KEY))
        for name in registry.tables()
        for write in (tables.markdown, tables.latex)
    }
    judged = judge(make_results(Path("invented claims")), Path("invented claims"))
    found |= {"claims, markdown": text(claims_markdown(judged)), "claims, latex": text(claims_latex(judged))}
    for name in golden.report.own_tables:
        if name == "claims":  # of all numbers and their evaluations: above, from invented ones
            continue
        own = OWN_TABLES[name]
        evaluations = [read_json(golden.make(source).output) for source in own.inputs(golden.project)]
        table = own.make([_with_few_digits(evaluation) for evaluation in evaluations])
        found |= {f"{name}, markdown": text(table.markdown(_KEY)), f"{name}, latex": text(table.latex(_KEY, name))}
    return found


def _with_few_digits(content: Any) -> Any:
    """A text has no tolerance, so what it shows is rounded before."""
    if isinstance(content, dict):
        return {name: _with_few_digits(value) for name, value in content.items()}
    if isinstance(content, list):
        return [_with_few_digits(value) for value in content]
    return float(f"{content:.2g}") if isinstance(content, float) else content


def _page(golden: Golden) -> Any:
    from subspaces.report.page.build import build_page
    from tests.report.made_results import make_results

    folder = Path("invented page")
    build_page(make_results(folder), folder, folder / "report.html", _KEY, figures=("overview",))
    return summary(folder / "report.html")


def _retrieval_benchmark(golden: Golden) -> Any:
    """Metrics, intervals, differences and the choice from invented scores: the real queries need all images."""
    from subspaces.experiments.compositional_retrieval.benchmark import compare, measure, summarise
    from subspaces.experiments.compositional_retrieval.evaluate import choose, mean_ndcg

    draw, rows = np.random.default_rng(0), []
    for form in ("a & b", "a & ~b"):
        for query in range(6):
            relevant, unwanted = draw.random((2, 40)) < 0.3
            for system, skill in (("product", 0.2), ("sandwich-hard", 0.6)):
                values = measure(draw.random(40) + skill * relevant, relevant, unwanted if "~" in form else None)
                rows.append({"system": system, "form": form, "query": f"{form} {query}", **values})
    results = pd.DataFrame(rows)
    chosen, profile = choose({"exact": 0.0, **mean_ndcg(results)}, {}, False)
    return {
        "summary": summarise(results).to_dict("records"),
        "differences": compare(results, "sandwich-hard", "product").to_dict("records"),
        "chosen": chosen,
        "profile": profile.model_dump(),
    }


REPORT: dict[str, Callable[[Golden], Any]] = {
    "compositional_retrieval.evaluate": _retrieval_benchmark,
    "report.numbers": _numbers,
    "report.frame": _frame,
    "report.tables": _tables,
    "report.page": _page,
}

INSTANCES = (*JOBS, *REPORT)


def result_of(golden: Golden, computation: str) -> tuple[dict[str, int], Any]:
    """The versions that an instance depends on, and its result."""
    if computation in REPORT:
        return golden.versions(computation, ()), plain(REPORT[computation](golden))
    artefacts = list(JOBS[computation](golden))
    return golden.versions(computation, artefacts), golden.results(*artefacts)
