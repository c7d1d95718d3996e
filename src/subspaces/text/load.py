"""A trained model back from its folder: for judging, for the compositional task, for retrieval and for people's own texts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, field_validator
from safetensors import safe_open
from torch import Tensor

from subspaces.errors import UserError
from subspaces.text.backbone import Backbone
from subspaces.text.pair_model import (
    CLASSES,
    BackboneSettings,
    EncoderSettings,
    PairModel,
    Texts,
    make_model,
    read_encoder,
)
from subspaces.text.texts import TokenTable, WordPieces, Words, backbone_tokeniser, saved_tokeniser
from subspaces.training.record import read_settings


class TextSpec(BaseModel):
    """What settings.json says of how a trained model is built; the rest of that file is its record."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    model: EncoderSettings
    backbone: BackboneSettings | None
    ways: int
    limit: int
    config: dict[str, Any] | None
    weights_sha256: str

    @field_validator("model", mode="before")
    @classmethod
    def _read_model(cls, value: Any) -> EncoderSettings:
        return read_encoder(value)

    @property
    def adapted(self) -> bool:
        """Adapters were trained, and not the backbone itself."""
        return getattr(self.model, "adapters", None) is not None

    @property
    def from_source(self) -> bool:
        """Parts of the backbone that were not trained are not in the model's folder."""
        return self.backbone is not None and bool(self.backbone.frozen or self.adapted)


class TextModel:
    """A trained model with its tokeniser. `settings` is the whole record of its training."""

    def __init__(
        self,
        model: PairModel,
        settings: dict[str, Any],
        tokeniser: WordPieces | Words,
        folder: Path,
        device: str = "cpu",
    ):
        self.model, self.settings, self.device = model.to(device).eval(), settings, device
        self.spec = TextSpec.model_validate(settings)
        self.tokeniser, self.limit, self.folder = tokeniser, self.spec.limit, folder
        if self.spec.adapted:
            self.model.backbone.merge_adapters()

    @property
    def fingerprint(self) -> str:
        """Names these very weights."""
        return self.spec.weights_sha256

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
        if not self.spec.model.makes_subspaces:
            raise UserError(
                "this model does not encode subspaces: use one of the rows …-subspace-64 or …-subspace-128."
            )
        return self.represent(texts, batch)

    @torch.no_grad()
    def probabilities(self, premises: Sequence[str], hypotheses: Sequence[str]) -> list[dict[str, float]]:
        """Probability of each class for each pair."""
        p, h = (self.represent(texts).to(self.device) for texts in (premises, hypotheses))
        return self.named(self.model.logits(p, h))

    def named(self, logits: Tensor) -> list[dict[str, float]]:
        """Probabilities by class name."""
        names = CLASSES[self.model.ways]
        return [dict(zip(names, row, strict=True)) for row in logits.softmax(1).tolist()]


def load_text_model(
    folder: Path, sources: Path = Path("data/sources"), device: str = "cpu", ways: int | None = None
) -> TextModel:
    """The model of one folder; damaged weights are refused. Parts of the backbone that were not trained are read from its source.

    `ways` chooses a head of a model that has a 2-way and a 3-way head.
    """
    folder = Path(folder)
    settings = read_settings(folder)
    spec = TextSpec.model_validate(settings)
    backbone = None
    if use := spec.backbone:
        if spec.from_source:
            backbone = Backbone.from_folder(sources / use.name, use.layers, use.frozen, 0.0)
        else:
            assert spec.config is not None
            backbone = Backbone.from_config(spec.config, 0, 0.0)
    own = (folder / "tokenizer.json").exists()
    tokeniser = saved_tokeniser(folder) if own or use is None else backbone_tokeniser(sources / use.name)
    model = make_model(spec.model, spec.ways, backbone, 0 if use else tokeniser.size)
    read_state(model, folder / "weights.safetensors")
    if ways is not None and ways != spec.ways:
        if ways not in (spec.ways, model.label_ways):
            raise UserError(f"{folder} has no {ways}-way head.")
        model.ways = ways
    return TextModel(model, settings, tokeniser, folder, device)


@torch.no_grad()
def read_state(model: torch.nn.Module, path: Path) -> None:
    """Fill all trained tensors of a model from a file, which may hold them in half precision."""
    frozen = {name for name, parameter in model.named_parameters() if not parameter.requires_grad}
    with safe_open(path, framework="pt") as content:
        saved = set(content.keys())
        missing = [name for name in model.state_dict() if name not in frozen and name not in saved]
        if missing:
            raise UserError(
                f"{path} lacks {missing[0]}: it was written by another version of this package; train again."
            )
        for name, tensor in model.state_dict().items():
            if name in saved:
                tensor.copy_(content.get_tensor(name))
