"""Textual entailment: sentences as subspaces, trained on SNLI (paper §3.2, §3.3, §4.3)."""
