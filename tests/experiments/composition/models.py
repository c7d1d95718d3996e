"""Tiny models with random weights in folders of their own, as training leaves them, and a few candidates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from subspaces.experiments.composition.candidates import Candidate
from subspaces.files import write_json, write_text
from subspaces.sources.origins import SAMPLES
from subspaces.text.backbone import Backbone
from subspaces.text.pair_model import make_model, read_encoder
from subspaces.text.texts import sample_tokeniser
from subspaces.training.checkpoint import write_tensors

SPECS: dict[str, dict[str, Any]] = {
    "subspace": {"encoder": "subspace", "backbone": "tiny", "dim": 8, "heads": 4, "lam": 0.05},
    "vector": {"encoder": "vector", "backbone": "tiny", "difference": True},
    "box": {"encoder": "box", "backbone": "tiny", "dim": 8},
    "gru_order": {"encoder": "gru_order", "hidden": 6, "embedding": 5, "margin": 0.2},
}


def tiny_model(folder: Path, encoder: str, ways: int = 2, seed: int = 0, **changes: Any) -> Path:
    """A folder with settings, weights and tokeniser; `changes` go into the settings."""
    spec = dict(SPECS[encoder]) | ({"neutral_width": 8} if encoder == "subspace" and ways == 3 else {})
    backbone = Backbone.from_folder(SAMPLES) if "backbone" in spec else None
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = make_model(read_encoder(spec), ways, backbone, 0 if backbone else 7)
    if backbone:
        write_text(folder / "tokenizer.json", sample_tokeniser(SAMPLES / "tiny-vocab.txt"))
    else:
        write_json(folder / "tokenizer.json", {"words": ["a", "man", "is", "the", "dog"]})
    sha256 = write_tensors(
        folder / "weights.safetensors", {name: one.contiguous() for name, one in model.state_dict().items()}
    )
    settings = {
        "key": "k" * 64,
        "seed": seed,
        "model": spec,
        "ways": ways,
        "backbone": {"name": "tiny", "wanted": "tiny", "layers": None, "frozen": 0, "dropout": 0.0}
        if backbone
        else None,
        "backbone_sample": bool(backbone),
        "config": backbone.config if backbone else None,
        "limit": 35,
        "training": {"epochs": 1, "batch": 8},
        "pairs": 100,
        "trained_on": {"pairs": 100},
        "data": {
            "sample": False,
            "origin": "mirror",
            "sha256": "0" * 64,
            "counts": {"train": 100, "dev": 10, "test": 10},
        },
        "weights_sha256": sha256,
        **changes,
    }
    write_json(folder / "settings.json", settings)
    write_json(folder / "timing.json", {"seconds": 1.0, "threads": 1, "device": "cpu"})
    return folder


CANDIDATES = [
    Candidate(
        "t1",
        "A baker slides loaves into an oven.",
        "A baker is working.",
        "There is bread.",
        "The baker is frying fish.",
        "test",
    ),
    Candidate(
        "t2",
        "Two dogs run on a beach.",
        "Animals are outside.",
        "Dogs are running.",
        "The dogs are sleeping on a sofa.",
        "test",
    ),
    Candidate(
        "t3",
        "A girl paints a fence white.",
        "A girl is painting.",
        "The paint is white.",
        "The fence stays unpainted.",
        "test",
    ),
    Candidate(
        "t4",
        "A man in Paris reads a map.",
        "A man is reading.",
        "Paris is around him.",
        "The man burns a letter.",
        "test",
    ),
    Candidate(
        "t5",
        "Three boats leave a harbour.",
        "Boats are moving.",
        "There is a harbour.",
        "The boats are chained to a pier.",
        "test",
    ),
]
