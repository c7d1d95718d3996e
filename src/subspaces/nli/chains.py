"""Three entailment chains, each from a specific description to a general one (paper, figure of effective ranks along entailment chains).

The first is in the paper's text; the others are written for this project.
"""

from __future__ import annotations

CHAINS: tuple[tuple[str, ...], ...] = (
    ("A red car drives down the street.", "A vehicle is on the road.", "A vehicle."),
    (
        "Two young girls in yellow raincoats are jumping in a muddy puddle.",
        "Two girls are jumping in a puddle.",
        "Children are playing outside.",
        "People are outside.",
        "People.",
    ),
    (
        "An old man with a grey beard is playing the violin in a crowded subway station.",
        "A man is playing the violin in a station.",
        "A man is playing an instrument.",
        "A person is making music.",
        "A person.",
    ),
)
