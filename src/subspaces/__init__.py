"""Concepts as linear subspaces."""
