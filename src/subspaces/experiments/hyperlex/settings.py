"""Parameters of HyperLex (Table 3)."""

from __future__ import annotations

from pydantic import Field

from subspaces.geometries.gaussian import GaussianGeometry
from subspaces.hierarchy.link_prediction import LinkJob, LinkTraining
from subspaces.settings import Seeds, Some, Strict


class HyperlexScale(Strict):
    seeds: Seeds = Field(min_length=1)
    training: Some[LinkTraining] = Some[LinkTraining]()
    not_run: str | None = Field(
        None, min_length=10, description="why the Gaussians are not trained at this scale; null: they are"
    )


class HyperlexScales(Strict):
    quick: HyperlexScale
    laptop: HyperlexScale
    paper: HyperlexScale


class Hyperlex(Strict):
    """Points and subspaces come from the reconstruction models of nouns; the Gaussians are trained for this table only."""

    rows: list[str] = Field(min_length=1, description="rows of reconstruction.models, and gaussian-50")
    alpha: float = Field(ge=0, description="weight of the norms in the score of points (Nickel & Kiela: 1000)")
    gaussian: GaussianGeometry.Settings
    training: LinkTraining
    scales: HyperlexScales

    def budget(self, scale: str) -> HyperlexScale:
        return getattr(self.scales, scale)

    def job(self, scale: str, subtree: str | None) -> LinkJob:
        """Everything that decides the Gaussians, which learn the whole noun closure."""
        merged = self.training.model_dump() | self.budget(scale).training.model_dump(exclude_none=True)
        return LinkJob(model=self.gaussian, training=LinkTraining(**merged), subtree=subtree, threshold="exact")
