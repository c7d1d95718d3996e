"""WordNet's 45 lexicographer files, numbered as in its manual page lexnames(5WN).

The Debian packages carry this table only as a manual page, and nltk does not start without the file.
"""

from __future__ import annotations

_POS = {"noun": 1, "verb": 2, "adj": 3, "adv": 4}

_NOUNS = """Tops act animal artifact attribute body cognition communication event feeling food group location motive object person
phenomenon plant possession process quantity relation shape state substance time"""
_VERBS = """body change cognition communication competition consumption contact creation emotion motion perception possession social
stative weather"""

_FILES = (
    "adj.all",
    "adj.pert",
    "adv.all",
    *(f"noun.{topic}" for topic in _NOUNS.split()),
    *(f"verb.{topic}" for topic in _VERBS.split()),
    "adj.ppl",
)


def lexnames_text() -> str:
    """The content of `lexnames`: number, name, part of speech (1 noun, 2 verb, 3 adjective, 4 adverb)."""
    return "".join(f"{number:02d}\t{name}\t{_POS[name.split('.')[0]]}\n" for number, name in enumerate(_FILES))
