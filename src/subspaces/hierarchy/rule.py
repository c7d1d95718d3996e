"""How a hierarchy is fitted when nothing else is said. One set of values for all sizes; only the batch and the epochs follow the size.

The start is larger than the paper's: X = 0 is a fixed point of the gradient, and in a forest small trees that start near zero are pushed
out by the large one and end with rank 0. With E[XXᵀ] = 0.2·λ·I every node begins with about a sixth of the dimensions.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field, ValidationError

from subspaces.errors import UserError
from subspaces.settings import Positive, Strict

_START = 0.2
_STEPS = 200
_LARGE = 20_000  # nodes


class FitSettings(Strict):
    """What a fit is computed from, besides the edges and the seed."""

    dim: int = Field(ge=2, le=1024, description="dimension d of the space")
    lam: Positive = Field(description="λ of the soft projector")
    epochs: int = Field(ge=1, description="passes over the nodes")
    batch: int = Field(ge=1, description="nodes of a step, their ancestors not counted")
    lr: Positive = Field(description="rate of Adam; falls along a cosine")
    lr_final: float = Field(gt=0, le=1, description="the last rate as a share of the first")
    start: Positive = Field(description="standard deviation of the random start")
    target: float = Field(gt=0, lt=1, description="the inclusion t at which the loss of edges and non-edges is equal")
    sharpness: Positive = Field(description="s of the logistic loss")
    balance: float = Field(ge=1, description="largest weight of the non-edges of a general parent")
    rank_weight: float = Field(ge=0, description="weight of the rank in the loss")
    runs: list[int] = Field(min_length=1, description="length of the runs of neighbours, epoch by epoch, over and over")


def settings_for(
    nodes: int,
    dim: int = 64,
    lam: float = 0.2,
    *,
    epochs: int | None = None,
    batch: int | None = None,
    lr: float | None = None,
) -> FitSettings:
    """The settings for a hierarchy of some size; `epochs`, `batch` and `lr` replace the rule where they are given.

    Batch 256, from 20,000 nodes 512. Epochs: 40, from 20,000 nodes 20, and always at least 200 steps.
    """
    large = nodes >= _LARGE
    batch = (512 if large else 256) if batch is None else batch
    if epochs is None:
        steps_per_epoch = -(-nodes // max(1, batch))
        epochs = max(20 if large else 40, -(-_STEPS // steps_per_epoch))
    values: dict[str, Any] = {
        "dim": dim,
        "lam": lam,
        "epochs": epochs,
        "batch": batch,
        "lr": 0.01 if lr is None else lr,
        "lr_final": 0.05,
        "start": round((_START * lam / dim) ** 0.5, 6) if dim > 0 and lam > 0 else 0.01,
        "target": 0.825,
        "sharpness": 20.0,
        "balance": 50.0,
        "rank_weight": 0.02,
        "runs": [1, 16, 256, 16] if large else [1, 16],
    }
    try:
        return FitSettings(**values)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        name = {"lam": "lambda"}.get(str(problem["loc"][0]), problem["loc"][0])
        raise UserError(f"{name}: {problem['msg'].lower()}, not {problem['input']!r}.") from None
