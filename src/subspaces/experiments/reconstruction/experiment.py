"""Table 2: WordNet reconstruction. Train on the whole closure, rank every node's ancestors among all nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from subspaces.experiments import metrics
from subspaces.experiments.data import HIERARCHY
from subspaces.experiments.shared import wordnet_extent
from subspaces.files import read_json
from subspaces.pipeline.artefact import Artefact, Machine
from subspaces.pipeline.experiment import Experiment, Job
from subspaces.report.layouts import LAYOUTS, Column, Layout
from subspaces.settings import POS

MODEL = "models/reconstruction/{row}/{pos}/seed-{seed}"
EVALUATION = "results/evaluations/reconstruction/{row}/{pos}/seed-{seed}.json"
RANKS = "results/evaluations/reconstruction/{row}/{pos}/seed-{seed}.ranks.parquet"
FILES = ("settings.json", "weights.safetensors", "history.csv", "timing.json")


class ReconstructionExperiment(Experiment):
    name = "reconstruction"
    tables = (LAYOUTS["reconstruction"],)

    @property
    def settings(self):
        return self.params.reconstruction

    @property
    def budget(self):
        return self.settings.budget(self.params.scale)

    def not_run(self, row: str, condition: str) -> str | None:
        return self.settings.not_run(row, condition, self.params.scale)

    def jobs(self) -> list[Job]:
        return [
            Job(row, pos, seed)
            for row in self.settings.models
            for pos in POS
            if not self.not_run(row, pos)
            for seed in self.budget.seeds
        ]

    @property
    def first_seed(self) -> int:
        return self.budget.seeds[0]

    # --- artefacts --------------------------------------------------------------------------------------------------------

    @cache  # noqa: B019
    def model(self, row: str, pos: str, seed: int) -> Artefact:
        job = self.settings.job(row, pos, self.params.scale)
        folder = MODEL.format(row=row, pos=pos, seed=seed)
        return self.project.artefact(
            f"{folder}/settings.json",
            ["reconstruction.train", f"geometries.{job.model.geometry}"],
            {**job.model_dump(mode="json"), "seed": seed},
            [self.project.experiment("data").hierarchy(pos)],
            lambda artefact, machine: self._train(artefact, machine, Job(row, pos, seed)),
            [f"{folder}/{name}" for name in FILES[1:]],
        )

    def model_of(self, job: Job) -> Artefact:
        return self.model(job.row, job.condition, job.seed)

    @cache  # noqa: B019
    def evaluation(self, row: str, pos: str, seed: int) -> Artefact:
        return self.project.artefact(
            EVALUATION.format(row=row, pos=pos, seed=seed),
            ["reconstruction.evaluate"],
            metrics.reconstruction.settings,
            [self.model(row, pos, seed)],
            lambda artefact, machine: self._evaluate(artefact, machine, Job(row, pos, seed)),
        )

    @cache  # noqa: B019
    def ranks(self, row: str, pos: str, seed: int) -> Artefact:
        """Effective rank and number of descendants of every node, for the figure."""
        return self.project.artefact(
            RANKS.format(row=row, pos=pos, seed=seed),
            ["reconstruction.ranks"],
            {},
            [self.model(row, pos, seed)],
            lambda artefact, machine: self._list_ranks(artefact, machine, pos),
        )

    def artefacts(self) -> Iterable[Artefact]:
        jobs = [(job.row, job.condition, job.seed) for job in self.jobs()]
        judged = [job for job in jobs if job[0] in self.tables[0].rows]  # the other rows are there for HyperLex
        figure = self.params.figures.rank_vs_descendants.model
        return [
            *(self.model(*job) for job in jobs),
            *(self.evaluation(*job) for job in judged),
            self.ranks(figure, "nouns", self.first_seed),
        ]

    # --- numbers ----------------------------------------------------------------------------------------------------------

    def evidence(self, table: Layout, row: str, column: Column) -> tuple[Artefact, ...]:
        jobs = [job for job in self.jobs() if (job.row, job.condition) == (row, column.condition)]
        return tuple(self.evaluation(job.row, job.condition, job.seed) for job in jobs)

    def extent(self, evaluation: Mapping[str, Any]) -> tuple[bool, str]:
        return wordnet_extent(evaluation, "whole hierarchy")

    # --- jobs -------------------------------------------------------------------------------------------------------------

    def _train(self, artefact: Artefact, machine: Machine, job: Job) -> None:
        from subspaces.hierarchy.reconstruction import fit_reconstruction, graph_of
        from subspaces.pipeline.run import open_run
        from subspaces.training.progress import ConsoleProgress

        asked = self.settings.job(job.row, job.condition, self.params.scale)
        path = HIERARCHY.format(pos=job.condition)
        data = read_json(f"{path}.json")
        graph = graph_of(asked.subtree, Path(f"{path}.npz"), data["sample"])
        edges = asked.training.edges_per_step(len(graph.ancestors))
        progress = ConsoleProgress(f"{job.row} {job.condition} seed {job.seed}", "edges", edges)
        names = ("sample", "origin", "sha256", "source", "instance_hypernyms")
        record = {"data": {name: data[name] for name in names}}
        device = self.device(machine, asked.model.geometry == "subspace")
        run = open_run(artefact, self.params.checkpoint, progress, job.seed, machine.threads, record, device)
        if run is not None:
            settings = fit_reconstruction(asked, graph, run)
            progress.say(f"{settings['steps']:,} steps done, weights in {run.out}")

    def _evaluate(self, artefact: Artefact, machine: Machine, job: Job) -> None:
        from subspaces.experiments.reconstruction.evaluate import evaluate_reconstruction
        from subspaces.pipeline.run import JobCheckpoints
        from subspaces.training.progress import ConsoleProgress

        model = artefact.inputs[0]
        progress = ConsoleProgress(f"evaluate {job.row} {job.condition} seed {job.seed}", "nodes")
        extra = {"row": job.row, "pos": job.condition, "seed": job.seed, "scale": self.params.scale}
        measured = evaluate_reconstruction(
            model.path.parent,
            Path(f"{HIERARCHY.format(pos=job.condition)}.npz"),
            artefact.path,
            artefact.key,
            machine.threads,
            progress.tick,
            extra,
            self.device(machine, self.settings.models[job.row].geometry == "subspace"),
        )["metrics"]
        JobCheckpoints(model).drop_finished()
        progress.say(f"mAP {measured['map']:.2f} %  MR {measured['mr']:.3f}  ρ {measured['rho']:.1f}")

    def _list_ranks(self, artefact: Artefact, machine: Machine, pos: str) -> None:
        from subspaces.experiments.reconstruction.evaluate import write_ranks

        folder, graph = artefact.inputs[0].path.parent, Path(f"{HIERARCHY.format(pos=pos)}.npz")
        write_ranks(folder, graph, artefact.path, artefact.key, machine.threads)
