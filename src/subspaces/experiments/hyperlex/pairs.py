"""HyperLex nouns: graded lexical entailment, zero-shot from the reconstruction embeddings (paper §4.1, Table 3).

A pair (u, v) asks how much u is a type of v. Words have senses and embeddings are of synsets, so a scorer says two things about every pair
of senses: `choice`, whose maximum picks the pair of senses that stands for the pair of words, and `score`, which is reported for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from subspaces.algebra import half_vector
from subspaces.errors import UserError
from subspaces.geometries.base import VectorGeometry
from subspaces.geometries.subspace import SubspaceGeometry
from subspaces.hierarchy.ranking import spearman
from subspaces.sources.wordnet_reader import SAMPLE, open_nltk

COLUMNS = ("WORD1", "WORD2", "POS", "TYPE", "AVG_SCORE", "AVG_SCORE_0_10", "STD", "SCORES..")
HIGHEST = 6.0  # people answered on a scale from 0 to 6

Scorer = Callable[
    [np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]
]  # nodes (S,), nodes (S,) → choice (S,), score (S,)


# --- data -------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """How much `first` is a type of `second`, from 0 to 6 by the mean of about ten people (AVG_SCORE)."""

    first: str
    second: str
    relation: str
    score: float


def read_hyperlex(path: Path, pos: str = "N") -> list[Pair]:
    """The pairs of one part of speech (N or V), in the order of the file."""
    try:
        header, *lines = Path(path).read_text(encoding="utf-8").splitlines() or [""]
    except (FileNotFoundError, IsADirectoryError) as error:
        raise UserError(f"{path} does not exist, or is a folder: fetch the source hyperlex first.") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not text ({error}): delete it and fetch the source hyperlex again.") from error
    if tuple(header.split()) != COLUMNS:
        found = " ".join(header.split())[:200] or "nothing"
        raise UserError(
            f"{path} must begin with the columns {' '.join(COLUMNS)}, in this order; found: {found}. Use a file of HyperLex 1.0."
        )
    rows = [_read_line(path, number, line) for number, line in enumerate(lines, 2)]
    pairs = [pair for part, pair in rows if part == pos]
    if not pairs:
        there = ", ".join(sorted({part for part, _ in rows})) or "none at all"
        raise UserError(
            f"{path} has no pairs with POS {pos!r} (found: {there}): choose another part of speech or another file."
        )
    return pairs


def _read_line(path: Path, number: int, line: str) -> tuple[str, Pair]:
    fields = line.split()
    try:
        if len(fields) < len(COLUMNS):
            raise ValueError(f"{len(fields)} fields")
        score, *_ = [float(field) for field in fields[4:]]
        if not 0.0 <= score <= HIGHEST:
            raise ValueError(f"AVG_SCORE {fields[4]}")
    except ValueError as error:
        raise UserError(
            f"{path}, line {number}: expected two words, POS, TYPE, AVG_SCORE from 0 to {HIGHEST:g}, two more numbers and at least one "
            f"rating, separated by spaces; found {error}. Delete the file and fetch the source hyperlex again."
        ) from error
    return fields[2], Pair(fields[0], fields[1], fields[3], score)


class Senses:
    """The synsets of a word as indices into `names`, most frequent sense first; synsets that are not among the names do not exist here.

    `folder` holds WordNet's database, whose lemmas and inflections count (`synsets(word)`), or the sample, which knows a synset only by the
    word that it is named after.
    """

    def __init__(self, names: Sequence[str], folder: Path, pos: str = "n"):
        self.pos = pos
        self._place = {name: index for index, name in enumerate(names)}
        self._known: dict[str, np.ndarray] = {}
        self._reader = None
        if not (Path(folder) / SAMPLE).is_file():
            self._reader = open_nltk(folder)
            return
        self._named: dict[str, list[str]] = {}
        for name in sorted(names, key=lambda name: name.rpartition(".")[2]):
            self._named.setdefault(name.rpartition(".")[0], []).append(name)

    def __call__(self, word: str) -> np.ndarray:
        if word not in self._known:
            found = [self._place[name] for name in self._synsets(word) if name in self._place]
            self._known[word] = np.array(found, dtype=np.int64)
        return self._known[word]

    def _synsets(self, word: str) -> list[str]:
        if self._reader is None:
            return self._named.get(f"{word.lower()}.{self.pos}", [])
        return [synset.name() for synset in self._reader.synsets(word, pos=self.pos)]


# --- evaluation -------------------------------------------------------------------------------------------------------------------


def score_pairs(pairs: Sequence[Pair], senses: Callable[[str], np.ndarray], scorer: Scorer) -> dict[str, np.ndarray]:
    """The chosen nodes `first`, `second` (n,) of each pair and its `score` (n,); −1, −1 and NaN where a word has no synset.

    All combinations of senses of all pairs go to the scorer at once. Among equals the more frequent senses win.
    """
    one, other, owner = [], [], []
    for number, pair in enumerate(pairs):
        left, right = senses(pair.first), senses(pair.second)
        one.append(np.repeat(left, len(right)))
        other.append(np.tile(right, len(left)))
        owner.append(np.full(len(left) * len(right), number))
    first, second, line = (np.concatenate([np.zeros(0, dtype=np.int64), *parts]) for parts in (one, other, owner))
    if not len(line):
        raise UserError(
            f"none of the {len(pairs)} HyperLex pairs has a synset for both words: check that hierarchy, WordNet and pairs have the "
            "same part of speech."
        )
    choice, score = scorer(first, second)
    if not (np.isfinite(choice).all() and np.isfinite(score).all()):
        raise UserError("the model gives HyperLex scores that are NaN or infinite: train it again.")
    order = np.lexsort((-choice, line))  # stable: equals stay in the order of the senses
    covered, start = np.unique(
        line, return_index=True
    )  # `line` is grouped, so sorting leaves the groups where they are
    best = order[start]
    result = {
        "first": np.full(len(pairs), -1, dtype=np.int64),
        "second": np.full(len(pairs), -1, dtype=np.int64),
        "score": np.full(len(pairs), np.nan),
    }
    result["first"][covered], result["second"][covered], result["score"][covered] = (
        first[best],
        second[best],
        score[best],
    )
    return result


def evaluate_hyperlex(pairs: Sequence[Pair], senses: Callable[[str], np.ndarray], scorer: Scorer) -> dict[str, Any]:
    """Spearman's correlation with the human scores, and what is needed to judge it.

    `spearman` counts every pair: one without synsets gets the median score of the others. `spearman_covered` leaves these out. By relation
    (hyp-1: direct hypernym, r-hyp-1: the pair reversed, …) stand the mean human score and the mean score of the scored pairs.
    """
    score = score_pairs(pairs, senses, scorer)["score"]
    human = np.array([pair.score for pair in pairs])
    scored = ~np.isnan(score)
    words = dict.fromkeys(word for pair in pairs for word in (pair.first, pair.second))
    relation = np.array([pair.relation for pair in pairs])
    return {
        "spearman": spearman(np.where(scored, score, np.median(score[scored])), human),
        "spearman_covered": spearman(score[scored], human[scored]),
        "pairs": len(pairs),
        "scored": int(scored.sum()),
        "missing_words": [word for word in words if not len(senses(word))],
        "missing_pairs": [[pairs[number].first, pairs[number].second] for number in np.flatnonzero(~scored).tolist()],
        "relations": {str(kind): _mean_scores(relation == kind, scored, human, score) for kind in np.unique(relation)},
    }


def _mean_scores(these: np.ndarray, scored: np.ndarray, human: np.ndarray, score: np.ndarray) -> dict[str, Any]:
    used = score[these & scored]
    return {
        "pairs": int(these.sum()),
        "scored": len(used),
        "human": float(human[these].mean()),
        "score": float(used.mean()) if len(used) else None,
    }


def hyperlex_report(result: dict[str, Any]) -> str:
    """A few lines for the terminal, relations from the highest human score to the lowest."""
    lines = [
        f"HyperLex: Spearman {result['spearman']:.3f} over all {result['pairs']:,} pairs, "
        f"{result['spearman_covered']:.3f} over the {result['scored']:,} whose words have synsets"
    ]
    if result["missing_words"]:
        lines.append(
            f"no synset: {', '.join(result['missing_words'])} ({len(result['missing_pairs'])} pairs, given the median score)"
        )
    lines.append(f"{'relation':<10}{'pairs':>6}{'human':>8}{'score':>12}")
    for kind, means in sorted(result["relations"].items(), key=lambda item: -item[1]["human"]):
        score = "—" if means["score"] is None else f"{means['score']:.4g}"
        lines.append(f"{kind:<10}{means['pairs']:>6}{means['human']:>8.2f}{score:>12}")
    return "\n".join(lines)


# --- scorers ----------------------------------------------------------------------------------------------------------------------


def subspace_scorer(geometry: SubspaceGeometry, block: int = 1024) -> Scorer:
    """Choice Tr(P₁P₂), score NIS(P₂|P₁) = Tr(P₁P₂)/Tr(P₁): how much of the first lies in the second.

    Only the nodes that occur are opened, each once. As in `Subspace.inclusion`, an empty first subspace lies in everything.
    """

    @torch.no_grad()
    def score(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        nodes, place = np.unique(np.concatenate([first, second]), return_inverse=True)
        halves, traces = (
            geometry.X.new_empty(len(nodes), geometry.dim * (geometry.dim + 1) // 2),
            geometry.X.new_empty(len(nodes)),
        )
        parts = zip(
            torch.from_numpy(nodes).to(geometry.X.device).split(block),
            halves.split(block),
            traces.split(block),
            strict=True,
        )
        for rows, half, trace in parts:
            P = geometry.projectors(rows)
            half.copy_(half_vector(P))
            trace.copy_(P.diagonal(dim1=-2, dim2=-1).sum(-1))
        left, right = torch.from_numpy(place).to(geometry.X.device).split([len(first), len(second)])
        shared = torch.cat(
            [(halves[a] * halves[b]).sum(1) for a, b in zip(left.split(block), right.split(block), strict=True)]
        )
        own = traces[left]
        empty = own <= geometry.dim * torch.finfo(own.dtype).eps
        inclusion = torch.where(empty, 1.0, shared / own.where(~empty, 1.0))
        return shared.cpu().double().numpy(), inclusion.cpu().double().numpy()

    return score


def distance_scorer(geometry: VectorGeometry, alpha: float = 1000.0) -> Scorer:
    """Points (Nickel & Kiela 2017, §4.3): score −(1+α(‖v‖−‖u‖))·d(u, v) for u the first and v the second word; choice −d(u, v).

    The senses are those nearest to each other, as maximal similarity chooses them for subspaces. The score itself must not choose: at this
    α it is large for any far pair whose second sense lies nearer to the origin, so its maximum would pick the least related senses.
    """
    measure = getattr(geometry, "score", "distance")
    if measure != "distance":
        raise UserError(
            f"HyperLex scores points by distance and puts general ones in the middle; this model was trained by {measure} product, "
            "where general points are the long ones. Train it with score: distance."
        )

    @torch.no_grad()
    def score(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # float64: d of two equal points would otherwise be all rounding
        u, v = (
            geometry.table[torch.from_numpy(nodes).to(geometry.table.device)].cpu().double()
            for nodes in (first, second)
        )
        closeness = geometry.score_matrix(u[:, None], v[:, None])[:, 0, 0]
        return closeness.numpy(), ((1 + alpha * (v.norm(dim=-1) - u.norm(dim=-1))) * closeness).numpy()

    return score


def gaussian_scorer(means: Tensor, variances: Tensor) -> Scorer:
    """Diagonal Gaussians (N, k) (Athiwaratkun & Wilson 2018): score and choice −KL(first‖second), so the smallest KL over the senses."""
    if means.ndim != 2 or means.shape != variances.shape:
        shapes = f"{tuple(means.shape)} and {tuple(variances.shape)}"
        raise UserError(f"means and variances must both have the shape (nodes, dimensions), not {shapes}.")
    if not bool((variances > 0).all()):
        raise UserError("a Gaussian needs variances above zero: pass variances, not their logarithms.")

    @torch.no_grad()
    def score(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        one, other = (torch.from_numpy(nodes).to(means.device) for nodes in (first, second))
        own, wide = variances[one].cpu().double(), variances[other].cpu().double()
        ratio, shift = own / wide, (means[other].cpu().double() - means[one].cpu().double()).square() / wide
        closeness = -0.5 * (ratio - 1 - ratio.log() + shift).sum(-1)
        return closeness.numpy(), closeness.numpy()

    return score
