"""Texts and settings that several experiments share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from subspaces.geometries.base import GeometrySettings


def wordnet_extent(evaluation: Mapping[str, Any], whole: str) -> tuple[bool, str]:
    """Reconstruction, HyperLex and link prediction compare with the paper when they cover `whole` of the real data."""
    settings, training = evaluation["settings"], evaluation["settings"]["training"]
    budget = f"{evaluation['scale']} scale, {training['epochs']} epochs, {training['sampling']} sampling"
    if evaluation["data"]["sample"]:
        return False, f"made from a small sample in place of the real data; {budget}"
    if settings["subtree"]:
        nodes = (settings.get("graph") or settings["split"])["nodes"]
        return False, f"trained and tested below {settings['subtree']} only, {nodes:,} nodes; {budget}"
    return True, f"{whole}, same evaluation as the paper; {budget}"


def extent_of(settings: dict[str, Any], test_pairs: int) -> dict[str, Any]:
    """What the model was trained on, as text; and whether the number can be compared with the paper's."""
    backbone, trained, counts = settings["backbone"], settings["trained_on"], settings["data"]["counts"]
    budget = f"{trained['pairs']:,} training pairs × {settings['training']['epochs']}"
    if settings["data"]["sample"]:
        return {"comparable": False, "text": f"made from a small sample that stands in for SNLI; {budget}"}
    if test_pairs < counts["test"]:
        budget += f", judged on {test_pairs:,} of {counts['test']:,} test pairs"
    if backbone is None:
        return {"comparable": test_pairs == counts["test"], "text": budget}
    whole = backbone["name"] == backbone["wanted"] and backbone["layers"] is None and not settings["backbone_sample"]
    budget += f", {backbone['name']}"
    if settings["backbone_sample"]:
        budget += " replaced by a tiny random stand-in"
    if backbone["layers"] is not None:
        budget += f", its first {backbone['layers']} layers"
    if backbone["name"] != backbone["wanted"]:
        budget += f" in place of {backbone['wanted']}"
    if backbone["frozen"]:
        budget += f", {backbone['frozen']} layers frozen"
    return {"comparable": whole and test_pairs == counts["test"], "text": budget}


def with_lambda(model: GeometrySettings, lam: float) -> GeometrySettings:
    """The model of a row, with the λ of its table where it is a subspace and the row has none of its own."""
    if "lam" in type(model).model_fields and "lam" not in model.model_fields_set:
        return model.model_copy(update={"lam": lam})
    return model
