"""How a hierarchy of some size is trained when nobody says otherwise: the laptop recipe of params.yaml, stretched over sizes.

The sampler is the shared one with in-batch candidates (docs/deviations.md), the pull on the trace keeps leaves small (docs/rho.md). Two
things must be enough: steps, for a small hierarchy, and visits of each node as the lower end of an edge, for a shallow one.

The start is larger than the paper's. A hierarchy of many small trees beside a large one learns the large one first, whose nodes then
push the small trees out of every direction: from a start near zero they never come back (X = 0 is a fixed point of the gradient). With
E[XXᵀ] = 0.2·λ·I every node begins with about a sixth of the dimensions, and none was lost in
the forests and trees of up to 1,000 nodes on which this was chosen and counted.
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from subspaces.errors import UserError
from subspaces.params.reconstruction import Training

_STEPS = 300
_VISITS = 40
_START = 0.2


def training_for(
    nodes: int,
    closure: int,
    dim: int,
    lam: float,
    *,
    epochs: int | None = None,
    batch: int | None = None,
    lr: float | None = None,
) -> dict[str, Any]:
    """All training settings for a closure of some edges, with what is given taking the place of the rule:

    closure edges      batch  rate   falls to  pull, from
    below 2,000        128    0.01   0.3       0.3, 0.5
    below 20,000       256    0.01   0.3       0.3, 0.5
    below 200,000      256    0.005  0.3       0.3, 0.5
    from 200,000       512    0.002  0.3       0.1, 0.4

    Epochs: enough for 300 steps and for 40 visits of the average node, at least 8 (large: 9, as for nouns).
    Start: standard deviation √(0.2·λ/d).
    """
    large = closure >= 200_000
    batch = (128 if closure < 2_000 else 512 if large else 256) if batch is None else batch
    lr = (0.01 if closure < 20_000 else 0.002 if large else 0.005) if lr is None else lr
    if epochs is None:
        steps_per_epoch = -(-closure // max(1, min(batch, closure)))
        epochs = max(9 if large else 8, -(-_STEPS // steps_per_epoch), -(-_VISITS * nodes // closure))
    values = {
        "epochs": epochs,
        "batch": batch,
        "sampling": "shared",
        "negatives": 19,
        "pool": 256 if large else batch,
        "in_batch": True,
        "weigh_as": 0,
        "lr": lr,
        "lr_final": 0.3,
        "burn_in": 0,
        "burn_in_factor": 0.01,
        "start": round((_START * lam / dim) ** 0.5, 6),
        "trace_pull": 0.1 if large else 0.3,
        "trace_pull_from": 0.4 if large else 0.5,
    }
    try:
        return Training(**values).model_dump()
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        raise UserError(f"{problem['loc'][0]}: {problem['msg'].lower()}, not {problem['input']!r}.") from None
