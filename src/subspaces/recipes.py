"""Every artefact of the workflow as a Recipe: the one place that says what depends on what.

Snakemake asks it for keys and paths, the commands ask it what to write into their outputs, DVC's stages are generated from it.
Nothing here imports torch: it is read at every start of the workflow.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from subspaces.errors import UserError
from subspaces.files import read_json
from subspaces.keys import Recipe
from subspaces.paper import registry
from subspaces.params import POS, Params
from subspaces.sources.registry import get

FIGURES = ("overview", "rank_vs_descendants")
_GEOMETRIES = "subspaces.wordnet.geometries"


class Recipes:
    """The recipes for one set of parameters in one working folder."""

    def __init__(self, params: Params, folder: Path = Path()):
        self.params, self.folder = params, Path(folder)

    # --- sources and data -------------------------------------------------------------------------------------------------

    def source(self, name: str) -> Recipe:
        """The raw files: the registry's digests, or the sample's when a sample is what there is (quick scale only)."""
        source = get(name)
        output = f"data/sources/{name}.json"
        settings: dict[str, Any] = {"source": name, "files": {one.name: one.sha256 for one in source.files}}
        record = self.folder / output
        if self.params.scale == "quick" and record.exists():
            content = read_json(record)
            if content.get("sample"):
                settings = {"source": name, "sample": content["files"]}
        return Recipe(output, settings)

    def hierarchy(self, pos: str) -> Recipe:
        settings = {"pos": pos, "instance_hypernyms": self.params.wordnet.instance_hypernyms}
        code = ("subspaces.wordnet.prepare",)
        return Recipe(f"data/wordnet/{pos}.json", settings, code, (self.source("wordnet"),))

    # --- reconstruction ---------------------------------------------------------------------------------------------------

    @property
    def reconstruction_rows(self) -> list[tuple[str, str]]:
        """(row, part of speech) of every model that is run at this scale."""
        return [(row, pos) for row in self.params.reconstruction.models for pos in POS if not self.params.not_run(row, pos)]

    @property
    def reconstruction_jobs(self) -> list[tuple[str, str, int]]:
        return [(*pair, seed) for pair in self.reconstruction_rows for seed in self.params.reconstruction_budget.seeds]

    def reconstruction_model(self, row: str, pos: str, seed: int) -> Recipe:
        job = self.params.reconstruction_job(row, pos)
        code = ("subspaces.wordnet.fit", f"{_GEOMETRIES}.{job['model']['geometry']}")
        output = f"models/reconstruction/{row}/{pos}/seed-{seed}/settings.json"
        return Recipe(output, {**job, "seed": seed}, code, (self.hierarchy(pos),))

    def reconstruction_evaluation(self, row: str, pos: str, seed: int) -> Recipe:
        model = self.reconstruction_model(row, pos, seed)
        code = ("subspaces.wordnet.evaluate", model.code[1])
        return Recipe(f"results/evaluations/reconstruction/{row}/{pos}/seed-{seed}.json", {}, code, (model,))

    def reconstruction_ranks(self, row: str, pos: str, seed: int) -> Recipe:
        model = self.reconstruction_model(row, pos, seed)
        code = ("subspaces.wordnet.evaluate", model.code[1])
        return Recipe(f"results/evaluations/reconstruction/{row}/{pos}/seed-{seed}.ranks.parquet", {}, code, (model,))

    def reconstruction_evaluations(self, row: str, pos: str) -> tuple[Recipe, ...]:
        return tuple(self.reconstruction_evaluation(row, pos, seed) for seed in self.params.reconstruction_budget.seeds)

    # --- the paper --------------------------------------------------------------------------------------------------------

    def evidence(self, identifier: str) -> tuple[Recipe, ...]:
        """The evaluations that a number is computed from; empty while its experiment does not exist."""
        entry = registry.number(identifier)
        pos = entry.column.split("-")[0]
        if entry.table == "reconstruction" and (entry.row, pos) in self.reconstruction_rows:
            return self.reconstruction_evaluations(entry.row, pos)
        return ()

    def reason_not_run(self, identifier: str) -> str | None:
        """Why a number has no evaluations; None where it has."""
        entry = registry.number(identifier)
        if entry.table == "reconstruction":
            return self.params.not_run(entry.row, entry.column.split("-")[0])
        return f"the experiment behind table {entry.table} is not part of this version yet"

    def number(self, identifier: str) -> Recipe:
        entry = registry.number(identifier)
        settings = {"id": identifier, "scale": self.params.scale, "paper": {"value": entry.value, "sd": entry.sd}}
        settings |= {"unit": entry.unit, "better": entry.better, "reason": self.reason_not_run(identifier)}
        return Recipe(f"results/numbers/{identifier}.json", settings, ("subspaces.paper.numbers",), self.evidence(identifier))

    def table(self, name: str) -> Recipe:
        inputs = tuple(self.number(one.id) for one in registry.of_table(name))
        return Recipe(f"results/tables/{name}.tex", {"table": name}, ("subspaces.paper.tables",), inputs)

    @cached_property
    def bounds(self) -> Recipe:
        settings = self.params.bounds.model_dump()
        return Recipe("results/evaluations/soft_projectors.json", settings, ("subspaces.bounds",))

    @cached_property
    def bounds_table(self) -> Recipe:
        return Recipe("results/tables/soft_projectors.tex", {"table": "soft_projectors"}, ("subspaces.bounds",), (self.bounds,))

    def figure(self, name: str) -> Recipe:
        if name == "overview":
            return Recipe("figures/overview.png", {}, ("subspaces.paper.figures.overview",))
        if name == "rank_vs_descendants":
            settings = self.params.figures.rank_vs_descendants.model_dump()
            inputs = (self.reconstruction_ranks(settings["model"], "nouns", self.params.reconstruction_budget.seeds[0]),)
            return Recipe("figures/rank_vs_descendants.png", settings, ("subspaces.paper.figures.rank_vs_descendants",), inputs)
        raise UserError(f"unknown figure {name!r}: choose one of {', '.join(FIGURES)}.")

    # --- all of it --------------------------------------------------------------------------------------------------------

    @property
    def table_names(self) -> list[str]:
        return ["soft_projectors", *registry.tables()]

    def any_table(self, name: str) -> Recipe:
        return self.bounds_table if name == "soft_projectors" else self.table(name)

    def everything(self) -> list[Recipe]:
        """All recipes, those before that others are made from."""
        jobs = self.reconstruction_jobs
        return [
            self.source("wordnet"),
            *(self.hierarchy(pos) for pos in POS),
            *(self.reconstruction_model(*job) for job in jobs),
            *(self.reconstruction_evaluation(*job) for job in jobs),
            *self.figure("rank_vs_descendants").inputs,
            *(self.number(identifier) for identifier in registry.numbers()),
            self.bounds,
            *(self.any_table(name) for name in self.table_names),
            *(self.figure(name) for name in FIGURES),
        ]
