"""Numbers, tables and figures of the paper."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from subspaces.errors import UserError
from subspaces.files import sha256_file
from subspaces.keys import Recipe
from subspaces.paper import registry
from subspaces.recipes.retrieval import COMPRESSED, RetrievalRecipes

# figure → the module that draws it, and its function there
FIGURES = {
    "overview": ("overview", "draw_overview"),
    "sph": ("sph", "draw_sph"),
    "rank_vs_descendants": ("rank_vs_descendants", "draw_ranks"),
    "link_prediction_coverage": ("link_prediction", "draw_coverage"),
    "link_prediction_time": ("link_prediction", "draw_time"),
    "inclusion_histograms": ("nli", "draw_histograms"),
    "entailment_chains": ("nli", "draw_chains"),
    "training_curves": ("nli", "draw_training_curves"),
    "accuracy_by_pairs": ("nli", "draw_accuracy_by_pairs"),
    "composition": ("composition", "draw_composition"),
    "compression": ("compression", "draw_compression"),
    "storage": ("storage", "draw_storage"),
    "retrieval": ("retrieval", "draw_retrieval"),
}


# table of subspaces.paper.extras → what it is made from
EXTRA_TABLES: dict[str, Callable[[PaperRecipes], tuple[Recipe, ...]]] = {
    "link_prediction_extra": lambda recipes: tuple(recipes.link_evaluation(*job) for job in recipes.link_jobs),
    "retrieval_extra": lambda recipes: (recipes.latency,),
    "encoding_overhead": lambda recipes: (recipes.encoding,),
}
OWN_TABLES = ("soft_projectors", "composition_extra", *EXTRA_TABLES)  # made from evaluations, not from the paper's numbers


class PaperRecipes(RetrievalRecipes):
    def evidence(self, identifier: str) -> tuple[Recipe, ...]:
        """The evaluations that a number is computed from; empty where it is not run, or its experiment does not exist yet."""
        entry = registry.number(identifier)
        found = getattr(self, f"evidence_{entry.table}", None)
        return found(entry) if found else ()

    def reason_not_run(self, identifier: str) -> str | None:
        """Why a number has no evaluations; None where it has."""
        entry = registry.number(identifier)
        found = getattr(self, f"reason_{entry.table}", None)
        return found(entry) if found else f"the experiment behind table {entry.table} is not part of this version yet"

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

    @property
    def table_names(self) -> list[str]:
        return [*registry.tables(), *OWN_TABLES]

    def any_table(self, name: str) -> Recipe:
        """Those of the paper, and those of our own."""
        if name in EXTRA_TABLES:
            return self.extra_table(name)
        ours = {"soft_projectors": self.bounds_table, "composition_extra": self.composition_extra}
        return ours[name] if name in ours else self.table(name)

    def extra_table(self, name: str) -> Recipe:
        """What the paper does not print."""
        return Recipe(f"results/tables/{name}.tex", {"table": name}, ("subspaces.paper.extras",), EXTRA_TABLES[name](self))

    # --- the page ---------------------------------------------------------------------------------------------------------

    @property
    def page(self) -> Recipe:
        """results/report.html: every number, table and figure, with where they came from."""
        from subspaces.paper.page.assets import asset_digests

        texts = [self.project / "docs/deviations.md", self.project / "CITATION.cff", *sorted(self.report_captions.glob("*.rst"))]
        settings = {"assets": asset_digests(), "texts": {one.name: sha256_file(one) for one in texts if one.exists()}}
        inputs = [self.number(one) for one in registry.numbers()]
        inputs += [self.any_table(name) for name in OWN_TABLES] + [self.figure(name) for name in FIGURES]
        return Recipe("results/report.html", settings, ("subspaces.paper.page.build",), tuple(inputs))

    @property
    def report_captions(self) -> Path:
        return self.project / "workflow/report"

    # --- figures ----------------------------------------------------------------------------------------------------------

    def figure(self, name: str) -> Recipe:
        if name not in FIGURES:
            raise UserError(f"unknown figure {name!r}: choose one of {', '.join(FIGURES)}.")
        chosen = getattr(self.params.figures, name, None)
        settings = chosen.model_dump() if chosen else {}
        return Recipe(f"figures/{name}.png", settings, (f"subspaces.paper.figures.{FIGURES[name][0]}",), self.drawn_from(name))

    def drawn_from(self, name: str) -> tuple[Recipe, ...]:
        """The files that a figure shows; a new figure has one line here."""
        seed = self.snli_budget.seeds[0]
        shown = self.params.figures.snli_model
        match name:
            case "rank_vs_descendants":
                row = self.params.figures.rank_vs_descendants.model
                return (self.reconstruction_ranks(row, "nouns", self.params.reconstruction_budget.seeds[0]),)
            case "link_prediction_coverage":
                return self.table("link_prediction").inputs
            case "link_prediction_time":
                return tuple(self.link_evaluation(*job) for job in self.link_jobs)
            case "inclusion_histograms":
                return tuple(self.snli_evaluation(shown, ways, seed) for ways in (2, 3) if not self.snli_not_run(shown, ways))
            case "entailment_chains":
                return (self.snli_evaluation(shown, 2, seed),)
            case "training_curves":
                rows = [(row, ways, first) for row, ways, first in self.snli_jobs if row in self.params.snli.models and first == seed]
                return tuple(self.snli_evaluation(*job) for job in rows)
            case "compression":
                return tuple(map(self.compression, COMPRESSED))
            case "storage":
                return (self.latency,)
            case "retrieval":
                return (self.found,)
            case "composition":
                return self.table("composition").inputs
            case "accuracy_by_pairs":
                rows = [*self.curve_rows, *(row for row in self.params.snli.curve.models if not self.snli_not_run(row, 2))]
                return tuple(self.snli_evaluation(row, 2, seed) for row in rows)
        return ()
