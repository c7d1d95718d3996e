"""The compositional retrieval benchmark as artefacts: our extension of the paper's last figure (§4.6)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path

from subspaces.files import read_json
from subspaces.pipeline.artefact import Artefact, Machine
from subspaces.pipeline.experiment import SOURCES, Experiment
from subspaces.search.calibration import PROFILE, SearchProfile

EVALUATION = "results/evaluations/compositional_retrieval/benchmark.json"
SEARCH = f"results/evaluations/compositional_retrieval/{PROFILE}"  # to be copied into the folder of the model
INDEX = "data/compositional_retrieval"


class CompositionalRetrievalExperiment(Experiment):
    name = "compositional_retrieval"

    @property
    def settings(self):
        return self.params.compositional_retrieval

    def not_run(self, row: str = "", condition: str = "") -> str | None:
        if self.params.scale == "quick":
            return "needs all images of Flickr30k"
        snli = self.project.experiment("snli")
        trained = self.settings.model in self.params.snli.models
        return self.settings.not_run or (snli.not_run(self.settings.model, "2way") if trained else None)

    @cache  # noqa: B019
    def evaluation(self) -> Artefact:
        data, chosen = self.project.experiment("data"), self.settings
        settings = chosen.model_dump(include={"model", "backbone", "seed"})
        inputs = [data.source(name) for name in ("flickr30k", "wordnet", chosen.backbone)]
        if chosen.model in self.params.snli.models:
            snli = self.project.experiment("snli")
            inputs.append(snli.model(chosen.model, "2way", snli.first_seed))
        else:
            settings["weights"] = read_json(self._shipped / "settings.json")["weights_sha256"]
        return self.project.artefact(
            EVALUATION, ["compositional_retrieval.evaluate"], settings, inputs, self._evaluate, [SEARCH]
        )

    def evaluations(self) -> list[Artefact]:
        """The evaluation, or nothing where the benchmark is not run."""
        return [] if self.not_run() else [self.evaluation()]

    def artefacts(self) -> Iterable[Artefact]:
        return self.evaluations()

    @property
    def _shipped(self) -> Path:
        return Path(str(files("subspaces.text").joinpath("models", self.settings.model)))

    def _evaluate(self, artefact: Artefact, machine: Machine) -> None:
        from subspaces.experiments.compositional_retrieval.benchmark import Benchmark
        from subspaces.experiments.compositional_retrieval.evaluate import write_evaluation
        from subspaces.text.load import load_text_model
        from subspaces.training.loop import set_threads
        from subspaces.training.progress import ConsoleProgress

        set_threads(machine.threads)
        chosen = self.settings
        trained = chosen.model in self.params.snli.models
        model = load_text_model(artefact.inputs[-1].path.parent if trained else self._shipped, SOURCES)
        found = write_evaluation(
            model,
            SOURCES / chosen.backbone,
            Benchmark.load(SOURCES / "flickr30k" / "captions.txt", SOURCES / "wordnet"),
            Path(INDEX) / model.fingerprint[:16],
            artefact.settings,
            artefact.path,
            artefact.key,
            machine.threads,
            self.params.scale,
            ConsoleProgress("documents of the benchmark", "captions"),
        )
        SearchProfile.model_validate(found["profile"]).write(Path(SEARCH).parent)
        print(
            f"chosen: {found['chosen']}, mean nDCG@10 {found['choosing_ndcg'][found['chosen']]:.1f} on the choosing half"
        )
