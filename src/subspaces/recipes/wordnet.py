"""WordNet: hierarchies, reconstruction (Table 2), HyperLex (Table 3), link prediction (Table 4)."""

from __future__ import annotations

from subspaces.keys import Recipe
from subspaces.paper import registry
from subspaces.paper.registry import PaperNumber
from subspaces.params import COVERAGES, POS
from subspaces.recipes.base import BaseRecipes

_GEOMETRIES = "subspaces.wordnet.geometries"
_ENTAILMENT = "subspaces.wordnet.entailment"


class WordnetRecipes(BaseRecipes):
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

    # --- what numbers are made from ---------------------------------------------------------------------------------------

    def evidence_reconstruction(self, entry: PaperNumber) -> tuple[Recipe, ...]:
        pos = entry.column.split("-")[0]
        return self.reconstruction_evaluations(entry.row, pos) if (entry.row, pos) in self.reconstruction_rows else ()

    def reason_reconstruction(self, entry: PaperNumber) -> str | None:
        return self.params.not_run(entry.row, entry.column.split("-")[0])

    def evidence_link_prediction(self, entry: PaperNumber) -> tuple[Recipe, ...]:
        found = [job for job in self.link_jobs if job[:2] == (entry.row, int(entry.column.removeprefix("f1-")))]
        return tuple(self.link_evaluation(*job) for job in found)

    def reason_link_prediction(self, entry: PaperNumber) -> str | None:
        return self.params.link_not_run(entry.row, int(entry.column.removeprefix("f1-")))

    def evidence_hyperlex(self, entry: PaperNumber) -> tuple[Recipe, ...]:
        return tuple(self.hyperlex_evaluation(*job) for job in self.hyperlex_jobs if job[0] == entry.row)

    def reason_hyperlex(self, entry: PaperNumber) -> str | None:
        return self.params.hyperlex_budget.not_run if entry.row == "gaussian-50" else self.params.not_run(entry.row, "nouns")

    # --- all of it --------------------------------------------------------------------------------------------------------

    def wordnet_data(self) -> list[Recipe]:
        return [*(self.hierarchy(pos) for pos in POS), *(self.split(coverage) for coverage in COVERAGES)]

    def wordnet_everything(self) -> list[Recipe]:
        return [
            *self.wordnet_data(),
            *(self.reconstruction_model(*job) for job in self.reconstruction_jobs),
            *(self.reconstruction_evaluation(*job) for job in self.reconstruction_judged),
            *self.gaussian_models,
            *(self.hyperlex_evaluation(*job) for job in self.hyperlex_jobs),
            *(self.link_model(*job) for job in self.link_jobs),
            *(self.link_evaluation(*job) for job in self.link_jobs),
        ]
