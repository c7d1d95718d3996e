"""Parameters of retrieval and efficiency (Tables 7 and 8, the figures of compression and of compositional retrieval)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from subspaces.params.base import Strict

Kind = Literal["exact-fp32", "exact-fp16", "ivfpq", "reduced", "compact"]


class RetrievalScale(Strict):
    captions: int | None = Field(None, ge=1, description="the first so many captions; null: all")
    shards: int = Field(ge=1, description="slices that independent jobs encode")
    queries: int = Field(ge=1, description="queries of the latency measurement, in batches")
    repeats: int = Field(ge=1, description="times that every row is measured, in turns; the median counts")
    compared: int | None = Field(None, ge=1, description="captions that the figure's queries search in all three ways; null: all")
    sentences: int = Field(ge=1, description="captions encoded for the encoding times, per batch size at least one batch")
    compression_pairs: int | None = Field(None, ge=1, description="test pairs of SNLI for the compression figure; null: all")
    compression_nodes: int | None = Field(None, ge=1, description="nouns whose ancestors are ranked for the compression figure; null: all")


class RetrievalScales(Strict):
    quick: RetrievalScale
    laptop: RetrievalScale
    paper: RetrievalScale


class Retrieval(Strict):
    model: str = Field(description="a subspace row of snli.models: encodes captions and queries")
    kinds: list[Kind] = Field(min_length=1, description="the indexes that are built and compared; the first is exact")
    conjunction: Literal["product", "sandwich-hard", "exact"]
    queries: list[str] = Field(min_length=1, description="of the figure, in the query language")
    top: int = Field(ge=1)
    batch: int = Field(ge=1, description="queries asked together when latency is measured")
    batches: list[Annotated[int, Field(ge=1)]] = Field(min_length=1, description="batch sizes of the encoding times")
    taus: list[Annotated[float, Field(ge=0, lt=1)]] = Field(min_length=2, description="eigenvalues below are dropped")
    seed: int = Field(ge=0)
    scales: RetrievalScales
