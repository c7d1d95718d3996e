"""The samples that stand in at quick scale are sound: tables in the form of the real ones, and a vocabulary that covers them."""

import json
from collections import Counter

from subspaces.sources.origins import SAMPLES
from subspaces.sources.tables import CAPTION_COLUMNS, LABELS


def rows_of(name):
    header, *lines = (SAMPLES / name).read_text(encoding="utf-8").splitlines()
    names = header.split("\t")
    return names, [dict(zip(names, line.split("\t"), strict=True)) for line in lines]


def test_inference_pairs():
    names, rows = rows_of("snli.tsv")
    assert names == ["split", "gold_label", "sentence1", "sentence2"]
    assert len(rows) == 240 and Counter(row["gold_label"] for row in rows) == dict.fromkeys(LABELS, 80)
    assert len({(row["sentence1"], row["sentence2"]) for row in rows}) == 240
    premises = {
        split: {row["sentence1"] for row in rows if row["split"] == split} for split in ("train", "dev", "test")
    }
    assert {split: len(own) for split, own in premises.items()} == {"train": 58, "dev": 11, "test": 11}
    assert len(set.union(*premises.values())) == 80, "no premise stands in two splits"
    assert all(
        row[side].endswith(".") and row[side] == row[side].strip()
        for row in rows
        for side in ("sentence1", "sentence2")
    )


def test_captions():
    names, rows = rows_of("captions.txt")
    assert tuple(names) == CAPTION_COLUMNS and len(rows) == 150
    assert set(Counter(row["image"] for row in rows).values()) == {5}
    assert {row["split"] for row in rows} == {"train", "val", "test_2016"}
    captions = [row["caption"].lower() for row in rows]
    assert len(set(captions)) == 150
    for words in (
        ("city street", "at night"),
        ("umbrella", "rain"),
        ("umbrella", "beach"),
        ("children", "road"),
        ("sitting", "bench"),
    ):
        assert any(all(word in caption for word in words) for caption in captions), words


def test_the_vocabulary_covers_the_samples_word_by_word():
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer

    tokens = (SAMPLES / "tiny-vocab.txt").read_text(encoding="utf-8").splitlines()
    assert tokens[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert len(set(tokens)) == len(tokens) and 1_400 <= len(tokens) <= 1_800
    assert {*"az", "##a", "##z", "0", ".", ","} <= set(tokens)
    tokenizer = Tokenizer(WordPiece({token: place for place, token in enumerate(tokens)}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = BertNormalizer(lowercase=True), BertPreTokenizer()
    texts = {row[side] for row in rows_of("snli.tsv")[1] for side in ("sentence1", "sentence2")}
    texts |= {row["caption"] for row in rows_of("captions.txt")[1]}
    pieces = [piece for text in sorted(texts) for piece in tokenizer.encode(text, add_special_tokens=False).tokens]
    assert "[UNK]" not in pieces and not any(piece.startswith("##") for piece in pieces)
    spelt = tokenizer.encode("xylophones", add_special_tokens=False).tokens
    assert "[UNK]" not in spelt and len(spelt) > 2, "an unknown word is spelt"


def test_the_tiny_backbone_is_described():
    assert json.loads((SAMPLES / "tiny-backbone.json").read_text()) == {
        "hidden": 64,
        "layers": 2,
        "heads": 4,
        "intermediate": 128,
        "seed": 0,
        "model_type": "bert",
    }
