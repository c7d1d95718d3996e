"""Poincaré embeddings, compiled: training edges per second against gensim and against torch, on the same edges, with one thread each."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch

from benchmarks.steps import SEED, relative
from benchmarks.timing import Row, Skipped, in_turns, require_agreement
from subspaces.geometries.base import Geometry, make_geometry
from subspaces.hierarchy.graph import Taxonomy
from subspaces.hierarchy.link_prediction import LinkPredictionTask, LinkTraining, make_task, softmax_loss
from subspaces.hierarchy.splits import Split, draw_split
from subspaces.training.loop import generator_for, set_threads

_ALLOWED = {"loss": 1e-6, "update": 1e-4}  # relative; gensim moves along a straight line, ours along a geodesic
_DEFAULT = 10  # gensim's batch size
RATE = 0.1
TRAINING = {
    "epochs": 1, "start_epochs": 0, "sampling": "per-edge", "pool": 1, "corrupt": "both", "gamma_positive": 0.0, "gamma_negative": 0.0, "optimiser": "sgd", "start": 1e-4, "loss": "softmax", "margin": 0.0, "lr": RATE, "lr_final": 1.0,
    "start_lr": RATE, "burn_in": 0, "burn_in_factor": 1.0, "validate_every": 1, "weigh_as": 1.0,
}  # fmt: skip


def poincare(
    graph: Taxonomy,
    dim: int = 10,
    batch: int = 128,
    negatives: int = 10,
    edges: int = 8192,
    rounds: int = 3,
    others: tuple[int, ...] = (50, 256),
) -> Row:
    """Milliseconds per epoch over `edges` edges: ours in steps of `batch`, gensim in the best of its own 10, `batch` and `others`.

    Both sides are timed in turns at every size and all times are kept: a step of ours has a fixed cost, so small batches suit gensim.
    """
    if find_spec("gensim") is None:
        raise Skipped("gensim is not installed: pip install subspaces[bench]")
    name = f"Poincaré edges per second against gensim, dim {dim}"
    split = some_edges(draw_split(graph, 10), edges)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # gensim has one
    try:
        agreement = compare(split, dim, min(batch, len(split.train)), negatives)
        require_agreement(name, agreement, _ALLOWED)
        timed = {size: race(split, dim, size, negatives, rounds) for size in sorted({_DEFAULT, batch, *others})}
    finally:
        torch.set_num_threads(threads)
    ours, (theirs, best) = timed[batch][0], min((theirs, size) for size, (_, theirs) in timed.items())
    settings = {
        "dim": dim, "batch": batch, "negatives": negatives, "rounds": rounds, "edges": len(split.train), "nodes": split.nodes,
        "baseline": f"gensim {importlib.import_module('gensim').__version__}, batch {best}", "unit": f"ms per {len(split.train)} edges",
        "ms_by_batch": {str(size): {"ours": one, "gensim": other} for size, (one, other) in timed.items()},
        "ours_edges_per_second": round(1e3 * len(split.train) / ours),
        "baseline_edges_per_second": round(1e3 * len(split.train) / theirs),
    }  # fmt: skip
    return Row(
        name, ours, theirs, theirs / ours, at_least=3.0, aim=10.0, agreement=agreement, settings=settings, threads=1
    )


def compiled(graph: Taxonomy, dim: int = 10, negatives: int = 10, edges: int = 8192, rounds: int = 3) -> Row:
    """Milliseconds per epoch: one edge after the other, compiled, against torch in batches of 128.

    Torch one edge after the other would be many times slower, so its usual batch is the fair opponent. That both have the same energies
    and gradients is tested (tests/geometries).
    """
    split = some_edges(draw_split(graph, 10), edges)
    tasks = [poincare_task(split, dim, batch, negatives, engine) for batch, engine in ((1, "compiled"), (128, "torch"))]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        ours, theirs = in_turns(lambda number: epoch(tasks[0], number), lambda number: epoch(tasks[1], number), rounds)
    finally:
        torch.set_num_threads(threads)
    count = len(split.train)
    settings = {
        "dim": dim, "negatives": negatives, "rounds": rounds, "edges": count, "nodes": split.nodes,
        "baseline": "torch, batches of 128", "unit": f"ms per {count} edges",
        "ours_edges_per_second": round(1e3 * count / ours), "baseline_edges_per_second": round(1e3 * count / theirs),
    }  # fmt: skip
    name = f"Poincaré edges per second, compiled against torch, dim {dim}"
    return Row(name, ours, theirs, theirs / ours, at_least=5.0, aim=15.0, agreement={}, settings=settings, threads=1)


def poincare_task(split: Split, dim: int, batch: int, negatives: int, engine: str) -> LinkPredictionTask:
    settings = LinkTraining.model_validate({**TRAINING, "batch": batch, "negatives": negatives, "engine": engine})
    task = make_task(split, make_geometry("poincare", split.nodes, dim), settings)
    task.initialise(generator_for(SEED, 0))
    return task


def race(split: Split, dim: int, batch: int, negatives: int, rounds: int) -> tuple[float, float]:
    """(ours, gensim's) milliseconds per epoch, both in steps of `batch` edges."""
    task = poincare_task(split, dim, batch, negatives, "compiled")
    model = gensim_model(split, dim, negatives)
    return in_turns(lambda number: epoch(task, number), lambda _: model.train(1, batch_size=batch), rounds)


def some_edges(split: Split, count: int) -> Split:
    """`count` random training edges and only the nodes that they join: gensim knows no others."""
    chosen = np.random.default_rng(SEED).permutation(split.train)[:count]
    nodes, places = np.unique(chosen, return_inverse=True)
    none = np.empty((0, 2), dtype=np.int64)
    blocks = np.empty((0, 10, 2), dtype=np.int64)
    names = [split.names[node] for node in nodes]
    return Split(names, places.reshape(-1, 2), none, blocks, none, blocks, split.coverage, "a sample of a drawn split")


def epoch(task: LinkPredictionTask, number: int) -> None:
    """One pass over the edges, in the mode that training sets."""
    set_threads(1)
    task.begin_epoch(0, generator_for(SEED, 1, number))
    for step in range(task.steps_per_epoch):
        task.step(0, step, generator_for(SEED, 2, number, step))


def gensim_model(split: Split, dim: int, negatives: int) -> Any:
    """gensim's model of the same edges, without its regularisation, which ours does not have."""
    model = importlib.import_module("gensim.models.poincare").PoincareModel
    relations = [(str(child), str(parent)) for child, parent in split.train]
    return model(relations, size=dim, alpha=RATE, negative=negatives, regularization_coeff=0.0, burn_in=0, seed=SEED)


def compare(split: Split, dim: int, batch: int, negatives: int, rate: float = 1e-6) -> dict[str, float]:
    """Relative differences in loss and in the change of the vectors after one small step on the same edges and negatives.

    gensim corrupts parents only and sums over a batch where ours takes the mean.
    """
    model = gensim_model(split, dim, negatives)
    random = np.random.default_rng(SEED)
    start = random.uniform(-0.5, 0.5, (split.nodes, dim)) / np.sqrt(dim)
    place = np.array([model.kv.key_to_index[str(node)] for node in range(split.nodes)])
    model.kv.vectors[place] = start
    edges = split.train[:batch]
    away = random.integers(1, split.nodes, size=(len(edges), negatives))
    drawn = (edges[:, :1] + away) % split.nodes  # anybody but the child: gensim divides by the distance
    found = model._prepare_training_batch(
        [(place[child], place[parent]) for child, parent in edges], place[drawn].tolist()
    )
    model.alpha = rate
    model._update_vectors_batch(found)

    geometry: Geometry = make_geometry("poincare", split.nodes, dim)
    geometry.table.copy_(torch.from_numpy(start))
    children = torch.from_numpy(edges[:, :1].repeat(1 + negatives, axis=1))
    parents = torch.from_numpy(np.concatenate([edges[:, 1:], drawn], axis=1))
    opened = geometry.open(torch.arange(split.nodes))
    scores = geometry.pair_scores(opened, children.flatten(), parents.flatten()).view(children.shape).requires_grad_()
    loss = softmax_loss(scores, torch.ones(drawn.shape, dtype=torch.bool), 0.0)
    (upstream,) = torch.autograd.grad(loss, scores)
    geometry.update_pairs(opened, upstream.flatten(), rate * len(edges))
    ours, theirs = float(loss.detach()), float(found.loss) / len(edges)
    moved = torch.from_numpy(model.kv.vectors[place] - start)
    return {"loss": abs(ours - theirs) / theirs, "update": relative(geometry.table - torch.from_numpy(start), moved)}
