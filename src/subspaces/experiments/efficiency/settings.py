"""Parameters of retrieval and efficiency (Tables 7 and 8, the figures of compression and of compositional
retrieval)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from subspaces.settings import Strict

Kind = Literal["exact-fp32", "exact-fp16", "ivfpq", "reduced", "compact"]


class RetrievalScale(Strict):
    captions: int | None = Field(None, ge=1, description="number of captions, from the first; null: all")
    shards: int = Field(ge=1, description="slices that independent jobs encode")
    queries: int = Field(ge=1, description="queries of the latency measurement, in batches")
    repeats: int = Field(ge=1, description="times that every row is measured, in turns; the median counts")
    compared: int | None = Field(
        None, ge=1, description="captions that the figure's queries search in all three ways; null: all"
    )
    sentences: int = Field(
        ge=1, description="captions encoded for the encoding times, per batch size at least one batch"
    )
    compression_pairs: int | None = Field(
        None, ge=1, description="test pairs of SNLI for the compression figure; null: all"
    )
    compression_nodes: int | None = Field(
        None, ge=1, description="nouns whose ancestors are ranked for the compression figure; null: all"
    )


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

    def budget(self, scale: str) -> RetrievalScale:
        return getattr(self.scales, scale)

    @property
    def search_kind(self) -> Kind:
        """The index that `subspaces search` takes: the fastest accurate kind that is built."""
        return next((kind for kind in ("reduced", "compact") if kind in self.kinds), self.kinds[0])


class LatencySettings(Strict):
    """Of one run of Table 8."""

    queries: int = Field(ge=1)
    repeats: int = Field(ge=1)
    batch: int = Field(ge=1)
    top: int = Field(ge=1)
    seed: int = Field(ge=0)
    conjunction: Literal["product", "sandwich-hard", "exact"] = "product"
    kinds: list[Kind] = Field(default_factory=list)


class EncodingSettings(Strict):
    """Of one run of Table 7; `job` is the SNLI job of the row with the head."""

    batches: list[Annotated[int, Field(ge=1)]] = Field(min_length=1)
    sentences: int = Field(ge=1)
    repeats: int = Field(ge=1)
    seed: int = Field(ge=0)
    job: dict[str, Any]


class QueriesSettings(Strict):
    """Of the figure of composed queries."""

    queries: list[str] = Field(min_length=1)
    conjunction: Literal["product", "sandwich-hard", "exact"]
    top: int = Field(ge=1)
    captions: int | None = Field(None, ge=1)


class CompressionSettings(Strict):
    """Of one half of the compression figure: `nodes` for WordNet, `pairs` for SNLI."""

    taus: list[Annotated[float, Field(ge=0, lt=1)]] = Field(min_length=1)
    seed: int = Field(ge=0)
    nodes: int | None = Field(None, ge=1)
    pairs: int | None = Field(None, ge=1)
