"""Sentence vectors of a plain backbone: the mean of its last hidden states, normalised, as sentence-transformers uses it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from subspaces.text.backbone import Backbone
from subspaces.text.encoders.vector import mean_pool
from subspaces.text.load import TextModel
from subspaces.text.texts import TokenTable, WordPieces, Words


@torch.inference_mode()
def pooled(
    backbone: Backbone, tokeniser: WordPieces | Words, texts: Sequence[str], limit: int, batch: int = 128
) -> Tensor:
    """Unit vectors (N, h) of texts: the mean of the last hidden states."""
    table = TokenTable.of(list(texts), tokeniser, limit)
    order = np.argsort(table.lengths, kind="stable")
    found = torch.empty(len(table), backbone.size)
    device = str(next(backbone.parameters()).device)
    for start in range(0, len(order), batch):
        rows = order[start : start + batch]
        tokens = table.batch(rows).to(device)
        found[torch.from_numpy(rows)] = F.normalize(mean_pool(backbone(tokens), tokens.mask), dim=-1).cpu()
    return found


def keeps_backbone(model: TextModel) -> bool:
    """Is the pretrained backbone inside the model? It is where only adapters were trained: without them it is the plain one."""
    return model.spec.adapted


def plain_vectors(model: TextModel, texts: Sequence[str]) -> Tensor:
    """Unit vectors (N, h) by the backbone of a model without its adapters."""
    with model.model.backbone.without_adapters():
        return pooled(model.model.backbone, model.tokeniser, texts, model.limit)
