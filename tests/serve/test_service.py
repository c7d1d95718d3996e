"""Answers agree with the library."""

from __future__ import annotations

from pathlib import Path

import pytest

from subspaces.search.query import parse
from subspaces.serve.service import SAMPLE, Service, UnknownNode, _signs
from subspaces.text.subspace_encoder import SubspaceEncoder


def test_hits_are_those_of_the_index_and_inclusions_those_of_the_algebra(service: Service) -> None:
    query = "a dog & ~on a leash | a cat"
    answer = service.search(query, 7, None)
    found = service.index.search(query, 7)
    assert [(hit.score, hit.row, hit.text) for hit in answer.hits] == [tuple(hit) for hit in found]
    assert [hit.place for hit in answer.hits] == [*range(1, 8)]
    assert [(term.text, term.excluded) for term in answer.terms] == [
        ("a dog", False),
        ("on a leash", True),
        ("a cat", False),
    ]
    encoder = service.encoder
    for hit in answer.hits:
        document = encoder.encode(hit.text)
        assert hit.rank == pytest.approx(float(document.rank), abs=1e-4)
        for term, share in zip(answer.terms, hit.inclusions, strict=True):
            assert share == pytest.approx(float(document.inclusion(encoder.encode(term.text))), abs=1e-5)
            assert term.rank == pytest.approx(float(encoder.encode(term.text).rank), abs=1e-4)


def test_another_rule_for_conjunctions(service: Service) -> None:
    answer = service.search("a dog & a cat", 5, "sandwich-hard")
    assert [hit.row for hit in answer.hits] == [
        hit.row for hit in service.index.search("a dog & a cat", 5, "sandwich-hard")
    ]


def test_a_term_is_excluded_where_it_is_negated_everywhere() -> None:
    signs = _signs(parse("~(a & ~b) | a & ~a & ~~c"))
    assert signs == {"a": [True, False, True], "b": [False], "c": [False]}


def test_a_long_document_shows_its_best_window(model: Path, tmp_path: Path) -> None:
    long = " and ".join(SAMPLE.read_text(encoding="utf-8").splitlines()[:12])
    path = tmp_path / "texts.txt"
    path.write_text(f"a dog\n{long}\na street\n", encoding="utf-8")
    service = Service.open(SubspaceEncoder.from_pretrained(model), path)
    assert service.status().documents == "texts.txt" and service.status().count == 3
    assert (tmp_path / "texts.txt.subspaces/manifest.json").exists()
    (hit,) = [hit for hit in service.search("a cat", 3, None).hits if hit.text == long]
    shares = [
        float(service.encoder.encode(window).inclusion(service.encoder.encode("a cat")))
        for window in service._texts.windows([long])[0]
    ]
    assert len(shares) > 1 and hit.inclusions == pytest.approx([max(shares)], abs=1e-5)
    assert hit.inclusions[0] == pytest.approx(hit.score, abs=2e-3)  # the index stores 16 bits


def test_entailment(service: Service) -> None:
    premise, hypothesis = "a dog runs on grass", "an animal"
    answer = service.entail(premise, hypothesis)
    p, h = service.encoder.encode([premise, hypothesis])
    assert answer.inclusion == pytest.approx(float(p.inclusion(h)), abs=1e-5)
    assert answer.inclusion_reversed == pytest.approx(float(h.inclusion(p)), abs=1e-5)
    assert answer.shared_rank == pytest.approx(float(p.similarity(h)), abs=1e-4)
    assert sum(answer.two_way.values()) == pytest.approx(1, abs=1e-5)
    assert answer.three_way is not None and sum(answer.three_way.values()) == pytest.approx(1, abs=1e-5)
    assert not answer.premise_cut and not answer.hypothesis_cut
    assert service.entail("word " * 60, "a dog").premise_cut


def test_nodes_are_found_by_part_of_their_name(service: Service) -> None:
    assert service.nodes("NODE 1", 3).names == ["node 1", "node 10", "node 11"]
    assert service.nodes("node 1", 3).matches == 11
    assert service.nodes("§", 3).matches == 0
    assert service.nodes(" ", 3).names[0] == "node 0"  # the root is the most general node


def test_relatives_are_those_of_the_hierarchy(service: Service) -> None:
    hierarchy, answer = service.hierarchy, service.node("node 5", 4)
    assert hierarchy is not None
    for mine, theirs in (
        (answer.ancestors, hierarchy.ancestors("node 5", 4)),
        (answer.descendants, hierarchy.descendants("node 5", 4)),
    ):
        assert [(one.name, one.inclusion, one.rank, one.known) for one in mine] == [
            (one.name, one.inclusion, one.rank, one.known) for one in theirs
        ]
        assert all(one.entailed == (one.inclusion >= hierarchy.threshold) for one in mine)
    with pytest.raises(UnknownNode) as found:
        service.node("nod 17", 4)
    assert "node 17" in found.value.close


def test_the_sample_is_two_hundred_different_sentences() -> None:
    lines = SAMPLE.read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(set(lines)) == 200
