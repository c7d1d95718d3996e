"""A trained model back from its folder: for judging, for the compositional task, for retrieval and for people's own texts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor

from subspaces.errors import UserError
from subspaces.nli.backbone import Backbone
from subspaces.nli.pair_model import CLASSES, PairModel, make_model
from subspaces.nli.task import Texts
from subspaces.nli.texts import TokenTable
from subspaces.nli.tokenisers import saved_tokeniser
from subspaces.training.record import read_settings


class TextModel:
    """A trained model with its tokeniser."""

    def __init__(self, model: PairModel, settings: dict[str, Any], folder: Path, device: str = "cpu"):
        self.model, self.settings, self.device = model.to(device).eval(), settings, device
        self.tokeniser, self.limit = saved_tokeniser(folder), settings["limit"]

    @property
    def fingerprint(self) -> str:
        """Names these very weights."""
        return self.settings["weights_sha256"]

    @property
    def dim(self) -> int:
        return self.settings["model"]["dim"]

    @torch.no_grad()
    def represent(self, texts: Sequence[str], batch: int = 128) -> Tensor:
        """Representations (N, …), on the CPU: projectors (N, d, d) of a subspace model. Equal texts are encoded once."""
        texts = list(texts)
        for place, text in enumerate(texts):
            if not text.strip():
                raise UserError(f"text {place + 1} is empty: give a sentence.")
        used, places = np.unique(np.array(texts, dtype=object), return_inverse=True)
        table = TokenTable.of(list(used), self.tokeniser, self.limit)
        found = Texts(table, self.device).encode_all(self.model, np.arange(len(used)), batch).cpu()
        return found if len(used) == len(texts) and (np.diff(places) > 0).all() else found[torch.from_numpy(places)]

    def projectors(self, texts: Sequence[str], batch: int = 128) -> Tensor:
        if self.settings["model"]["encoder"] != "subspace":
            raise UserError("this model does not encode subspaces: use one of the rows …-subspace-64 or …-subspace-128.")
        return self.represent(texts, batch)

    @torch.no_grad()
    def probabilities(self, premises: Sequence[str], hypotheses: Sequence[str]) -> list[dict[str, float]]:
        """Probability of each class for each pair."""
        p, h = (self.represent(texts).to(self.device) for texts in (premises, hypotheses))
        names = CLASSES[self.model.ways]
        return [dict(zip(names, row, strict=True)) for row in self.model.logits(p, h).softmax(1).tolist()]


def load_text_model(folder: Path, sources: Path = Path("data/sources"), device: str = "cpu") -> TextModel:
    """The model of one folder; damaged weights are refused. Parts of the backbone that were not trained are read from its source."""
    folder = Path(folder)
    settings, weights = read_settings(folder), folder / "weights.safetensors"
    backbone, chosen = None, settings["backbone"]
    if chosen and chosen["frozen"]:
        backbone = Backbone.from_folder(sources / chosen["name"], chosen["layers"], chosen["frozen"], 0.0)
    elif chosen:
        backbone = Backbone(settings["config"], chosen["layers"], 0, 0.0)
    words = 0 if chosen else saved_tokeniser(folder).size
    model = make_model(settings["model"], settings["ways"], backbone, words)
    with safe_open(weights, framework="pt") as content:
        saved = set(content.keys())
        for name, tensor in model.state_dict().items():
            if name in saved:
                tensor.copy_(content.get_tensor(name))
    return TextModel(model, settings, folder, device)
