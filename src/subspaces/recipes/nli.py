"""SNLI: the pairs, the models of Tables 5 and 9, their evaluations."""

from __future__ import annotations

from subspaces.keys import Recipe
from subspaces.paper import registry
from subspaces.paper.registry import PaperNumber
from subspaces.recipes.base import BaseRecipes

_WAYS = {2: "two", 3: "three"}


class NliRecipes(BaseRecipes):
    @property
    def snli_budget(self):
        return getattr(self.params.snli.scales, self.params.scale)

    @property
    def snli_sources(self) -> list[str]:
        """What is asked for at least; more is taken where it can be had (`subspaces snli build`)."""
        return ["snli_full"] if self.snli_budget.data == "full" else ["snli"]

    def snli_data(self) -> Recipe:
        """The key does not say which part of SNLI could be had, so that committed results count as built wherever they are read; the
        record does, and every number made from it."""
        inputs = tuple(self.source(name) for name in self.snli_sources)
        return Recipe("data/snli.json", {"data": self.snli_budget.data}, ("subspaces.nli.data",), inputs)

    def snli_not_run(self, row: str, ways: int) -> str | None:
        """Why a row of the SNLI tables is not run at this scale, or None."""
        return self.snli_budget.not_run.get(row.partition("@")[0], {}).get(_WAYS[ways])

    @property
    def snli_rows(self) -> list[tuple[str, int]]:
        """(row, ways) of all models: those of the two tables that are run at this scale, and those of the learning curve."""
        wanted = [(one.row, int(one.column[-4])) for table in ("snli", "lambda_sensitivity") for one in registry.of_table(table)]
        return [pair for pair in wanted if not self.snli_not_run(*pair)] + [(row, 2) for row in self.curve_rows]

    @property
    def curve_rows(self) -> list[str]:
        return [
            f"{row}@{pairs}" for row in self.params.snli.curve.models if not self.snli_not_run(row, 2) for pairs in self.snli_budget.curve
        ]

    @property
    def snli_jobs(self) -> list[tuple[str, int, int]]:
        """Seeds of the curve and the sweep: the first only."""
        extra = {*self.curve_rows, *self.params.snli.sweep_rows}
        seeds = self.snli_budget.seeds
        return [(*pair, seed) for pair in self.snli_rows for seed in (seeds[:1] if pair[0] in extra else seeds)]

    def snli_model(self, row: str, ways: int, seed: int) -> Recipe:
        job = self.params.snli.job(row, ways, self.params.scale)
        code = ("subspaces.nli.fit", f"subspaces.nli.encoders.{job['model']['encoder']}")
        inputs = (self.snli_data(), *([self.source(job["backbone"]["name"])] if job["backbone"] else []))
        return Recipe(f"models/snli/{row}/{ways}way/seed-{seed}/settings.json", {**job, "seed": seed}, code, inputs)

    def snli_evaluation(self, row: str, ways: int, seed: int) -> Recipe:
        model = self.snli_model(row, ways, seed)
        code = ("subspaces.nli.evaluate", model.code[1])
        return Recipe(f"results/evaluations/snli/{row}/{ways}way/seed-{seed}.json", {}, code, (model,))

    def snli_evaluations(self, row: str, ways: int) -> tuple[Recipe, ...]:
        return tuple(self.snli_evaluation(*job) for job in self.snli_jobs if job[:2] == (row, ways))

    def evidence_snli(self, entry: PaperNumber) -> tuple[Recipe, ...]:
        return self.snli_evaluations(entry.row, int(entry.column[-4]))

    def reason_snli(self, entry: PaperNumber) -> str | None:
        return self.snli_not_run(entry.row, int(entry.column[-4]))

    evidence_lambda_sensitivity = evidence_snli
    reason_lambda_sensitivity = reason_snli

    @property
    def backbones(self) -> list[str]:
        """The pretrained backbones that this scale needs."""
        jobs = [self.params.snli.job(row, ways, self.params.scale) for row, ways in self.snli_rows]
        return sorted({job["backbone"]["name"] for job in jobs if job["backbone"]})

    def snli_everything(self) -> list[Recipe]:
        return [
            self.snli_data(),
            *(self.snli_model(*job) for job in self.snli_jobs),
            *(self.snli_evaluation(*job) for job in self.snli_jobs),
        ]
