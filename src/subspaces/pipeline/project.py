"""The project: parameters, versions, and every artefact by its output. Snakemake, DVC and the commands all start here.

Reading it imports no experiment code beyond settings: jobs import what they need when they run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

from subspaces.errors import UserError
from subspaces.pipeline.artefact import Artefact, Machine
from subspaces.pipeline.experiment import Experiment
from subspaces.pipeline.params import Params, load_params

# experiment -> its class; data first, the report last: the order in which artefacts depend on each other
EXPERIMENTS = {
    "data": "subspaces.experiments.data:SharedData",
    "reconstruction": "subspaces.experiments.reconstruction.experiment:ReconstructionExperiment",
    "hyperlex": "subspaces.experiments.hyperlex.experiment:HyperlexExperiment",
    "link_prediction": "subspaces.experiments.link_prediction.experiment:LinkPredictionExperiment",
    "snli": "subspaces.experiments.snli.experiment:SnliExperiment",
    "composition": "subspaces.experiments.composition.experiment:CompositionExperiment",
    "efficiency": "subspaces.experiments.efficiency.experiment:EfficiencyExperiment",
    "compositional_retrieval": "subspaces.experiments.compositional_retrieval.experiment:CompositionalRetrievalExperiment",
    "models": "subspaces.pipeline.models:ModelRecords",
    "report": "subspaces.pipeline.report:ReportOutputs",
}


class Project:
    """All experiments for one set of parameters in one working folder."""

    def __init__(self, params: Params, root: Path = Path(), folder: Path = Path()):
        self.params, self.root, self.folder = params, Path(root), Path(folder)

    @classmethod
    def open(cls, params: Path = Path("params.yaml"), scale: str | None = None) -> Project:
        """The project whose parameter file is `params`, working in the current folder."""
        return cls(load_params(params, scale), root=params.resolve().parent)

    @cached_property
    def versions(self) -> dict[str, int]:
        """computation -> version, with dotted names, from workflow/versions.yaml."""
        path = self.root / "workflow/versions.yaml"
        if not path.is_file():
            raise UserError(f"{path} is missing: run from the project's folder.")
        return dict(_flat(yaml.safe_load(path.read_text(encoding="utf-8"))))

    @cache  # noqa: B019 — one project per process
    def experiment(self, name: str) -> Any:
        module, _, kind = EXPERIMENTS[name].partition(":")
        return getattr(import_module(module), kind)(self)

    @property
    def experiments(self) -> list[Experiment]:
        return [self.experiment(name) for name in EXPERIMENTS]

    def artefact(
        self,
        output: str,
        computations: Iterable[str],
        settings: Mapping[str, Any],
        inputs: Iterable[Artefact] = (),
        make: Callable[[Artefact, Machine], None] | None = None,
        beside: Iterable[str] = (),
    ) -> Artefact:
        """`computations` name entries of workflow/versions.yaml."""
        versions = {name: self._version(name) for name in computations}
        return Artefact(output, versions, settings, tuple(inputs), make, tuple(beside))

    def _version(self, computation: str) -> int:
        """A geometry or an encoder without an entry has version 1: a new one needs no line in versions.yaml before it changes."""
        default = 1 if computation.startswith(("geometries.", "encoders.")) else None
        version = self.versions.get(computation, default)
        if version is None:
            raise UserError(f"workflow/versions.yaml has no entry {computation}: add it with version 1.")
        return version

    @cached_property
    def artefacts(self) -> dict[str, Artefact]:
        """Every artefact by its output, inputs before what is made from them."""
        return {artefact.output: artefact for experiment in self.experiments for artefact in experiment.artefacts()}

    def made_by(self, output: str) -> Artefact:
        """The artefact whose job writes `output`."""
        output = Path(output).as_posix()
        for artefact in self.artefacts.values():
            if output == artefact.output or output in artefact.beside:
                return artefact
        raise UserError(
            f"no job makes {output} at {self.params.scale} scale. `subspaces status --all` lists every output, "
            "params.yaml says which rows are not run."
        )


def _flat(tree: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, int]]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", int(value)
