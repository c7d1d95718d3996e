"""Parameters of HyperLex (Table 3)."""

from __future__ import annotations

from pydantic import Field

from subspaces.geometries.gaussian import GaussianGeometry
from subspaces.hierarchy.link_prediction import LinkJob, LinkTraining
from subspaces.settings import Reason, Seeds, Some, Strict


class HyperlexScale(Strict):
    seeds: Seeds = Field(min_length=1)
    training: Some[LinkTraining] = Some[LinkTraining]()
    subtree: str | None = Field(None, description="the Gaussians are trained below this node; null: on all nouns")
    not_run: dict[str, Reason] = Field({}, description="row: why it is not run at this scale")


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

    def job(self, scale: str) -> LinkJob:
        """Everything that decides the Gaussians, which learn the closure of the nouns."""
        budget = self.budget(scale)
        training = LinkTraining(**self.training.model_dump() | budget.training.model_dump(exclude_none=True))
        return LinkJob(model=self.gaussian, training=training, subtree=budget.subtree, threshold="exact")
