"""Compiled training: stochastic descent over edges with negatives drawn on the way, for every geometry that has a space.

One edge after the other, or in batches whose gradients are summed per node before anything moves. All loops and all random numbers are
in `descend`, which trains a chunk of edges from one seed: that is a step of the training loop, so that checkpoints and bit-identical
resume are the loop's. A loss writes the derivative by each pair's energy; an edge is the first of its pairs, the corrupted ones follow.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Generator, Tensor

from subspaces.errors import UserError
from subspaces.geometries.base import Geometry, VectorGeometry
from subspaces.geometries.compiled import available, energy_and_gradient, entry, move, part, run, tangent
from subspaces.training.adam import LazyAdam

CHUNK = 16_384  # edges of a step of the training loop: a tenth of a second
TRIES = 64  # draws of one negative before an edge does without it
LOSSES = ("softmax", "margin", "shadow")  # by their number
EXCLUDE = {"none": 0, "known": 1, "linked": 2}  # which corrupted pairs are drawn again


class Loss(NamedTuple):
    """Energies are scores with a minus. `weight`: so much all negatives of an edge weigh together, in the margin loss."""

    kind: int
    positive: float
    negative: float
    weight: float
    margin: float


START = Loss(LOSSES.index("softmax"), 0.0, 0.0, 0.0, 0.0)  # of the start phase


class Negatives(NamedTuple):
    """`below` and `above`: the numbers with another child and with another parent; `siblings`: that share of edges gets siblings as one more.

    `related`: also the edge reversed.
    """

    nodes: int
    below: int
    above: int
    exclude: int
    related: bool
    siblings: float


class Edges(NamedTuple):
    """Training edges as sorted lists of parents: those of a node are parents[starts[node]:starts[node + 1]]. The last three are the
    children of nodes that have two or more, where siblings are wanted."""

    starts: np.ndarray
    parents: np.ndarray
    families: np.ndarray
    sizes: np.ndarray
    children: np.ndarray


class Adam(NamedTuple):
    """Moments of every node, as `LazyAdam` keeps them; `on` is 0 for plain descent."""

    on: int
    mean: np.ndarray
    square: np.ndarray
    count: np.ndarray  # type: ignore[assignment]  # a method of tuples, which nobody counts here


# --- random numbers and negatives -----------------------------------------------------------------------------------------


@part
def random_below(state, bound):
    """Uniform in 0 … bound − 1 (splitmix64), for bounds below 2³²."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    word = state[0]
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    word ^= word >> np.uint64(31)
    return np.int64(((word >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@part
def is_edge(known, child, parent):
    low, high = known.starts[child], known.starts[child + 1]
    while low < high:
        middle = (low + high) // 2
        if known.parents[middle] < parent:
            low = middle + 1
        else:
            high = middle
    return low < known.starts[child + 1] and known.parents[low] == parent


@part
def counts(known, exclude, child, parent):
    """Whether a pair may be a negative."""
    if exclude == 0:
        return True
    if child == parent or is_edge(known, child, parent):
        return False
    return exclude == 1 or not is_edge(known, parent, child)


@part
def draw_pairs(draw, known, state, pairs):
    """Fill pairs[1:] with corrupted forms of the edge pairs[0]; returns (how many pairs there are, how many of them before the other parents)."""
    child, parent, count = pairs[0, 0], pairs[0, 1], 1
    for _ in range(draw.below):
        for _ in range(TRIES):
            other = random_below(state, draw.nodes)
            if counts(known, draw.exclude, other, parent):
                pairs[count, 0], pairs[count, 1] = other, parent
                count += 1
                break
    half = count
    for _ in range(draw.above):
        for _ in range(TRIES):
            other = random_below(state, draw.nodes)
            if counts(known, draw.exclude, child, other):
                pairs[count, 0], pairs[count, 1] = child, other
                count += 1
                break
    if draw.related:
        if counts(known, 1, parent, child):
            pairs[count, 0], pairs[count, 1] = parent, child
            count += 1
        if len(known.sizes) and random_below(state, 1 << 31) < draw.siblings * (1 << 31):
            family = random_below(state, len(known.sizes))
            one = known.children[known.families[family] + random_below(state, known.sizes[family])]
            other = known.children[known.families[family] + random_below(state, known.sizes[family])]
            if counts(known, 1, one, other):
                pairs[count, 0], pairs[count, 1] = one, other
                count += 1
    return count, half


# --- losses: the value, and the derivative by each energy in place of it ------------------------------------------------


@part
def softmax(energy, first, last, top):
    """−log of the share of energy 0 among itself and first … last − 1, whose derivatives are written; adds that by energy 0 to `top`."""
    least = energy[0]
    for k in range(first, last):
        least = min(least, energy[k])
    own = math.exp(least - energy[0])
    total = own
    for k in range(first, last):
        energy[k] = math.exp(least - energy[k])
        total += energy[k]
    for k in range(first, last):
        energy[k] = -energy[k] / total
    top[0] += 1 - own / total
    return -math.log(own / total)


@part
def differentiate(loss, energy, count, half, settled, top):
    top[0] = 0.0
    if loss.kind == 1:
        value = loss.positive + energy[0]
        top[0] = 1.0 if value > 0 else 0.0
        value = max(value, 0.0)
        weight = loss.weight / max(count - 1, 1)
        for k in range(1, count):
            wrong = -energy[k] - loss.negative
            energy[k] = -weight if wrong > 0 else 0.0
            value += weight * max(wrong, 0.0)
    elif loss.kind == 0:
        energy[0] += loss.margin
        value = softmax(energy, 1, count, top)
    else:  # scores cut off at 0 and −margin, against other children and against other parents
        settled[0] = energy[0] < 0
        energy[0] = max(energy[0], 0.0)
        for k in range(1, count):
            settled[k] = energy[k] > loss.margin
            energy[k] = min(energy[k] - loss.margin, 0.0)
        value = softmax(energy, 1, half, top) + softmax(energy, half, count, top)
        for k in range(1, count):
            if settled[k]:
                energy[k] = 0.0
        if settled[0]:
            top[0] = 0.0
    energy[0] = top[0]
    return value


# --- descent --------------------------------------------------------------------------------------------------------------
# Rows are copied to and from buffers that are made once: in numba a view of a row costs more than its ten numbers.


@part
def fetch(table, row, point):
    for i in range(len(point)):
        point[i] = table[row, i]


@part
def add(row, factor, gradients, k, slots, rows, sums, used):
    """Add line k of `gradients` to a node's gradient; `slots` says where in `sums` it is. Returns how many nodes have one now."""
    slot = slots[row]
    if slot < 0:
        slots[row], rows[used] = used, row
        for i in range(sums.shape[1]):
            sums[used, i] = factor * gradients[k, i]
        return used + 1
    for i in range(sums.shape[1]):
        sums[slot, i] += factor * gradients[k, i]
    return used


@part
def follow(space, table, adam, rate, slots, rows, sums, used, point, gradient):
    """One step of every node that has a gradient."""
    if adam.on:
        adam.count[0] += 1
        late = 1 - 0.9 ** adam.count[0]
        scale = math.sqrt(1 - 0.999 ** adam.count[0])
    for slot in range(used):
        row = rows[slot]
        slots[row] = -1
        fetch(table, row, point)
        fetch(sums, slot, gradient)
        if adam.on:
            tangent(space, point, gradient)
            for i in range(len(gradient)):
                adam.mean[row, i] += 0.1 * (gradient[i] - adam.mean[row, i])
                adam.square[row, i] = 0.999 * adam.square[row, i] + 0.001 * gradient[i] * gradient[i]
                gradient[i] = scale / late * adam.mean[row, i] / (math.sqrt(adam.square[row, i]) + 1e-8)
        move(space, point, gradient, rate)
        for i in range(len(point)):
            table[row, i] = point[i]


@entry
def descend(space, loss, draw, known, adam, table, edges, batch, rate, seed):
    """Train on `edges` (E, 2); returns (sum of the losses, edges whose energy is below that of all their negatives).

    The losses are from before the step. A loss that is not finite ends the chunk and is returned.
    """
    width, most = table.shape[1], draw.below + draw.above + 3
    state = np.array([seed], dtype=np.uint64)
    pairs = np.empty((most, 2), dtype=np.int64)
    energy, settled, top = np.empty(most), np.empty(most, dtype=np.bool_), np.zeros(1)
    dchildren, dparents = np.empty((most, width)), np.empty((most, width))
    child, parent, point = np.empty(width), np.empty(width), np.empty(width)
    dchild, dparent, gradient = np.zeros(width), np.zeros(width), np.empty(width)
    slots = np.full(len(table), -1, dtype=np.int32)
    rows = np.empty(2 * most * batch, dtype=np.int64)
    sums = np.empty((2 * most * batch, width))
    total, won, used = 0.0, 0, 0
    for number in range(len(edges)):
        pairs[0, 0], pairs[0, 1] = edges[number, 0], edges[number, 1]
        count, half = draw_pairs(draw, known, state, pairs)
        best = np.inf
        for k in range(count):
            if k == 0 or pairs[k, 0] != pairs[k - 1, 0]:
                fetch(table, pairs[k, 0], child)
            if k == 0 or pairs[k, 1] != pairs[k - 1, 1]:
                fetch(table, pairs[k, 1], parent)
            energy[k] = energy_and_gradient(space, child, parent, dchild, dparent)
            if not math.isfinite(energy[k]):
                return np.nan, won
            if k:
                best = min(best, energy[k])
            for i in range(width):
                dchildren[k, i], dparents[k, i] = dchild[i], dparent[i]
        won += energy[0] < best
        value = differentiate(loss, energy, count, half, settled, top)
        total += value
        size = min(batch, len(edges) - number // batch * batch)
        for k in range(count):
            if energy[k] != 0.0 or adam.on:  # Adam moves even where the gradient has become zero
                factor = energy[k] / size
                used = add(pairs[k, 0], factor, dchildren, k, slots, rows, sums, used)
                used = add(pairs[k, 1], factor, dparents, k, slots, rows, sums, used)
        if (number + 1) % batch == 0 or number + 1 == len(edges):
            follow(space, table, adam, rate, slots, rows, sums, used, point, gradient)
            used = 0
    return total, won


# --- from a task ----------------------------------------------------------------------------------------------------------


def sorted_lists(nodes: int, edges: np.ndarray, siblings: bool = False) -> Edges:
    """Training edges (E, 2) of child, parent as `Edges`."""
    edges = np.unique(edges, axis=0)
    starts = np.concatenate([[0], np.cumsum(np.bincount(edges[:, 0], minlength=nodes))]).astype(np.int64)
    none = np.empty(0, dtype=np.int64)
    if not siblings:
        return Edges(starts, np.ascontiguousarray(edges[:, 1]), none, none, none)
    sizes = np.bincount(edges[:, 1], minlength=nodes)
    first = (np.cumsum(sizes) - sizes)[sizes > 1]
    children = np.ascontiguousarray(edges[np.argsort(edges[:, 1], kind="stable"), 0])
    return Edges(starts, np.ascontiguousarray(edges[:, 1]), first, sizes[sizes > 1], children)


def uses_compiler(engine: str) -> bool:
    """Whether a training is compiled; where there is no compiler it is done by torch, with a warning."""
    return engine == "compiled" and available()


def chunk_of(batch: int) -> int:
    """Edges of a step: whole batches."""
    return batch * max(1, CHUNK // batch)


def require_space(geometry: Geometry) -> None:
    """Refuse what has no compiled form."""
    if geometry.space() is None:
        raise UserError(f"geometry {geometry.name} has no compiled form: use `engine: torch` in params.yaml.")
    if getattr(geometry.optimiser, "adam", False):
        raise UserError(
            f"compiled training moves geometry {geometry.name} by Riemannian SGD: use `optimiser: sgd`, or `engine: torch`."
        )


def train_chunk(
    geometry: Geometry,
    loss: Loss,
    draw: Negatives,
    known: Edges,
    edges: Tensor,
    batch: int,
    rate: float,
    generator: Generator,
) -> tuple[float, int]:
    """`descend` on the geometry's own weights and moments."""
    seed = np.uint64(torch.randint(1 << 62, (), generator=generator).item())
    assert isinstance(geometry, VectorGeometry)  # what has a compiled form is a table of vectors
    memory: Any = geometry.optimiser
    table = geometry.table.numpy()
    if isinstance(memory, LazyAdam):
        adam = Adam(1, memory.mean.numpy(), memory.square.numpy(), memory.count.numpy())
    else:
        adam = Adam(0, np.empty((0, 0), table.dtype), np.empty((0, 0), table.dtype), np.empty(0, np.int64))
    return run(descend, geometry.space(), loss, draw, known, adam, table, edges.numpy(), batch, rate, seed)
