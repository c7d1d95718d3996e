"""What a query reads: half-vectors of all projectors (`subspaces.algebra.half_vector`) and their traces, made once when a fit ends.

Half-vectors are kept as 16-bit floats: 416 MB for 100,000 nodes at d = 64, a quarter of the weights. A test holds what rounding does to
an inclusion below 1e-4, and a query reads one file instead of inverting 100,000 matrices. Traces stay at 32 bits: ranks are compared.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor

from subspaces.algebra import half_vector
from subspaces.files import atomic_file, sha256_file
from subspaces.projector import complement, projector_of

_NODES = 2048  # taken together: bounds the memory
_SCAN = 8192


def write_features(weights: Path, lam: float, out: Path) -> str:
    """From X (N, d, n) to `trace` (N,) and `half` (N, d(d+1)/2), block by block: neither is ever whole in memory. Returns the sha256."""
    with safe_open(weights, framework="pt") as content, atomic_file(out) as handle:
        X = content.get_slice("X")
        nodes, dim, _ = X.get_shape()
        width = dim * (dim + 1) // 2
        header = {
            "trace": {"dtype": "F32", "shape": [nodes], "data_offsets": [0, 4 * nodes]},
            "half": {
                "dtype": "F16",
                "shape": [nodes, width],
                "data_offsets": [4 * nodes, 4 * nodes + 2 * nodes * width],
            },
        }
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        handle.write(struct.pack("<Q", len(text)) + text)
        begin = handle.tell()
        handle.seek(4 * nodes, 1)
        traces = []
        for start in range(0, nodes, _NODES):
            P = projector_of(complement(X[start : start + _NODES], lam))
            traces.append(P.diagonal(dim1=-2, dim2=-1).sum(-1))
            handle.write(half_vector(P).to(torch.float16).numpy().data)
        handle.seek(begin)
        handle.write(torch.cat(traces).numpy().data)
    return sha256_file(out)


class Features:
    """The features of all nodes, mapped from their file, with the products that everything here needs."""

    bounded = True

    def __init__(self, path: Path):
        with safe_open(path, framework="pt") as content:
            self.trace, self.half = content.get_tensor("trace"), content.get_tensor("half")

    def append(self, half: Tensor, trace: Tensor) -> None:
        """One more node, from its half-vector (k,) and its trace."""
        self.half = torch.cat([self.half, half.to(self.half.dtype)[None]])
        self.trace = torch.cat([self.trace, trace.to(self.trace.dtype).reshape(1)])

    def inclusion(self, child: Tensor, parent: Tensor) -> Tensor:
        """NIS(P_parent | P_child) = Tr(P_child P_parent) / Tr(P_child) of pairs of nodes (m,): (m,), in double precision."""
        parts = zip(child.split(_NODES), parent.split(_NODES), strict=True)
        shared = [(self.half[one].double() * self.half[other].double()).sum(-1) for one, other in parts]
        return torch.cat(shared) / self.trace[child].double().clamp_min(1e-30)

    def block(self, children: Tensor, parents: Tensor) -> Tensor:
        """NIS of every child in every parent, (children, parents), in single precision."""
        return self.score_block(self.half[children], self.half[parents]) / self.trace[children, None].clamp_min(1e-30)

    # what `evaluate_ranking` asks of a geometry
    def all_features(self) -> Tensor:
        return self.half

    def score_block(self, sources: Tensor, everyone: Tensor) -> Tensor:
        left = sources.float()
        scores = torch.empty(len(left), len(everyone))
        for place, part in zip(scores.split(_SCAN, dim=1), everyone.split(_SCAN), strict=True):
            place.copy_(left @ part.float().T)
        return scores
