"""Table 6: compositional entailment, zero-shot from the 2-way models of SNLI."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path

from subspaces.files import sha256_file
from subspaces.pipeline.artefact import Artefact, Machine
from subspaces.pipeline.experiment import SOURCES, Experiment
from subspaces.report.layouts import LAYOUTS, Column, Layout

SET = "results/composition/elicited"
EVALUATION = "results/evaluations/composition/{row}/seed-{seed}.json"


class CompositionExperiment(Experiment):
    name = "composition"
    tables = (LAYOUTS["composition"],)

    @property
    def settings(self):
        return self.params.composition

    @property
    def _snli(self):
        return self.project.experiment("snli")

    @property
    def reviewed(self) -> Path:
        """The reviewed candidates that params.yaml names, else those that ship with the project."""
        named = self.settings.reviewed
        if named:
            return self.project.folder / named
        return Path(str(files("subspaces.experiments.composition").joinpath("candidates.csv")))

    def not_run(self, row: str, condition: str = "") -> str | None:
        return self._snli.not_run(row, "2way")

    def filter_models(self) -> dict[str, Artefact]:
        """Baseline -> the 2-way model that filters the elicited set."""
        pairs = getattr(self.settings.filter_pairs, self.params.scale)
        snli = self._snli
        named = {row: snli.settings.curve_row(row, pairs) if pairs else row for row in self.settings.baselines}
        run = {job.row for job in snli.jobs() if job.condition == "2way"}
        return {row: snli.model(name, "2way", snli.first_seed) for row, name in named.items() if name in run}

    @cache  # noqa: B019
    def elicited_set(self) -> Artefact:
        """The reviewed candidates that all baselines judge right, composed."""
        settings = {name: getattr(self.settings, name) for name in ("premises", "baselines", "least")}
        settings["reviewed"] = sha256_file(self.reviewed) if self.reviewed.exists() else None
        return self.project.artefact(
            f"{SET}.json",
            ["composition.set"],
            settings,
            self.filter_models().values(),
            self._build_set,
            [f"{SET}.csv"],
        )

    @cache  # noqa: B019
    def evaluation(self, row: str, seed: int) -> Artefact:
        inputs = [
            self._snli.judged_model(row, "2way", seed),
            self.elicited_set(),
            self.project.experiment("data").source("composition"),
        ]
        settings = {"set": self.settings.set, "operator": self.settings.operator}
        return self.project.artefact(
            EVALUATION.format(row=row, seed=seed),
            ["composition.evaluate"],
            settings,
            inputs,
            lambda artefact, machine: self._evaluate(artefact, machine, row, seed),
        )

    def judged(self) -> list[tuple[str, int]]:
        rows = self.tables[0].rows
        return [(job.row, job.seed) for job in self._snli.jobs() if job.condition == "2way" and job.row in rows]

    def shipped(self) -> list[Artefact]:
        """The model of the package, judged, where it is trained at this scale."""
        return [self.evaluation(row, self._snli.first_seed) for row, _ in self._snli.shipped_rows()]

    def artefacts(self) -> Iterable[Artefact]:
        return [self.elicited_set(), *(self.evaluation(*job) for job in self.judged()), *self.shipped()]

    def extra_rows(self, table: Layout) -> dict[str, dict[str, Artefact]]:
        return {
            row: {column.id: found for column in table.cells}
            for (row, _), found in zip(self._snli.shipped_rows(), self.shipped(), strict=True)
        }

    def evidence(self, table: Layout, row: str, column: Column) -> tuple[Artefact, ...]:
        return tuple(self.evaluation(*job) for job in self.judged() if job[0] == row)

    def _build_set(self, artefact: Artefact, machine: Machine) -> None:
        from subspaces.experiments.composition.build import build_set

        folders = {row: model.path.parent for row, model in self.filter_models().items()}
        chosen = self.settings
        out = artefact.path.with_suffix(".csv")
        print(build_set(self.reviewed, folders, chosen.premises, chosen.least, out, artefact.key, SOURCES)["text"])

    def _evaluate(self, artefact: Artefact, machine: Machine, row: str, seed: int) -> None:
        from subspaces.experiments.composition.authors import read_authors
        from subspaces.experiments.composition.build import chosen_candidates
        from subspaces.experiments.composition.evaluate import evaluate_composition

        elicited, report = chosen_candidates(self.reviewed, self.elicited_set().path)
        sets = {"elicited": elicited, "authors": read_authors(SOURCES / "composition" / "composite_entailment.txt")}
        result = evaluate_composition(
            artefact.inputs[0].path.parent,
            sets,
            artefact.path,
            artefact.key,
            self.settings.operator,
            machine.threads,
            {"row": row, "seed": seed, "scale": self.params.scale},
            chosen=self.settings.set,
            control=("elicited",),
            reports={"elicited": report},
            sources=SOURCES,
        )
        values = {name: "none" if value is None else f"{value:.1f} %" for name, value in result["metrics"].items()}
        shown = ", ".join(f"{name} {value}" for name, value in values.items())
        print(f"{row}: {shown} ({result['extent']['text']})")
