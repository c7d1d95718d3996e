"""Compositional entailment (paper §4.4 and its appendix): from a prompt to premises with hypotheses that people reviewed."""
