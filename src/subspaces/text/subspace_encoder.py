"""`SubspaceEncoder`: texts to subspaces and entailment, from the model that ships with the package or from a folder (paper §3.2, §4.3)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from subspaces.algebra import Subspace
from subspaces.errors import UserError
from subspaces.files import sha256_file, write_json
from subspaces.sources.fetch import fetch
from subspaces.sources.registry import SOURCES
from subspaces.text.load import TextModel, TextSpec, load_text_model
from subspaces.training.checkpoint import write_tensors
from subspaces.training.record import read_settings

DEFAULT = "subspaces-minilm-64"
SHIPPED = Path(__file__).with_name("models")  # models of the package, a folder each


@dataclass(frozen=True)
class Entailment:
    """Answer for one pair: class probabilities by name for 2 and, where the model has the head, 3 classes; NIS(P_h | P_p); Tr(P)."""

    two_way: dict[str, float]
    three_way: dict[str, float] | None
    inclusion: float
    premise_rank: float
    hypothesis_rank: float


class SubspaceEncoder:
    """A trained subspace model with the interface that library users need."""

    def __init__(self, model: TextModel):
        if not model.spec.model.makes_subspaces:
            raise UserError(f"a model with the encoder {model.spec.model.encoder!r} does not make subspaces.")
        self.text_model = model

    @classmethod
    def from_pretrained(
        cls, name_or_path: str | Path | None = None, sources: Path | None = None, device: str = "cpu"
    ) -> SubspaceEncoder:
        """A model by name or folder; without either, the one that ships. Its backbone is fetched and verified on first use."""
        folder = Path(name_or_path) if name_or_path else SHIPPED / DEFAULT
        if not (folder / "settings.json").exists() and len(folder.parts) == 1:
            folder = SHIPPED / folder.name
        if not (folder / "settings.json").exists():
            shipped = sorted(path.parent.name for path in SHIPPED.glob("*/settings.json"))
            raise UserError(
                f"{name_or_path or DEFAULT} is no model: give the folder of a trained one"
                + (f", or one of {', '.join(shipped)}." if shipped else ".")
            )
        sources = sources or _cache()
        spec = TextSpec.model_validate(read_settings(folder))
        if spec.from_source and spec.backbone and spec.backbone.name in SOURCES:
            fetch(spec.backbone.name, sources / spec.backbone.name)
        return cls(load_text_model(folder, sources, device))

    @property
    def dim(self) -> int:
        return self.text_model.dim

    @property
    def fingerprint(self) -> str:
        """Digest of the weights."""
        return self.text_model.fingerprint

    def encode(self, texts: Sequence[str] | str) -> Subspace:
        """A batch of subspaces, one per text; for a single string, one subspace."""
        if isinstance(texts, str):
            return self.encode([texts])[0]
        if not texts:
            return Subspace(torch.zeros(0, self.dim, self.dim))
        return Subspace.from_projector(self.text_model.projectors(texts), symmetric=False)

    @torch.no_grad()
    def entail(self, premise: str, hypothesis: str) -> Entailment:
        """Does the premise entail the hypothesis?"""
        model = self.text_model.model
        p, h = (P[None] for P in self.text_model.projectors([premise, hypothesis]).to(self.text_model.device))
        answers = {}
        before = model.ways
        try:
            for ways in {before, model.label_ways}:
                model.ways = ways
                answers[ways] = self.text_model.named(model.logits(p, h))[0]
        finally:
            model.ways = before
        two = answers.get(2) or _two_of(answers[3])
        inclusion = model.inclusion(p, h)
        assert inclusion is not None
        return Entailment(two, answers.get(3), float(inclusion), _rank(p), _rank(h))

    def save(self, folder: Path | str) -> Path:
        """Write head and adapters (not the backbone, where it was not trained) in half precision; `from_pretrained` reads the folder."""
        folder = Path(folder)
        if folder.exists() and any(folder.iterdir()):
            raise UserError(f"{folder} exists and is not empty: choose another folder.")
        folder.mkdir(parents=True, exist_ok=True)
        model, settings = self.text_model.model, self.text_model.settings
        frozen = {name for name, part in model.named_parameters() if not part.requires_grad}
        tensors = {name: part for name, part in model.state_dict().items() if name not in frozen}
        halved = {name: part.half() if part.is_floating_point() else part for name, part in tensors.items()}
        path = folder / "weights.safetensors"
        write_tensors(path, {name: part.contiguous() for name, part in halved.items()})
        write_json(folder / "settings.json", settings | {"precision": "half", "weights_sha256": sha256_file(path)})
        if not self.text_model.spec.from_source:
            shutil.copyfile(self.text_model.folder / "tokenizer.json", folder / "tokenizer.json")
        return folder


def _rank(projector: Tensor) -> float:
    return float(projector.diagonal(dim1=-2, dim2=-1).sum())


def _two_of(three: dict[str, float]) -> dict[str, float]:
    return {"entailment": three["entailment"], "other": 1.0 - three["entailment"]}


def _cache() -> Path:
    """Where backbones are kept for use outside a project: $SUBSPACES_CACHE, or the cache folder of the user."""
    if chosen := os.environ.get("SUBSPACES_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "subspaces"
