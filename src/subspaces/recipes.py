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
from subspaces.params import COVERAGES, POS, Params
from subspaces.sources.registry import get

FIGURES = ("overview", "rank_vs_descendants", "link_prediction_coverage", "link_prediction_time")
_GEOMETRIES = "subspaces.wordnet.geometries"
_ENTAILMENT = "subspaces.wordnet.entailment"


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
        """(row, part of speech) of every model that is trained at this scale."""
        return [(row, pos) for row in self.params.reconstruction.models for pos in POS if not self.params.not_run(row, pos)]

    @property
    def reconstruction_jobs(self) -> list[tuple[str, str, int]]:
        return [(*pair, seed) for pair in self.reconstruction_rows for seed in self.params.reconstruction_budget.seeds]

    @property
    def reconstruction_judged(self) -> list[tuple[str, str, int]]:
        """Those of Table 2; the others are there for HyperLex."""
        rows = {one.row for one in registry.of_table("reconstruction")}
        return [job for job in self.reconstruction_jobs if job[0] in rows]

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

    # --- HyperLex ---------------------------------------------------------------------------------------------------------

    def gaussian_model(self, seed: int) -> Recipe:
        """The Gaussians learn the whole noun closure; they are for this table only."""
        code = ("subspaces.wordnet.link_fit", f"{_ENTAILMENT}.gaussian")
        return Recipe(
            f"models/hyperlex/gaussian-50/seed-{seed}/settings.json",
            {**self.params.gaussian_job(), "seed": seed},
            code,
            (self.hierarchy("nouns"),),
        )

    @property
    def gaussian_models(self) -> list[Recipe]:
        budget = self.params.hyperlex_budget
        return [] if budget.not_run else [self.gaussian_model(seed) for seed in budget.seeds]

    @property
    def hyperlex_jobs(self) -> list[tuple[str, int]]:
        """(row, seed) of every evaluation: the seeds of the models that it is made from."""
        jobs = []
        for row in self.params.hyperlex.rows:
            own = row == "gaussian-50"
            if not (self.params.hyperlex_budget.not_run if own else self.params.not_run(row, "nouns")):
                seeds = self.params.hyperlex_budget.seeds if own else self.params.reconstruction_budget.seeds
                jobs += [(row, seed) for seed in seeds]
        return jobs

    def hyperlex_model(self, row: str, seed: int) -> Recipe:
        return self.gaussian_model(seed) if row == "gaussian-50" else self.reconstruction_model(row, "nouns", seed)

    def hyperlex_evaluation(self, row: str, seed: int) -> Recipe:
        model = self.hyperlex_model(row, seed)
        inputs = (model, self.source("hyperlex"), self.source("wordnet"))
        code = ("subspaces.wordnet.hyperlex_evaluate", model.code[1])
        return Recipe(f"results/evaluations/hyperlex/{row}/seed-{seed}.json", {"alpha": self.params.hyperlex.alpha}, code, inputs)

    # --- link prediction --------------------------------------------------------------------------------------------------

    def split(self, coverage: int) -> Recipe:
        """Edges to learn and to be judged by. The key says nothing of where the 50 % edges came from, so that committed results count as
        built wherever they are read; the record does, and every number made from it."""
        family, subtree = self.params.link_prediction, self.params.link_budget.subtree
        settings = {"coverage": coverage, "seed": family.draw_seed, "subtree": subtree}
        origin = self.hierarchy("nouns") if subtree else self.source("wordnet_link_prediction")
        return Recipe(f"data/link_prediction/{coverage}.json", settings, ("subspaces.wordnet.splits",), (origin,))

    @property
    def link_rows(self) -> list[tuple[str, int]]:
        """(row, coverage) of every model that is run at this scale."""
        rows = self.params.link_prediction.models
        return [(row, coverage) for row in rows for coverage in COVERAGES if not self.params.link_not_run(row, coverage)]

    @property
    def link_jobs(self) -> list[tuple[str, int, int]]:
        return [(*pair, seed) for pair in self.link_rows for seed in self.params.link_budget.seeds]

    def link_model(self, row: str, coverage: int, seed: int) -> Recipe:
        job = self.params.link_job(row, coverage)
        code = ("subspaces.wordnet.link_fit", f"{_ENTAILMENT}.{job['model']['geometry']}")
        output = f"models/link_prediction/{row}/{coverage}/seed-{seed}/settings.json"
        return Recipe(output, {**job, "seed": seed}, code, (self.split(coverage),))

    def link_evaluation(self, row: str, coverage: int, seed: int) -> Recipe:
        model = self.link_model(row, coverage, seed)
        code = ("subspaces.wordnet.link_evaluate", model.code[1])
        return Recipe(f"results/evaluations/link_prediction/{row}/{coverage}/seed-{seed}.json", {}, code, (model,))

    # --- the paper --------------------------------------------------------------------------------------------------------

    def evidence(self, identifier: str) -> tuple[Recipe, ...]:
        """The evaluations that a number is computed from; empty while its experiment does not exist."""
        entry = registry.number(identifier)
        pos = entry.column.split("-")[0]
        if entry.table == "reconstruction" and (entry.row, pos) in self.reconstruction_rows:
            return self.reconstruction_evaluations(entry.row, pos)
        if entry.table == "link_prediction":
            found = [job for job in self.link_jobs if job[:2] == (entry.row, int(entry.column.removeprefix("f1-")))]
            return tuple(self.link_evaluation(*job) for job in found)
        if entry.table == "hyperlex":
            return tuple(self.hyperlex_evaluation(*job) for job in self.hyperlex_jobs if job[0] == entry.row)
        return ()

    def reason_not_run(self, identifier: str) -> str | None:
        """Why a number has no evaluations; None where it has."""
        entry = registry.number(identifier)
        if entry.table == "reconstruction":
            return self.params.not_run(entry.row, entry.column.split("-")[0])
        if entry.table == "link_prediction":
            return self.params.link_not_run(entry.row, int(entry.column.removeprefix("f1-")))
        if entry.table == "hyperlex":
            return self.params.hyperlex_budget.not_run if entry.row == "gaussian-50" else self.params.not_run(entry.row, "nouns")
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
        if name == "link_prediction_coverage":
            inputs = self.table("link_prediction").inputs
            return Recipe(f"figures/{name}.png", {}, ("subspaces.paper.figures.link_prediction",), inputs)
        if name == "link_prediction_time":
            inputs = tuple(self.link_evaluation(*job) for job in self.link_jobs)
            return Recipe(f"figures/{name}.png", {}, ("subspaces.paper.figures.link_prediction",), inputs)
        raise UserError(f"unknown figure {name!r}: choose one of {', '.join(FIGURES)}.")

    # --- all of it --------------------------------------------------------------------------------------------------------

    @property
    def sources(self) -> list[str]:
        """The sources that this scale needs."""
        splits = [] if self.params.link_budget.subtree else ["wordnet_link_prediction"]
        return ["wordnet", "hyperlex", *splits]

    @property
    def table_names(self) -> list[str]:
        return ["soft_projectors", *registry.tables()]

    def any_table(self, name: str) -> Recipe:
        return self.bounds_table if name == "soft_projectors" else self.table(name)

    def everything(self) -> list[Recipe]:
        """All recipes, those before that others are made from."""
        return [
            *(self.source(name) for name in self.sources),
            *(self.hierarchy(pos) for pos in POS),
            *(self.reconstruction_model(*job) for job in self.reconstruction_jobs),
            *(self.reconstruction_evaluation(*job) for job in self.reconstruction_judged),
            *self.figure("rank_vs_descendants").inputs,
            *self.gaussian_models,
            *(self.hyperlex_evaluation(*job) for job in self.hyperlex_jobs),
            *(self.split(coverage) for coverage in COVERAGES),
            *(self.link_model(*job) for job in self.link_jobs),
            *(self.link_evaluation(*job) for job in self.link_jobs),
            *(self.number(identifier) for identifier in registry.numbers()),
            self.bounds,
            *(self.any_table(name) for name in self.table_names),
            *(self.figure(name) for name in FIGURES),
        ]
