"""Parameters of HyperLex (Table 3)."""

from __future__ import annotations

from pydantic import Field

from subspaces.params.base import Seeds, Strict
from subspaces.params.link_prediction import GaussianModel, LinkTraining, SomeLinkTraining


class HyperlexScale(Strict):
    seeds: Seeds = Field(min_length=1)
    training: SomeLinkTraining = SomeLinkTraining()
    not_run: str | None = Field(None, min_length=10, description="why the Gaussians are not trained at this scale; null: they are")


class HyperlexScales(Strict):
    quick: HyperlexScale
    laptop: HyperlexScale
    paper: HyperlexScale


class Hyperlex(Strict):
    """Points and subspaces come from the reconstruction models of nouns; the Gaussians are trained for this table only."""

    rows: list[str] = Field(min_length=1, description="rows of reconstruction.models, and gaussian-50")
    alpha: float = Field(ge=0, description="weight of the norms in the score of points (Nickel & Kiela: 1000)")
    gaussian: GaussianModel
    training: LinkTraining
    scales: HyperlexScales
