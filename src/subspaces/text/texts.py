"""From sentences to padded batches of token ids. A sentence is tokenised once; a batch is padded to its own longest sentence."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from subspaces.errors import UserError
from subspaces.files import read_json


@dataclass(frozen=True)
class Tokens:
    """A padded batch: ids (B, m), mask (B, m) true where there is a token."""

    ids: Tensor
    mask: Tensor

    @cached_property
    def full(self) -> bool:
        """Every place holds a token: nothing is padded."""
        return bool(self.mask.all())

    def to(self, device: str) -> Tokens:
        return Tokens(self.ids.to(device), self.mask.to(device))


class Tokeniser(Protocol):
    pad: int

    def encode(self, texts: Sequence[str], limit: int) -> tuple[list[list[int]], int]:
        """Ids of each text, cut at `limit` tokens, and how many texts were cut."""
        ...


class WordPieces:
    """The tokeniser of a pretrained backbone, from its tokenizer.json or from the text of one."""

    def __init__(self, path: Path | None = None, text: str = ""):
        from tokenizers import Tokenizer

        if path is not None and not path.exists():
            raise UserError(
                f"{path} is missing: fetch the backbone again with `subspaces fetch`, or copy the whole folder of the model."
            )
        self.text = path.read_text(encoding="utf-8") if path is not None else text
        self._tokenizer = Tokenizer.from_str(self.text)
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        names = self._tokenizer.get_vocab()
        self.pad = names.get("<pad>", names.get("[PAD]", 0))  # MPNet has both: the second is an ordinary word there
        self.size = len(names)

    def encode(self, texts: Sequence[str], limit: int) -> tuple[list[list[int]], int]:
        found = [one.ids for one in self._tokenizer.encode_batch_fast(list(texts))]
        long = sum(len(ids) > limit for ids in found)
        return [
            ids if len(ids) <= limit else [*ids[: limit - 1], ids[-1]] for ids in found
        ], long  # the closing token stays


_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?|[^\sa-z0-9]")


class Words:
    """Lower-cased words for the recurrent baselines; 0 is padding, 1 any unknown word."""

    pad = 0

    def __init__(self, words: Sequence[str]):
        self.words = list(words)
        self._ids = {word: place + 2 for place, word in enumerate(self.words)}
        self.size = len(self.words) + 2

    @classmethod
    def of(cls, texts: Iterable[str], at_least: int = 1, most: int | None = None) -> Words:
        """The words of training texts, the most frequent first; ties in alphabetical order."""
        counts = Counter(word for text in texts for word in _WORD.findall(text.lower()))
        ranked = sorted((-count, word) for word, count in counts.items() if count >= at_least)
        return cls([word for _, word in ranked[:most]])

    def encode(self, texts: Sequence[str], limit: int) -> tuple[list[list[int]], int]:
        found = [[self._ids.get(word, 1) for word in _WORD.findall(text.lower())] or [1] for text in texts]
        return [ids[:limit] for ids in found], sum(len(ids) > limit for ids in found)


class TokenTable:
    """The token ids of many sentences, one after the other."""

    def __init__(self, rows: Sequence[Sequence[int]], pad: int, truncated: int = 0):
        self.pad, self.truncated = pad, truncated
        self.lengths = np.fromiter((len(row) for row in rows), np.int64, len(rows))
        self._starts = np.concatenate([[0], np.cumsum(self.lengths)])
        self._flat = np.fromiter((one for row in rows for one in row), np.int64, int(self._starts[-1]))

    @classmethod
    def of(cls, texts: Sequence[str], tokeniser: Tokeniser, limit: int) -> TokenTable:
        rows, truncated = tokeniser.encode(texts, limit)
        return cls(rows, tokeniser.pad, truncated)

    def __len__(self) -> int:
        return len(self.lengths)

    def batch(self, rows: np.ndarray, width: int | None = None) -> Tokens:
        """The sentences `rows` as one batch, padded to the longest of them, or to `width`."""
        lengths = self.lengths[rows]
        width = max(int(lengths.max()), width or 0)
        places = np.arange(width)[None, :]
        mask = places < lengths[:, None]
        ids = np.where(
            mask, self._flat[np.minimum(self._starts[rows][:, None] + places, len(self._flat) - 1)], self.pad
        )
        return Tokens(torch.from_numpy(ids), torch.from_numpy(mask))


def backbone_tokeniser(folder: Path) -> WordPieces:
    """The tokeniser of a backbone's folder, or of the sample backbone in it."""
    sample = folder / "tiny-vocab.txt"
    if sample.exists():
        return WordPieces(text=sample_tokeniser(sample))
    if not (folder / "tokenizer.json").exists():
        return WordPieces(text=_converted(folder))
    return WordPieces(folder / "tokenizer.json")


def _converted(folder: Path) -> str:
    """The library's fast tokeniser of a folder that has only the files of a slow one."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, ImportError) as error:
        raise UserError(
            f"{folder} has no tokenizer.json, and no other tokeniser that can be loaded: {error}"
        ) from error
    if not any((folder / name).exists() for name in tokenizer.vocab_files_names.values()):
        raise UserError(f"{folder} has no tokenizer.json and no vocabulary: add the tokenizer.json of the model.")
    if not tokenizer.is_fast:
        raise UserError(
            f"{folder} has no fast tokeniser ({type(tokenizer).__name__} only): add the tokenizer.json of the model."
        )
    return tokenizer.backend_tokenizer.to_str()


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
