"""Parameters of the compositional retrieval benchmark."""

from __future__ import annotations

from pydantic import Field

from subspaces.settings import Strict


class CompositionalRetrieval(Strict):
    model: str = Field(min_length=1, description="a subspace row of snli.models, or the name of a model that ships")
    backbone: str = Field(
        min_length=1, description="a source: the plain encoder of text, vector arithmetic and cosines"
    )
    seed: int = Field(ge=0, description="of calibration samples and bootstrap intervals")
    not_run: str | None = Field(None, description="why the benchmark is not run; null: it is run")
