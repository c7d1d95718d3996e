"""Tables 5 and 9: textual entailment on SNLI, and the learning curve. Composition and efficiency use the 2-way models."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory

from subspaces.experiments import metrics
from subspaces.experiments.data import SNLI
from subspaces.files import read_json, sha256_file, write_json, write_text
from subspaces.pipeline.artefact import Artefact, Machine
from subspaces.pipeline.experiment import SOURCES, Experiment, Job
from subspaces.report import registry
from subspaces.report.layouts import LAYOUTS, Column, Layout
from subspaces.sources.registry import TINY_BACKBONE

MODEL = "models/snli/{row}/{ways}/seed-{seed}"
EVALUATION = "results/evaluations/snli/{row}/{ways}/seed-{seed}.json"
FILES = ("settings.json", "weights.safetensors", "tokenizer.json", "history.csv", "timing.json")
WAYS = {"2way": 2, "3way": 3}
SHIPPED = "models/shipped"
PACKAGED = Path(str(files("subspaces.text").joinpath("models/subspaces-minilm-64")))
SHIPPED_FILES = ("settings.json", "weights.safetensors", "history.csv", "timing.json")


class SnliExperiment(Experiment):
    name = "snli"
    tables = (
        LAYOUTS["snli"],
        LAYOUTS["lambda_sensitivity"],
    )

    @property
    def settings(self):
        return self.params.snli

    @property
    def budget(self):
        return self.settings.budget(self.params.scale)

    @property
    def first_seed(self) -> int:
        return self.budget.seeds[0]

    def not_run(self, row: str, condition: str) -> str | None:
        return self.settings.not_run(row, WAYS[condition], self.params.scale)

    def curve_rows(self) -> list[str]:
        """The points of the learning curve: rows trained 2-way on fewer pairs."""
        return [row for row in self.settings.curve_rows(self.params.scale) if not self.not_run(row, "2way")]

    def shipped_rows(self) -> list[tuple[str, str]]:
        """The row of the model that ships, unless it is not run at this scale."""
        row = self.settings.shipped
        return [] if self.not_run(row, "2way") else [(row, "2way")]

    def subspace_row(self, row: str) -> str:
        """What figures and retrieval are made with: this row, or the model of the package at scales that take it."""
        return self.settings.shipped if self.budget.packaged and self.shipped_rows() else row

    def jobs(self) -> list[Job]:
        """Rows of the two tables, points of the curve and the model that ships; the last two and the λ sweep have one seed."""
        seeds = self.budget.seeds
        table, sweep = (
            [
                (number.row, condition)
                for number in registry.of_table(layout.name)
                if not self.not_run(number.row, condition := layout.column(number.column).condition)
            ]
            for layout in self.tables
        )
        single = [*sweep, *((row, "2way") for row in self.curve_rows()), *self.shipped_rows()]
        return [
            *(Job(row, ways, seed) for row, ways in table for seed in seeds),
            *(Job(row, ways, seeds[0]) for row, ways in single),
        ]

    @property
    def backbones(self) -> list[str]:
        """The pretrained backbones that this scale needs."""
        jobs = {(job.row, job.condition) for job in self.jobs()}
        needed = {self.settings.job(row, WAYS[ways], self.params.scale).backbone for row, ways in jobs}
        return sorted({backbone.name for backbone in needed if backbone})

    @cache  # noqa: B019
    def model(self, row: str, ways: str, seed: int) -> Artefact:
        job = self.settings.job(row, WAYS[ways], self.params.scale)
        data = self.project.experiment("data")
        folder = MODEL.format(row=row, ways=ways, seed=seed)
        packaged = {"packaged": sha256_file(PACKAGED / "weights.safetensors")} if self._is_packaged(row) else {}
        return self.project.artefact(
            f"{folder}/settings.json",
            ["snli.train", f"encoders.{job.model.encoder}"],
            {**job.model_dump(mode="json"), "seed": seed, **packaged},
            [data.snli(), *([data.source(job.backbone.name)] if job.backbone else [])],
            lambda artefact, machine: self._train(artefact, machine, Job(row, ways, seed)),
            [f"{folder}/{name}" for name in FILES[1:]],
        )

    def _is_packaged(self, row: str) -> bool:
        return self.budget.packaged and row == self.settings.shipped

    def model_of(self, job: Job) -> Artefact:
        return self.model(job.row, job.condition, job.seed)

    @cache  # noqa: B019
    def shipped(self) -> Artefact:
        """The model of the package: the trained row `shipped`, in half precision."""
        return self.project.artefact(
            f"{SHIPPED}/settings.json",
            ["snli.ship"],
            {"precision": "half"},
            [self.model(self.settings.shipped, "2way", self.first_seed)],
            self._ship,
            [f"{SHIPPED}/{name}" for name in SHIPPED_FILES[1:]],
        )

    def judged_model(self, row: str, ways: str, seed: int) -> Artefact:
        """What evaluations of a row read: its trained model; of the row that ships, the model as the package has it."""
        return self.shipped() if row == self.settings.shipped else self.model(row, ways, seed)

    @cache  # noqa: B019
    def evaluation(self, row: str, ways: str, seed: int) -> Artefact:
        both_heads = {"ways": WAYS[ways]} if row == self.settings.shipped else {}
        return self.project.artefact(
            EVALUATION.format(row=row, ways=ways, seed=seed),
            ["snli.evaluate"],
            {**metrics.snli.settings, **both_heads},
            [self.judged_model(row, ways, seed)],
            lambda artefact, machine: self._evaluate(artefact, machine, Job(row, ways, seed)),
        )

    def artefacts(self) -> Iterable[Artefact]:
        jobs = [(job.row, job.condition, job.seed) for job in self.jobs()]
        judged = [job for job in jobs if job[0] != self.settings.shipped]
        shipped = [self.shipped()] if self.shipped_rows() else []
        judged += [(row, ways, self.first_seed) for row, _ in self.shipped_rows() for ways in WAYS]
        return [*(self.model(*job) for job in jobs), *shipped, *(self.evaluation(*job) for job in judged)]

    def extra_rows(self, table: Layout) -> dict[str, dict[str, Artefact]]:
        return {
            row: {column.id: self.evaluation(row, column.condition, self.first_seed) for column in table.cells}
            for row, _ in (self.shipped_rows() if table.name == "snli" else [])
        }

    def evidence(self, table: Layout, row: str, column: Column) -> tuple[Artefact, ...]:
        jobs = [job for job in self.jobs() if (job.row, job.condition) == (row, column.condition)]
        return tuple(self.evaluation(job.row, job.condition, job.seed) for job in jobs)

    def _train(self, artefact: Artefact, machine: Machine, job: Job) -> None:
        from subspaces.experiments.snli.fit import fit_entailment
        from subspaces.pipeline.run import open_run
        from subspaces.training.progress import ConsoleProgress

        asked = self.settings.job(job.row, WAYS[job.condition], self.params.scale)
        if self._is_packaged(job.row) and not (SOURCES / asked.backbone.name / TINY_BACKBONE[0]).exists():
            self._unpack(artefact, SOURCES / asked.backbone.name)
            return
        data = read_json(f"{SNLI}.json")
        pairs = min(asked.training.batch, asked.pairs or data["counts"]["train"])
        progress = ConsoleProgress(f"{job.row} {job.condition} seed {job.seed}", "pairs", pairs)
        names = ("sample", "origin", "sha256", "source", "counts", "dev_from", "dropped")
        record = {"data": {name: data[name] for name in names}}
        device = self.device(machine, large=True)
        run = open_run(artefact, self.params.checkpoint, progress, job.seed, machine.threads, record, device)
        if run is not None:
            settings = fit_entailment(asked, Path(f"{SNLI}.parquet"), SOURCES, run)
            progress.say(
                f"best after {settings['best_step']:,} of {settings['steps']:,} steps: "
                f"validation {settings['validation']:.2f} %"
            )

    def _unpack(self, artefact: Artefact, backbone: Path) -> None:
        """The model of the package as if it had been trained here; its record says how it was."""
        from subspaces.text.texts import backbone_tokeniser

        folder = artefact.path.parent
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("weights.safetensors", "history.csv", "timing.json"):
            copyfile(PACKAGED / name, folder / name)
        write_text(folder / "tokenizer.json", backbone_tokeniser(backbone).text)
        write_json(artefact.output, read_json(PACKAGED / "settings.json") | {"key": artefact.key})
        print(f"the model of the package, {PACKAGED.name}")

    def _evaluate(self, artefact: Artefact, machine: Machine, job: Job) -> None:
        from subspaces.experiments.snli.evaluate import evaluate_entailment
        from subspaces.pipeline.run import JobCheckpoints

        model = artefact.inputs[0]
        row = self.settings.base_row(job.row, self.params.scale)
        ways = WAYS[job.condition]
        extra = {"row": row, "ways": ways, "seed": job.seed, "scale": self.params.scale}
        result = evaluate_entailment(
            model.path.parent,
            Path(f"{SNLI}.parquet"),
            SOURCES,
            artefact.path,
            artefact.key,
            machine.threads,
            extra,
            self.device(machine, large=True),
            ways,
        )
        JobCheckpoints(model).drop_finished()
        accuracy = result["metrics"]["accuracy"]
        print(f"{job.row} {job.condition}: accuracy {accuracy:.2f} % ({result['extent']['text']})")

    def _ship(self, artefact: Artefact, machine: Machine) -> None:
        from subspaces.text.load import load_text_model
        from subspaces.text.subspace_encoder import SubspaceEncoder

        trained, folder = artefact.inputs[0], artefact.path.parent
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder.parent) as room:
            made = SubspaceEncoder(load_text_model(trained.path.parent, SOURCES)).save(Path(room) / folder.name)
            for name in ("history.csv", "timing.json"):
                copyfile(trained.path.parent / name, made / name)
            artefact.path.parent.mkdir(parents=True, exist_ok=True)
            for name in SHIPPED_FILES[1:]:
                copyfile(made / name, artefact.path.parent / name)
            write_json(artefact.output, read_json(made / "settings.json") | {"key": artefact.key})
