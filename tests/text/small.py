"""Small models with random weights, and batches of random sentences."""

from __future__ import annotations

from typing import Any

import torch

from subspaces.text.pair_model import PairModel, make_model, read_encoder
from subspaces.text.texts import Tokens
from tests.text.toys import tiny_backbone


def small_model(encoder: str, ways: int = 2, seed: int = 0, kind: str = "bert", **options: Any) -> PairModel:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        backbone = tiny_backbone(kind, torch.Generator().manual_seed(seed), dropout=0.0)
        return make_model(read_encoder({"encoder": encoder, "backbone": "tiny", **options}), ways, backbone)


def sentences(lengths: list[int], width: int = 0, seed: int = 0, vocabulary: int = 64, pad: int = 0) -> Tokens:
    """One random sentence of each length, in one batch that is at least `width` wide. Padding holds `pad`."""
    generator = torch.Generator().manual_seed(seed)
    rows = [torch.randint(2, vocabulary, (length,), generator=generator) for length in lengths]
    width = max(width, *lengths)
    ids = torch.stack([torch.cat([row, torch.full((width - len(row),), pad)]) for row in rows])
    return Tokens(ids, torch.arange(width) < torch.tensor(lengths)[:, None])
