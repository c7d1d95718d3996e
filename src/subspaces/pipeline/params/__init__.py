"""Typed parameters: params.yaml is the only place where a parameter lives, and this is what it may say. One file per experiment."""

from subspaces.pipeline.params.load import load_params, params_schema, parse_params
from subspaces.pipeline.params.root import Params
from subspaces.settings import COVERAGES, POS, SCALES

__all__ = ["COVERAGES", "POS", "SCALES", "Params", "load_params", "params_schema", "parse_params"]
