"""Which tokeniser a model has: its backbone's, the sample backbone's, or the words of its own training texts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from subspaces.files import read_json
from subspaces.nli.texts import WordPieces, Words


def tokeniser_of(job: dict[str, Any], texts: Sequence[str], sources: Path) -> WordPieces | Words:
    """The tokeniser to train with."""
    if job["backbone"] is None:
        return Words.of(texts, at_least=2)
    folder = sources / job["backbone"]["name"]
    sample = folder / "tiny-vocab.txt"
    return WordPieces(text=sample_tokeniser(sample)) if sample.exists() else WordPieces(folder / "tokenizer.json")


def saved_tokeniser(folder: Path) -> WordPieces | Words:
    """The tokeniser that lies beside a trained model."""
    content = read_json(folder / "tokenizer.json")
    return Words(content["words"]) if "words" in content else WordPieces(folder / "tokenizer.json")


def sample_tokeniser(vocabulary: Path) -> str:
    """Word pieces over the sample's small vocabulary, in the libraries' own format."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    names = {word: place for place, word in enumerate(vocabulary.read_text(encoding="utf-8").split())}
    tokenizer = Tokenizer(models.WordPiece(names, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", names["[CLS]"]), ("[SEP]", names["[SEP]"])]
    )
    return tokenizer.to_str(pretty=True)
