"""Requests and answers of the API, with their limits; the OpenAPI document is made from these."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from subspaces.search.calibration import Method
from subspaces.search.query import DEPTH, LENGTH, OPERATORS, TERMS
from subspaces.settings import Strict

BODY_BYTES = 65_536
TOP = 100
SENTENCE = 5_000  # characters; a model reads some dozen words of it
NAME = 1_000  # characters of a node's name


def _not_empty(text: str) -> str:
    if not text.strip():
        raise ValueError("the text is empty")
    return text


Sentence = Annotated[str, Field(max_length=SENTENCE), AfterValidator(_not_empty)]
Top = Annotated[int, Field(ge=1, le=TOP, description="Length of the list")]


class SearchRequest(Strict):
    query: Annotated[
        str,
        Field(
            max_length=LENGTH,
            description=f"Texts joined by & | ~ and parentheses: at most {TERMS} terms, {OPERATORS} operators, nesting {DEPTH}",
            examples=["a dog & ~on a leash"],
        ),
    ]
    top: Top = 10
    method: Annotated[Method | None, Field(description="How terms are combined; default: the best of the model")] = None


class SearchTerm(Strict):
    text: str
    excluded: Annotated[bool, Field(description="The term is negated wherever it stands in the query")]
    rank: Annotated[float, Field(description="Effective rank Tr(P): how general the term is")]


class SearchHit(Strict):
    place: Annotated[int, Field(description="1 is the best")]
    score: float
    row: Annotated[int, Field(description="Number of the document, from 0")]
    text: str
    rank: Annotated[float, Field(description="Effective rank Tr(P) of the document, or of its best window")]
    inclusions: Annotated[list[float], Field(description="Share of the document that lies in each term, 0 to 1")]


class SearchAnswer(Strict):
    query: Annotated[str, Field(description="The query as it was read, in canonical form")]
    terms: list[SearchTerm]
    hits: list[SearchHit]


class EntailRequest(Strict):
    premise: Annotated[Sentence, Field(description="What is known", examples=["A dog runs on grass."])]
    hypothesis: Annotated[Sentence, Field(description="What may follow", examples=["An animal is outside."])]


class EntailAnswer(Strict):
    two_way: Annotated[dict[str, float], Field(description="Probabilities: entailment, other")]
    three_way: Annotated[
        dict[str, float] | None,
        Field(description="Probabilities: entailment, neutral, contradiction; null: the model has no such head"),
    ]
    inclusion: Annotated[float, Field(description="Share of the premise that lies in the hypothesis")]
    inclusion_reversed: Annotated[float, Field(description="Share of the hypothesis that lies in the premise")]
    premise_rank: float
    hypothesis_rank: float
    shared_rank: Annotated[float, Field(description="Tr(P_premise P_hypothesis)")]
    dim: int
    premise_cut: Annotated[bool, Field(description="The premise is longer than the model reads")]
    hypothesis_cut: bool


class NodeNames(Strict):
    names: list[str]
    matches: Annotated[int, Field(description="Nodes that match; `names` may hold fewer")]


class RelatedNode(Strict):
    name: str
    inclusion: float
    rank: float
    known: Annotated[Literal["given", "closure", ""], Field(description="given, follows from given edges, or neither")]
    entailed: Annotated[bool, Field(description="The inclusion reaches the fitted threshold")]


class NodeAnswer(Strict):
    name: str
    rank: float
    dim: int
    threshold: float
    ancestors: Annotated[
        list[RelatedNode], Field(description="Nodes of larger rank, by how much of this node they include")
    ]
    descendants: Annotated[list[RelatedNode], Field(description="Nodes of smaller rank, by how much lies in this node")]


class Limits(Strict):
    query_characters: int = LENGTH
    terms: int = TERMS
    operators: int = OPERATORS
    nesting: int = DEPTH
    sentence_characters: int = SENTENCE
    top: int = TOP
    body_bytes: int = BODY_BYTES


class HierarchyStatus(Strict):
    name: str
    nodes: int
    dim: int
    threshold: float
    examples: Annotated[list[str], Field(description="The most general nodes")]


class Status(Strict):
    model: str
    backbone: str | None
    weights: Annotated[str, Field(description="sha256 of the weights")]
    dim: int
    documents: Annotated[str, Field(description="Name of the file, or sample")]
    count: int
    hierarchy: HierarchyStatus | None
    methods: Annotated[list[str], Field(description="How terms can be combined")]
    limits: Limits


class Mistake(Strict):
    """What is wrong with a request."""

    error: Annotated[str, Field(description="One sentence or two")]
    at: Annotated[int | None, Field(description="In a query: the position of the mistake, in characters from 0")] = None
    close: Annotated[
        list[str], Field(default_factory=list, description="Names of nodes that look like the one asked for")
    ]
