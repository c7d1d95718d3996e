"""Table 4: WordNet link prediction. Learn the basic edges and a share of the others, decide held-out edges by a frozen threshold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from subspaces.experiments import metrics
from subspaces.experiments.data import SPLIT
from subspaces.experiments.shared import wordnet_extent
from subspaces.files import read_json
from subspaces.pipeline.artefact import Artefact, Machine
from subspaces.pipeline.experiment import Experiment, Job
from subspaces.report.layouts import LAYOUTS, Column, Layout
from subspaces.settings import COVERAGES

MODEL = "models/link_prediction/{row}/{coverage}/seed-{seed}"
EVALUATION = "results/evaluations/link_prediction/{row}/{coverage}/seed-{seed}.json"
FILES = ("settings.json", "weights.safetensors", "history.csv", "timing.json")


class LinkPredictionExperiment(Experiment):
    name = "link_prediction"
    tables = (LAYOUTS["link_prediction"],)

    @property
    def settings(self):
        return self.params.link_prediction

    @property
    def budget(self):
        return self.settings.budget(self.params.scale)

    def not_run(self, row: str, condition: str) -> str | None:
        return self.settings.not_run(row, int(condition), self.params.scale)

    def jobs(self) -> list[Job]:
        return [
            Job(row, str(coverage), seed)
            for row in self.settings.models
            for coverage in COVERAGES
            if not self.not_run(row, str(coverage))
            for seed in self.budget.seeds_of(row)
        ]

    @cache  # noqa: B019
    def model(self, row: str, coverage: str, seed: int) -> Artefact:
        job = self.settings.job(row, int(coverage), self.params.scale)
        folder = MODEL.format(row=row, coverage=coverage, seed=seed)
        return self.project.artefact(
            f"{folder}/settings.json",
            ["link_prediction.train", f"geometries.{job.model.geometry}"],
            {**job.model_dump(mode="json"), "seed": seed},
            [self.project.experiment("data").split(int(coverage))],
            lambda artefact, machine: self._train(artefact, machine, Job(row, coverage, seed)),
            [f"{folder}/{name}" for name in FILES[1:]],
        )

    def model_of(self, job: Job) -> Artefact:
        return self.model(job.row, job.condition, job.seed)

    @cache  # noqa: B019
    def evaluation(self, row: str, coverage: str, seed: int) -> Artefact:
        return self.project.artefact(
            EVALUATION.format(row=row, coverage=coverage, seed=seed),
            ["link_prediction.evaluate"],
            metrics.link_prediction.settings,
            [self.model(row, coverage, seed)],
            lambda artefact, machine: self._evaluate(artefact, machine, Job(row, coverage, seed)),
        )

    def artefacts(self) -> Iterable[Artefact]:
        jobs = [(job.row, job.condition, job.seed) for job in self.jobs()]
        return [*(self.model(*job) for job in jobs), *(self.evaluation(*job) for job in jobs)]

    def evidence(self, table: Layout, row: str, column: Column) -> tuple[Artefact, ...]:
        jobs = [job for job in self.jobs() if (job.row, job.condition) == (row, column.condition)]
        return tuple(self.evaluation(job.row, job.condition, job.seed) for job in jobs)

    def extent(self, evaluation: Mapping[str, Any]) -> tuple[bool, str]:
        origin = evaluation["settings"]["split"]["train_origin"]
        return wordnet_extent(
            evaluation, "whole split" + ("" if origin == "original file" else f" (training edges: {origin})")
        )

    def _train(self, artefact: Artefact, machine: Machine, job: Job) -> None:
        from subspaces.hierarchy.link_prediction import fit_link_prediction
        from subspaces.hierarchy.splits import Split
        from subspaces.pipeline.run import open_run
        from subspaces.training.progress import ConsoleProgress

        asked, path = (
            self.settings.job(job.row, int(job.condition), self.params.scale),
            SPLIT.format(coverage=job.condition),
        )
        data, split = read_json(f"{path}.json"), Split.load(Path(f"{path}.npz"))
        edges = asked.training.edges_per_step(len(split.train))
        progress = ConsoleProgress(f"{job.row} {job.condition} % seed {job.seed}", "edges", edges)
        record = {"data": {name: data[name] for name in ("sample", "origin", "sha256", "source", "train_origin")}}
        device = self.device(machine, asked.model.geometry == "subspace")
        run = open_run(artefact, self.params.checkpoint, progress, job.seed, machine.threads, record, device)
        if run is not None:
            settings = fit_link_prediction(asked, split, run)
            valid = settings["decision"]["validation"]
            progress.say(
                f"best epoch {settings['best_epoch']}: validation AUPRC {valid['auprc']:.2f} %, F1 {valid['f1']:.2f} %"
            )

    def _evaluate(self, artefact: Artefact, machine: Machine, job: Job) -> None:
        from subspaces.experiments.link_prediction.evaluate import evaluate_link_prediction
        from subspaces.pipeline.run import JobCheckpoints

        model = artefact.inputs[0]
        measured = evaluate_link_prediction(
            model.path.parent,
            Path(f"{SPLIT.format(coverage=job.condition)}.npz"),
            artefact.path,
            artefact.key,
            machine.threads,
            {"row": job.row, "coverage": int(job.condition), "seed": job.seed, "scale": self.params.scale},
            self.device(machine, self.settings.models[job.row].geometry == "subspace"),
        )["metrics"]
        JobCheckpoints(model).drop_finished()
        print(
            f"{job.row} {job.condition} %: F1 {measured['f1']:.2f} %  AUPRC {measured['auprc']:.2f} %  "
            f"F1 on reversed {measured['f1_reversed']:.2f} %"
        )
