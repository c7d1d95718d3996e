"""Every geometry learns a small tree: all edges of the closure against all other pairs, in about a second.

Points at a distance cannot: −d is the same for a pair turned round, so training never tells a parent from its child, and what α makes of
the norms afterwards does so only partly. They must tell pairs that are linked from those that are not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from subspaces.geometries.base import Geometry, geometry_names, make_geometry
from subspaces.hierarchy.graph import Taxonomy
from subspaces.hierarchy.link_prediction import LinkPredictionTask, LinkTraining, decision_scores
from subspaces.hierarchy.splits import Split
from subspaces.hierarchy.thresholds import best_threshold, judge
from subspaces.training.loop import generator_for
from tests.hierarchy.toys import linked, random_tree

SETTINGS: dict[str, Any] = {
    "epochs": 100,
    "batch": 64,
    "sampling": "per-edge",
    "corrupt": "both",
    "negatives": 10,
    "pool": 1,
    "optimiser": "sgd",
    "start": 0.1,
    "lr": 0.02,
    "lr_final": 1.0,
    "burn_in": 0,
    "burn_in_factor": 1.0,
    "start_epochs": 0,
    "start_lr": 0.03,
    "loss": "margin",
    "margin": 0.0,
    "gamma_positive": 0.0,
    "gamma_negative": -1.0,
    "weigh_as": 10.0,
    "validate_every": 1,
}
DIRECTED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {  # model, training
    "subspace": (
        {"dim": 16, "start": 0.01},
        {"lr": 0.01, "gamma_positive": 0.9, "gamma_negative": 0.3, "weigh_as": 1.0},
    ),
    "order": ({"dim": 8}, {}),
    "cones": ({"dim": 5, "optimiser": "adam"}, {"start_epochs": 20, "epochs": 150, "gamma_negative": -0.1}),
    "disk": ({"dim": 5, "start": 0.01}, {"lr": 3.0, "gamma_negative": -0.5, "epochs": 60}),
    "umbral": ({"dim": 5, "optimiser": "adam", "radius": 0.5, "start": 0.1}, {"lr": 0.05, "gamma_negative": -0.2}),
    "gaussian": ({"dim": 10, "start": 0.01, "tau": 20.0}, {"lr": 0.05, "gamma_negative": -50.0}),
}
SYMMETRIC: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "euclidean": ({"dim": 8, "start": 0.1}, {"loss": "softmax"}),
    "poincare": ({"dim": 5, "optimiser": "adam"}, {"lr": 0.05, "loss": "softmax"}),
    "lorentz": ({"dim": 5}, {"lr": 3.0, "loss": "softmax"}),
}


@pytest.fixture(scope="module")
def tree() -> Taxonomy:
    return random_tree(80, 3)


def trained(name: str, tree: Taxonomy, model: dict[str, Any], training: dict[str, Any], seed: int = 0) -> Geometry:
    model, settings = dict(model), LinkTraining(**{**SETTINGS, **training})
    geometry = make_geometry(name, tree.nodes, model.pop("dim"), **model)
    none = np.zeros((0, 2), dtype=np.int64)
    split = Split(tree.names, tree.closure, none, none[:, None], none, none[:, None], 50, "a tree")
    task = LinkPredictionTask(split, geometry, settings)
    task.state()
    task.initialise(generator_for(seed, 0))
    for epoch in range(settings.epochs):
        task.begin_epoch(epoch, generator_for(seed, 1, epoch))
        for step in range(task.steps_per_epoch):
            task.step(epoch, step, generator_for(seed, 2, epoch, step))
    return geometry


def f1(geometry: Geometry, edges: np.ndarray, others: np.ndarray, **tuned: float) -> float:
    positive, negative = decision_scores(geometry, edges, others[:, None], **tuned)
    return judge(positive, negative, best_threshold(positive, negative))["f1"]


def others(tree: Taxonomy, both_ways: bool) -> np.ndarray:
    """All ordered pairs of two nodes that are no edge; without the turned edges, if so wished."""
    edges = linked(tree) if both_ways else {(int(child), int(parent)) for child, parent in tree.closure}
    pairs = [
        (one, two) for one in range(tree.nodes) for two in range(tree.nodes) if one != two and (one, two) not in edges
    ]
    return np.array(pairs)


def test_all_are_here() -> None:
    assert sorted([*DIRECTED, *SYMMETRIC]) == geometry_names()


@pytest.mark.parametrize("name", DIRECTED)
def test_a_tree_is_learnt(name: str, tree: Taxonomy) -> None:
    geometry = trained(name, tree, *DIRECTED[name])
    assert f1(geometry, tree.closure, others(tree, both_ways=False)) >= 95.0
    assert f1(geometry, tree.closure, tree.closure[:, ::-1].copy()) >= 95.0  # direction, too
    generality = geometry.generality().double().numpy()
    assert (generality[tree.closure[:, 1]] > generality[tree.closure[:, 0]]).mean() > 0.9


@pytest.mark.parametrize("name", SYMMETRIC)
def test_distances_learn_what_is_linked(name: str, tree: Taxonomy) -> None:
    geometry = trained(name, tree, *SYMMETRIC[name])
    alphas = geometry.tuned["alpha"]
    assert max(f1(geometry, tree.closure, others(tree, both_ways=True), alpha=alpha) for alpha in alphas) >= 80.0
    turned = tree.closure[:, ::-1].copy()
    assert f1(geometry, tree.closure, turned, alpha=0.0) == pytest.approx(
        200 / 3
    )  # everything is an edge: nothing is known
    assert max(f1(geometry, tree.closure, turned, alpha=alpha) for alpha in alphas) > 70.0


def test_training_is_repeatable(tree: Taxonomy) -> None:
    model, training = DIRECTED["cones"]
    one, two, three = (
        trained("cones", tree, model, training | {"epochs": 6, "start_epochs": 3}, seed).table for seed in (0, 0, 1)
    )
    assert bool((one == two).all()) and not bool((one == three).all())
