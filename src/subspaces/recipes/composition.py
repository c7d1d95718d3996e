"""The compositional set: filtered candidates, scores of every model (Table 6), and the extra table."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from subspaces.files import sha256_file
from subspaces.keys import Recipe
from subspaces.paper import registry
from subspaces.paper.registry import PaperNumber
from subspaces.recipes.nli import NliRecipes


class CompositionRecipes(NliRecipes):
    @property
    def reviewed_candidates(self) -> Path:
        """The review that params.yaml names, else the one that ships with the project."""
        named = self.params.composition.reviewed
        return self.folder / named if named else Path(str(files("subspaces.composition").joinpath("candidates.csv")))

    def composition_set(self) -> Recipe:
        """The kept candidates that all baselines judge right, composed."""
        family = self.params.composition
        path = self.reviewed_candidates
        settings = {name: getattr(family, name) for name in ("premises", "baselines", "least")}
        settings["reviewed"] = sha256_file(path) if path.exists() else None
        seed = self.snli_budget.seeds[0]
        pairs = getattr(family.filter_pairs, self.params.scale)
        names = {row: f"{row}@{pairs}" if pairs else row for row in family.baselines if not self.snli_not_run(row, 2)}
        inputs = tuple(self.snli_model(name, 2, seed) for name in names.values())
        code = tuple(sorted({"subspaces.composition.build", *(one.code[1] for one in inputs)}))
        return Recipe("results/composition/elicited.json", settings, code, inputs)

    @property
    def composition_jobs(self) -> list[tuple[str, int]]:
        """(row, seed) of every 2-way model in the table."""
        rows = dict.fromkeys(one.row for one in registry.of_table("composition"))
        return [(row, seed) for row, ways, seed in self.snli_jobs if ways == 2 and row in rows]

    def composition_evaluation(self, row: str, seed: int) -> Recipe:
        model, family = self.snli_model(row, 2, seed), self.params.composition
        code = ("subspaces.composition.evaluate", model.code[1])
        inputs = (model, self.composition_set(), self.source("composition"))
        settings = {"set": family.set, "operator": family.operator}
        return Recipe(f"results/evaluations/composition/{row}/seed-{seed}.json", settings, code, inputs)

    def evidence_composition(self, entry: PaperNumber) -> tuple[Recipe, ...]:
        return tuple(self.composition_evaluation(*job) for job in self.composition_jobs if job[0] == entry.row)

    def reason_composition(self, entry: PaperNumber) -> str | None:
        return self.snli_not_run(entry.row, 2)

    @property
    def composition_extra(self) -> Recipe:
        """What the paper leaves out: other operators, disjunction, double negation, plain text, the other set."""
        inputs = tuple(self.composition_evaluation(*job) for job in self.composition_jobs)
        return Recipe("results/tables/composition_extra.tex", {}, ("subspaces.composition.extra_table", "subspaces.paper.layouts"), inputs)

    def composition_everything(self) -> list[Recipe]:
        return [self.composition_set(), *(self.composition_evaluation(*job) for job in self.composition_jobs)]
