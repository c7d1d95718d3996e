"""Table 3: HyperLex, zero-shot from the noun models of reconstruction. Only the Gaussians are trained for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from subspaces.experiments.data import HIERARCHY
from subspaces.experiments.shared import wordnet_extent
from subspaces.files import read_json
from subspaces.pipeline.artefact import Artefact, Machine
from subspaces.pipeline.experiment import SOURCES, Experiment, Job
from subspaces.report.layouts import LAYOUTS, Column, Layout

GAUSSIAN = "gaussian-50"
MODEL = f"models/hyperlex/{GAUSSIAN}/seed-{{seed}}"
EVALUATION = "results/evaluations/hyperlex/{row}/seed-{seed}.json"
FILES = ("settings.json", "weights.safetensors", "history.csv", "timing.json")


class HyperlexExperiment(Experiment):
    name = "hyperlex"
    tables = (LAYOUTS["hyperlex"],)

    @property
    def settings(self):
        return self.params.hyperlex

    @property
    def budget(self):
        return self.settings.budget(self.params.scale)

    def not_run(self, row: str, condition: str = "") -> str | None:
        own = self.budget.not_run.get(row)
        return own if own or row == GAUSSIAN else self.project.experiment("reconstruction").not_run(row, "nouns")

    def jobs(self) -> list[Job]:
        """The Gaussians; the other rows are models of reconstruction."""
        return [] if self.not_run(GAUSSIAN) else [Job(GAUSSIAN, "", seed) for seed in self.budget.seeds]

    def judged(self) -> list[tuple[str, int]]:
        """(row, seed) of every evaluation: the seeds of the models that it is made from."""
        others = self.project.experiment("reconstruction").budget.seeds
        return [
            (row, seed)
            for row in self.settings.rows
            if not self.not_run(row)
            for seed in (self.budget.seeds if row == GAUSSIAN else others)
        ]

    @property
    def gaussian_job(self):
        return self.settings.job(self.params.scale)

    @cache  # noqa: B019
    def model(self, row: str, seed: int) -> Artefact:
        if row != GAUSSIAN:
            return self.project.experiment("reconstruction").model(row, "nouns", seed)
        folder = MODEL.format(seed=seed)
        return self.project.artefact(
            f"{folder}/settings.json",
            ["link_prediction.train", "geometries.gaussian"],
            {**self.gaussian_job.model_dump(mode="json"), "seed": seed},
            [self.project.experiment("data").hierarchy("nouns")],
            lambda artefact, machine: self._train(artefact, machine, seed),
            [f"{folder}/{name}" for name in FILES[1:]],
        )

    def model_of(self, job: Job) -> Artefact:
        return self.model(job.row, job.seed)

    @cache  # noqa: B019
    def evaluation(self, row: str, seed: int) -> Artefact:
        data = self.project.experiment("data")
        return self.project.artefact(
            EVALUATION.format(row=row, seed=seed),
            ["hyperlex.evaluate"],
            {"alpha": self.settings.alpha},
            [self.model(row, seed), data.source("hyperlex"), data.source("wordnet")],
            lambda artefact, machine: self._evaluate(artefact, machine, row, seed),
        )

    def artefacts(self) -> Iterable[Artefact]:
        models = [self.model(job.row, job.seed) for job in self.jobs()]
        return [*models, *(self.evaluation(*job) for job in self.judged())]

    def evidence(self, table: Layout, row: str, column: Column) -> tuple[Artefact, ...]:
        return tuple(self.evaluation(*job) for job in self.judged() if job[0] == row)

    def extent(self, evaluation: Mapping[str, Any]) -> tuple[bool, str]:
        return wordnet_extent(evaluation, f"all {evaluation['settings']['pairs']:,} noun pairs")

    def _train(self, artefact: Artefact, machine: Machine, seed: int) -> None:
        from subspaces.experiments.hyperlex.evaluate import closure_split
        from subspaces.hierarchy.link_prediction import fit_link_prediction
        from subspaces.hierarchy.reconstruction import graph_of
        from subspaces.pipeline.run import open_run
        from subspaces.training.progress import ConsoleProgress

        job, path = self.gaussian_job, HIERARCHY.format(pos="nouns")
        data = read_json(f"{path}.json")
        split = closure_split(graph_of(job.subtree, Path(f"{path}.npz"), data["sample"]))
        progress = ConsoleProgress(f"{GAUSSIAN} seed {seed}", "edges", job.training.edges_per_step(len(split.train)))
        record = {"data": {name: data[name] for name in ("sample", "origin", "sha256", "source")}}
        run = open_run(artefact, self.params.checkpoint, progress, seed, machine.threads, record)
        if run is not None:
            fit_link_prediction(job, split, run)

    def _evaluate(self, artefact: Artefact, machine: Machine, row: str, seed: int) -> None:
        from subspaces.experiments.hyperlex.evaluate import evaluate_on_hyperlex
        from subspaces.pipeline.run import JobCheckpoints

        model = artefact.inputs[0]
        result = evaluate_on_hyperlex(
            model.path.parent,
            Path(f"{HIERARCHY.format(pos='nouns')}.npz"),
            SOURCES / "hyperlex",
            SOURCES / "wordnet",
            artefact.path,
            artefact.key,
            machine.threads,
            artefact.settings["alpha"],
            {"row": row, "seed": seed, "scale": self.params.scale},
        )
        if row == GAUSSIAN:
            JobCheckpoints(model).drop_finished()
        print(f"{row}: Spearman {result['metrics']['spearman']:.3f}")
