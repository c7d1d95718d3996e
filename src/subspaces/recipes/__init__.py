"""Every artefact of the workflow as a Recipe: the one place that says what depends on what. One file per room.

Snakemake asks it for keys and paths, the commands ask it what to write into their outputs, DVC's stages are generated from it.
Nothing here imports torch: it is read at every start of the workflow.
"""

from __future__ import annotations

from subspaces.keys import Recipe
from subspaces.paper import registry
from subspaces.recipes.paper import EXTRA_TABLES, FIGURES, OWN_TABLES, PaperRecipes

__all__ = ["EXTRA_TABLES", "FIGURES", "OWN_TABLES", "Recipes"]


class Recipes(PaperRecipes):
    """All of them."""

    @property
    def sources(self) -> list[str]:
        """The sources that this scale needs."""
        splits = [] if self.params.link_budget.subtree else ["wordnet_link_prediction"]
        return ["wordnet", "hyperlex", *splits, *self.snli_sources, *self.backbones, "composition", "flickr30k"]

    def everything(self) -> list[Recipe]:
        """All recipes, those before that others are made from."""
        return [
            *(self.source(name) for name in self.sources),
            *self.wordnet_everything(),
            *self.figure("rank_vs_descendants").inputs,
            *self.snli_everything(),
            *self.composition_everything(),
            *self.retrieval_everything(),
            *(self.number(identifier) for identifier in registry.numbers()),
            self.bounds,
            *(self.any_table(name) for name in self.table_names),
            *(self.figure(name) for name in FIGURES),
            self.page,
        ]
