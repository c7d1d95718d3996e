"""ROC AUC, and its interval over premises (paper §4.4, Table 6)."""

from __future__ import annotations

import numpy as np

from subspaces.errors import UserError

DRAWS, LEVEL = 2000, 95


def auc(positive: np.ndarray, negative: np.ndarray) -> float:
    """The probability, in per cent, that a positive scores above a negative, ties counting half.

    From the sum of the positives' ranks: equal to scikit-learn's `roc_auc_score` (tested) in a quarter of its time.
    """
    for scores in (positive, negative):
        if not len(scores):
            raise UserError(
                "an AUC needs scores of both classes, but one class is empty: give a set with more premises."
            )
        if not np.isfinite(scores).all():
            raise UserError(
                "some scores are NaN or infinite: the model has probably diverged. Train it again with a lower learning rate."
            )
    _, places, counts = np.unique(np.concatenate([positive, negative]), return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2  # equal scores share the mean of their ranks
    here, there = len(positive), len(negative)
    above = ranks[places[:here]].sum() - here * (here + 1) / 2
    return float(100 * above / (here * there))


def interval(
    positive: np.ndarray, negative: np.ndarray, generator: np.random.Generator, draws: int = DRAWS
) -> tuple[float, float]:
    """Bootstrap interval of `LEVEL` per cent, in per cent, of scores (n,) and (n,) that come in pairs, one of each for a premise.

    Premises are drawn, not pairs: the two composites of a premise stand or fall together. With W the number of times that each premise
    is drawn and K how each positive compares with each negative, the AUC of a draw is WᵀKW/n².
    """
    count = len(positive)
    if count != len(negative):
        raise UserError(f"{count} positives and {len(negative)} negatives: every premise must have one of each.")
    above = (positive[:, None] > negative[None, :]) + 0.5 * (positive[:, None] == negative[None, :])
    drawn = generator.multinomial(count, np.full(count, 1 / count), size=draws).astype(np.float64)
    values = ((drawn @ above) * drawn).sum(axis=1) * (100 / count**2)
    low, high = np.percentile(values, [(100 - LEVEL) / 2, (100 + LEVEL) / 2])
    return float(low), float(high)
