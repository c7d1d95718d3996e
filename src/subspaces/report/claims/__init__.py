"""Does the paper hold? Every claim of the paper, judged from the numbers (comparing.py), and as a table (table.py)."""

from subspaces.report.claims import hierarchies, sentences  # they register the claims, in the order of the paper
from subspaces.report.claims.comparing import (
    CLAIMS,
    FAILS,
    HOLDS,
    MEANINGS,
    PART,
    UNKNOWN,
    Claim,
    Results,
    compare,
    fold,
    judge,
)
from subspaces.report.claims.table import claims_latex, claims_markdown

__all__ = [
    "CLAIMS",
    "FAILS",
    "HOLDS",
    "MEANINGS",
    "PART",
    "UNKNOWN",
    "Claim",
    "Results",
    "claims_latex",
    "claims_markdown",
    "compare",
    "fold",
    "hierarchies",
    "judge",
    "sentences",
]
