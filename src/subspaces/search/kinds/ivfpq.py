"""The paper's index (§4.5): faiss IndexIVFPQ, inner product on NIS vectors, 64 sub-quantisers of 8 bits, 32 lists
probed.

Small and fast, but the paper reports no recall and it is low: 64 bytes cannot hold thousands of entries. Where the
width is no multiple of 64 it is padded with zeros. As the paper has it, faiss does what it does by default for inner
products: centroids of length 1, from which NIS vectors are far away. The option `centred` gives the quantisers their
best chance at the same speed: the documents' mean, which is the same for all, is taken out, and centroids keep their
length.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from subspaces.files import write_bytes
from subspaces.search.kinds.base import Answer, Searcher, read_faiss, same_threads, write_faiss
from subspaces.search.storage import Store
from subspaces.settings import Strict

_BLOCK = 4096
_PER_LIST = 39  # training vectors that faiss wants for each list


class IvfPqSettings(Strict):
    train: int = Field(50_000, ge=1, description="documents on which the quantisers are trained")
    sub_quantisers: int = Field(64, ge=1)
    bits: int = Field(8, ge=1, le=16, description="of a sub-quantiser; fewer where there are few documents")
    probes: int = Field(32, ge=1, description="lists that a query visits")
    lists: int | None = Field(None, ge=1, description="null: the power of two below 4√N")
    centred: bool = Field(False, description="subtract the mean of the documents, do not normalise centroids")
    seed: int = Field(0, ge=0)


class IvfPq:
    name = "ivfpq"
    precision = "float16"
    keeps_vectors = False
    files = ("ivfpq.faiss", "mean.f32")
    smallest = 16
    settings = IvfPqSettings()

    def make(self, store: Store, folder: Path, settings: IvfPqSettings, say: Callable[[str], None]) -> IvfPqSettings:
        import faiss

        lists = settings.lists or number_of_lists(len(store), settings.train)
        used = settings.model_copy(
            update={
                "lists": lists,
                "bits": min(settings.bits, int(math.log2(len(store)))),  # a sub-quantiser trains 2^bits centroids
            }
        )
        parts = used.sub_quantisers
        width = -(-store.width // parts) * parts
        same_threads()
        quantiser = faiss.IndexFlatIP(width)
        index = faiss.IndexIVFPQ(quantiser, width, lists, parts, used.bits, faiss.METRIC_INNER_PRODUCT)
        index.cp.min_points_per_centroid = index.pq.cp.min_points_per_centroid = (
            1  # faiss would print warnings for small indexes
        )
        index.cp.spherical = not used.centred
        say(f"training {lists} lists and {parts} sub-quantisers on {min(used.train, len(store)):,} documents")
        sample = store.sample(used.train, used.seed)
        mean = sample.mean(0) if used.centred else torch.zeros(store.width)
        index.train(padded(sample.sub_(mean), width))
        for _, block in store.blocks(_BLOCK):
            index.add(padded(block.sub_(mean), width))
        write_faiss(index, folder / self.files[0])
        write_bytes(folder / self.files[1], mean.numpy().tobytes())
        return used

    def open(self, folder: Path, width: int, settings: IvfPqSettings) -> Searcher:
        index = read_faiss(folder / self.files[0])
        return IvfPqSearcher(
            index, torch.from_numpy(np.fromfile(folder / self.files[1], dtype=np.float32)), settings.probes
        )


class IvfPqSearcher:
    def __init__(self, index: Any, mean: Tensor, probes: int):
        self.index, self.mean, self.probes = index, mean, probes

    def search(self, queries: Tensor, top: int, effort: float = 1.0) -> Answer:
        same_threads()
        self.index.nprobe = max(1, round(effort * self.probes))
        scores, rows = self.index.search(padded(queries, self.index.d), top)
        return torch.from_numpy(scores).add_((queries @ self.mean).unsqueeze(1)), torch.from_numpy(rows)

    def scores(self, queries: Tensor, rows: Tensor) -> Tensor:
        self.index.make_direct_map()  # does nothing the second time
        vectors = torch.from_numpy(self.index.reconstruct_batch(rows.numpy()))[:, : len(self.mean)]
        return queries @ (vectors + self.mean).T


def number_of_lists(count: int, train: int) -> int:
    """The power of two below 4√N, but no more than can be trained."""
    wanted = min(4 * math.sqrt(count), min(count, train) / _PER_LIST)
    return 2 ** int(math.log2(max(wanted, 1)))


def padded(vectors: Tensor, width: int) -> np.ndarray:
    """Zeros to the right: inner products stay."""
    return torch.nn.functional.pad(vectors, (0, width - vectors.shape[1])).contiguous().numpy()
