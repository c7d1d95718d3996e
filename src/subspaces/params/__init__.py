"""Typed parameters: params.yaml is the only place where a parameter lives, and this is what it may say. One file per experiment."""

from subspaces.params.base import COVERAGES, POS, SCALES
from subspaces.params.load import load_params, params_schema, parse_params
from subspaces.params.root import Params

__all__ = ["COVERAGES", "POS", "SCALES", "Params", "load_params", "params_schema", "parse_params"]
