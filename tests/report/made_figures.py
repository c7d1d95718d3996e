"""Made-up but realistic contents of evaluation files, for the figures of the text models."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

BETAS = {"entailment": (5.0, 1.3), "neutral": (2.6, 2.6), "contradiction": (1.3, 4.2)}
CHAINS = (
    (
        "A man in a blue jacket is fishing from a small wooden boat on a quiet lake at dawn.",
        "A man is fishing from a boat on a lake.",
        "A man is fishing.",
        "A person is outside.",
        "Somebody is somewhere.",
    ),
    (
        "Two brown dogs are chasing a red ball across a wet lawn.",
        "Dogs are chasing a ball.",
        "Animals are playing.",
        "Animals exist.",
    ),
    (
        "A woman plays a violin on a stage in front of a large crowd.",
        "A woman plays the violin.",
        "A woman makes music.",
        "A person acts.",
    ),
)
RANKS = ((18.2, 22.9, 27.4, 35.0, 41.3), (20.4, 25.8, 24.1, 33.9), (19.0, 21.6, 26.2, 30.5))
CAPTIONS = (
    "A busy city street with many people walking past shops and yellow taxis in the afternoon sun.",
    "People cross a street downtown at night under bright neon signs.",
    "A woman with a red umbrella waits for the bus while it's raining on a grey day.",
    "Three children are playing with a ball in a park.",
    "Two old men are sitting on a bench and reading newspapers.",
    "A little boy rides his tricycle on the sidewalk near a busy road, wearing a green helmet and a yellow jacket.",
)
QUERIES = (
    "a city street & at night",
    "a city street & ~at night",
    "an umbrella & it's raining",
    "an umbrella & ~it's raining",
    "a child playing outdoors & near a road",
    "a child playing outdoors & ~near a road",
    "people & sitting & on a bench",
)


def evaluation(
    row: str = "mpnet-subspace-128", ways: int = 2, seed: int = 0, pairs: int = 16_000, accuracy: float | None = 85.0
) -> dict:
    rng = np.random.default_rng((seed, ways, pairs, *row.encode()))
    speed = rng.uniform(0.6, 1.4)
    classes = {}
    for name, (a, b) in BETAS.items():
        scores = rng.beta(a, b, 1_300)
        counts = np.histogram(scores, 50, (0.0, 1.0))[0]
        classes[name] = {"counts": counts.tolist(), "mean": float(scores.mean())}
    history = []
    for place in range(1, 9):
        seen = place * pairs // 8
        validation = (
            None if place % 2 else 55.0 + 30.0 * (1 - np.exp(-speed * seen / 6_000)) + float(rng.normal(0, 0.4))
        )
        history.append(
            {
                "step": seen // 128,
                "pairs": seen,
                "loss": 0.3 + 0.5 * float(np.exp(-speed * seen / 5_000)),
                "validation_accuracy": validation,
            }
        )
    confusion = [[2_300, 256], [400, 1_044]] if ways == 2 else [[1_100, 150, 63], [200, 900, 210], [40, 220, 1_117]]
    return {
        "row": row,
        "scale": "laptop",
        "settings": {
            "ways": ways,
            "seed": seed,
            "trained_on": {"pairs": pairs},
            "backbone": {
                "name": "all-MiniLM-L6-v2",
                "wanted": "all-mpnet-base-v2" if row.startswith("mpnet") else "all-MiniLM-L6-v2",
            },
        },
        "data": {"sample": False},
        "metrics": {"accuracy": accuracy},
        "confusion": confusion,
        "inclusion": {"bins": 50, "classes": classes},
        "chains": [
            {"sentences": list(chain), "ranks": list(ranks), "rises": [b > a for a, b in pairwise(ranks)]}
            for chain, ranks in zip(CHAINS, RANKS, strict=True)
        ],
        "history": history,
    }


def learning(rows: tuple[str, ...] = ("minilm-subspace-64", "minilm-mlp-diff"), seeds: int = 1) -> list[dict[str, Any]]:
    """Evaluations of a learning curve; the largest budget is the row itself."""
    found = []
    for place, row in enumerate(rows):
        for pairs in (1_000, 2_000, 4_000, 8_000, 16_000, 64_000):
            for seed in range(seeds):
                value = 60 + 27 * (1 - np.exp(-pairs / (5_000 + 9_000 * place))) + 0.8 * seed
                found.append(evaluation(row, 2, seed, pairs, float(value)))
    return found


def auc(row: str, column: str, value: float | None, paper: float, **other: Any) -> dict:
    verdict = "not run" if value is None else "short"
    known = {
        "row": row,
        "column": column,
        "value": value,
        "sd": None,
        "seeds": 0 if value is None else 1,
        "paper": paper,
    }
    return known | {"verdict": verdict, "scale": "laptop", "sample": False, "table": "composition"} | other


def composition() -> list[dict]:
    paper = {
        "minilm-mlp": (86, 58),
        "minilm-mlp-diff": (91, 49),
        "minilm-subspace-64": (95, 90),
        "minilm-subspace-128": (95, 93),
        "mpnet-mlp": (83, 56),
        "mpnet-mlp-diff": (90, 69),
        "mpnet-box-64": (92, None),
        "mpnet-box-128": (90, None),
        "mpnet-subspace-64": (96, 94),
        "mpnet-subspace-128": (97, 96),
    }
    ours = {
        "minilm-mlp": (64.2, 52.0),
        "minilm-mlp-diff": (62.5, 63.1),
        "minilm-subspace-64": (80.8, 80.1),
        "mpnet-subspace-64": (84.0, None),
    }
    found = []
    for row, printed in paper.items():
        values = ours.get(row, (None, None))
        for column, value, other in zip(("auc-conjunction", "auc-negation"), values, printed, strict=True):
            if other is not None:
                found.append(
                    auc(row, column, value, other, **({"interval": [value - 4.1, value + 3.8]} if value else {}))
                )
    return found


def compression() -> dict[str, Any]:
    taus = [0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95]
    rank = [128 * float(np.exp(-9 * tau**0.8)) + 9 * (1 - tau) for tau in taus]
    rank[0] = 128.0
    return {
        "scale": "laptop",
        "wordnet": {
            "taus": taus,
            "map": [99.2 - 30 * tau**6 for tau in taus],
            "rank": rank,
            "bytes": [256 * one for one in rank],
            "full_rank": 128,
        },
        "snli": {"taus": taus, "accuracy": [86.0 - 20 * tau**4 for tau in taus], "rank": [0.9 * one for one in rank]},
    }


def retrieval() -> dict[str, Any]:
    hits = [{"text": text, "score": 0.93 - 0.04 * place} for place, text in enumerate(CAPTIONS)]
    turned = [hits[place:] + hits[:place] for place in range(len(hits))]
    return {
        "scale": "laptop",
        "documents": 155_070,
        "queries": [
            {
                "query": query,
                "subspace": turned[place % 6][:5],
                "text": turned[(place + 1) % 6][:5],
                "vector": turned[(place + 3) % 6][:2],
            }
            for place, query in enumerate(QUERIES)
        ],
    }


def storage() -> dict[str, Any]:
    points = (
        ("full fp32", 65_536, 1.0),
        ("half-vector fp32", 33_024, 1.0),
        ("half-vector fp16", 16_512, 0.999),
        ("rank-32 fp16", 8_192, 0.985),
        ("rank-16 fp16", 4_096, 0.93),
        ("rank-8 fp16", 2_048, 0.78),
        ("PQ 64 × 8 bit", 64, 0.41),
    )
    return {
        "scale": "laptop",
        "documents": 155_070,
        "points": [{"form": form, "bytes": size, "recall": recall} for form, size, recall in points],
    }
