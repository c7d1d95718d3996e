"""WordNet through nltk: the paper's counts, a stable order, clear errors; and a sample that is sound."""

import json
import threading
from collections import Counter
from itertools import pairwise

import pytest

from subspaces.errors import UserError
from subspaces.sources.origins import SAMPLES
from subspaces.sources.registry import get
from subspaces.sources.wordnet_reader import open_nltk, read_wordnet

CHAIN = [
    "entity.n.01",
    "physical_entity.n.01",
    "object.n.01",
    "living_thing.n.01",
    "organism.n.01",
    "animal.n.01",
    "vertebrate.n.01",
    "mammal.n.01",
    "primate.n.02",
    "hominid.n.01",
    "homo.n.02",
    "homo_sapiens.n.01",
]


def depths(count, edges):
    """Longest way up from each node; fails on a cycle."""
    parents = [[] for _ in range(count)]
    for child, parent in edges:
        parents[child].append(parent)
    known, open_nodes = {}, set()

    def depth(node):
        if node not in known:
            assert node not in open_nodes, "a cycle"
            open_nodes.add(node)
            known[node] = max((depth(parent) + 1 for parent in parents[node]), default=0)
        return known[node]

    return [depth(node) for node in range(count)]


@pytest.mark.parametrize(("pos", "what", "instances"), [("nouns", "noun", 8577), ("verbs", "verb", 0)])
def test_real_counts(real_wordnet, pos, what, instances):
    names, edges = read_wordnet(real_wordnet, pos, instance_hypernyms=False)
    counts = get("wordnet").counts
    assert (len(names), len(edges)) == (counts[pos], counts[f"{what} edges"])
    assert len(set(names)) == len(names) and len(set(edges)) == len(edges)
    more, more_edges = read_wordnet(real_wordnet, pos, instance_hypernyms=True)
    assert more == names
    assert set(edges) <= set(more_edges) and len(more_edges) == len(edges) + instances


def test_real_closures(real_wordnet):
    for pos, what in (("nouns", "noun"), ("verbs", "verb")):
        names, edges = read_wordnet(real_wordnet, pos, instance_hypernyms=False)
        parents = [[] for _ in names]
        for child, parent in edges:
            parents[child].append(parent)
        total = 0
        for node in range(len(names)):
            seen, todo = set(), list(parents[node])
            while todo:
                above = todo.pop()
                if above not in seen:
                    seen.add(above)
                    todo += parents[above]
            total += len(seen)
        assert total == get("wordnet").counts[f"{what} closure"]


def test_inflected_words_have_synsets(real_wordnet):
    assert open_nltk(real_wordnet).synsets("dogs", "n")[0].name() == "dog.n.01"


def test_the_order_is_that_of_the_data_file(real_wordnet):
    """Data digests depend on it: nodes by byte offset, edges by child and parent."""
    names, edges = read_wordnet(real_wordnet, "verbs", instance_hypernyms=False)
    lines = [line for line in (real_wordnet / "data.verb").read_text().splitlines() if not line.startswith(" ")]
    assert [name.split(".v.")[0] for name in names] == [line.split()[4].lower() for line in lines]
    assert edges == sorted(edges)


def test_nltk_readers_open_in_parallel(real_wordnet):
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(len(open_nltk(real_wordnet).synsets("dog")))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [8, 8]


@pytest.mark.parametrize("damage", ["cut line", "unknown sense", "unknown target", "index"])
def test_damaged_database_files_are_explained(real_wordnet, tmp_path, damage):
    for path in real_wordnet.iterdir():
        if path.name not in ("data.verb", "index.verb"):
            (tmp_path / path.name).symlink_to(path)
    data, index = ((real_wordnet / f"{kind}.verb").read_text() for kind in ("data", "index"))
    first = next(line for line in data.splitlines() if " @ " in line)
    target = first.split(" @ ")[1].split()[0]
    match damage:
        case "cut line":
            data = data.replace(first, first[:40].ljust(len(first)))
        case "unknown sense":
            index = index.replace(first.split()[0], "99999999")
        case "unknown target":
            data = data.replace(first, first.replace(f"@ {target}", "@ 99999999"))
        case "index":
            index = index.replace("\nbreathe v ", "\nbreathe v x ")
    (tmp_path / "data.verb").write_text(data)
    (tmp_path / "index.verb").write_text(index)
    with pytest.raises(UserError, match=r"cannot read .* as WordNet 3\.0 .*subspaces fetch wordnet"):
        read_wordnet(tmp_path, "verbs", instance_hypernyms=False)


def test_wrong_requests_are_explained(tmp_path):
    with pytest.raises(UserError, match="15 files are missing"):
        read_wordnet(tmp_path, "nouns", instance_hypernyms=False)
    with pytest.raises(UserError, match="nouns, verbs"):
        read_wordnet(tmp_path, "adverbs", instance_hypernyms=False)
    with pytest.raises(UserError, match="subspaces fetch wordnet"):
        open_nltk(tmp_path)


# The sample


@pytest.mark.parametrize(("pos", "size", "alone"), [("nouns", 220, 4), ("verbs", 80, 5)])
def test_the_sample_is_sound(pos, size, alone):
    names, edges = read_wordnet(SAMPLES, pos, instance_hypernyms=True)
    assert len(names) >= size and len(set(names)) == len(names)
    assert len(set(edges)) == len(edges)
    linked = {node for edge in edges for node in edge}
    assert len(names) - len(linked) == alone
    assert sum(number > 1 for number in Counter(child for child, _ in edges).values()) >= 3
    assert 3 <= max(depths(len(names), edges)) <= 11
    assert all(name.endswith((".01", ".02")) and f".{pos[0]}." in name for name in names)


def test_the_sample_has_the_chain_that_the_figure_shows():
    names, edges = read_wordnet(SAMPLES, "nouns", instance_hypernyms=False)
    pairs = {(names[child], names[parent]) for child, parent in edges}
    assert all((below, above) in pairs for above, below in pairwise(CHAIN))
    assert names[0] == "entity.n.01"


def test_instances_of_the_sample_follow_the_switch():
    names, edges = read_wordnet(SAMPLES, "nouns", instance_hypernyms=False)
    same, more = read_wordnet(SAMPLES, "nouns", instance_hypernyms=True)
    assert names == same and set(edges) < set(more)
    added = {(names[child], names[parent]) for child, parent in set(more) - set(edges)}
    assert ("paris.n.01", "city.n.01") in added and len(added) >= 10


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must begin with"),
        ("a\tb\n", "must begin with"),
        ("pos\tchild\tparent\tkind\nn\ta.n.01\n", "line 2"),
        ("pos\tchild\tparent\tkind\nn\ta.n.01\t\tfriend\n", "line 2"),
        ("pos\tchild\tparent\tkind\nn\ta.n.01\tb.n.01\thypernym\n", "parent b.n.01 is not listed"),
    ],
)
def test_a_broken_sample_is_explained(tmp_path, text, message):
    (tmp_path / "wordnet.tsv").write_text(text)
    with pytest.raises(UserError, match=message):
        read_wordnet(tmp_path, "nouns", instance_hypernyms=False)


def test_the_sample_shares_no_text_with_wordnet():
    """It holds names and links only; there is no place for a gloss."""
    rows = (SAMPLES / "wordnet.tsv").read_text().splitlines()
    assert all(row.count("\t") == 3 and " " not in row for row in rows)
    assert json.dumps(rows).isascii()
