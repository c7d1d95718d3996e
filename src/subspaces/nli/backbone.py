"""The two pretrained sentence encoders, BERT-like (MiniLM) and MPNet, as one small module.

Same function as the library's classes (a test compares the outputs), but it starts three seconds sooner, computes queries, keys and
values in one product, takes several padded batches at once, and hands out the hidden states of the last layers, which is all that the
heads need.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from subspaces.errors import UserError
from subspaces.files import read_json
from subspaces.nli.texts import Tokens

_BUCKETS, _FAR = 32, 128  # MPNet's relative positions
_KEPT = ("model_type", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "layer_norm_eps", "vocab_size")
_KEPT += ("max_position_embeddings", "hidden_dropout_prob")


class Layer(nn.Module):
    """Attention, then a feed-forward net, each with a residual and a norm after it.

    The states (T, h) are those of all tokens of several padded batches; only attention takes the batches one by one.
    """

    def __init__(self, config: Mapping[str, Any]):
        super().__init__()
        size, eps = config["hidden_size"], config["layer_norm_eps"]
        self.heads = config["num_attention_heads"]
        self.qkv = nn.Linear(size, 3 * size)
        self.joined = nn.Linear(size, size)
        self.norm_attention = nn.LayerNorm(size, eps=eps)
        self.up = nn.Linear(size, config["intermediate_size"])
        self.down = nn.Linear(config["intermediate_size"], size)
        self.norm_output = nn.LayerNorm(size, eps=eps)

    def forward(self, states: Tensor, shapes: Sequence[tuple[int, int]], biases: Sequence[Tensor], dropout: float) -> Tensor:
        gathered = []
        for part, (batch, length), bias in zip(self.qkv(states).split([b * m for b, m in shapes]), shapes, biases, strict=True):
            q, k, v = part.view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
            mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, dropout_p=dropout)
            gathered.append(mixed.transpose(1, 2).reshape(batch * length, -1))
        mixed = self.joined(torch.cat(gathered) if len(gathered) > 1 else gathered[0])
        states = self.norm_attention(states + F.dropout(mixed, dropout, dropout > 0))
        changed = self.down(F.gelu(self.up(states)))
        return self.norm_output(states + F.dropout(changed, dropout, dropout > 0))


class Backbone(nn.Module):
    """Token ids to hidden states. `layers` keeps only the first so many; `frozen` of them, and the embeddings, are not trained."""

    def __init__(self, config: Mapping[str, Any], layers: int | None = None, frozen: int = 0, dropout: float | None = None):
        super().__init__()
        self.config = {name: config[name] for name in _KEPT if name in config}
        self.config["num_hidden_layers"] = count = min(layers or config["num_hidden_layers"], config["num_hidden_layers"])
        self.size, self.mpnet = config["hidden_size"], config["model_type"] == "mpnet"
        self.frozen, self.dropout = min(frozen, count), config.get("hidden_dropout_prob", 0.1) if dropout is None else dropout
        self.words = nn.Embedding(config["vocab_size"], self.size)
        self.positions = nn.Embedding(config["max_position_embeddings"], self.size)
        self.norm = nn.LayerNorm(self.size, eps=config["layer_norm_eps"])
        self.layers = nn.ModuleList(Layer(config) for _ in range(count))
        if self.mpnet:
            self.relative = nn.Embedding(_BUCKETS, config["num_attention_heads"])
        else:
            self.kind = nn.Parameter(torch.zeros(self.size))  # all tokens are of the first kind
        if self.frozen:
            for part in (self.words, self.positions, self.norm, *self.layers[: self.frozen]):
                part.requires_grad_(False)
            if self.mpnet:
                self.relative.requires_grad_(False)
            else:
                self.kind.requires_grad_(False)

    def forward(self, tokens: Tokens, last: int = 1) -> Tensor:
        """Hidden states (B, last·m, h) of the last layers, one after the other along the token axis."""
        return self.together([tokens], last)[0]

    def together(self, batches: Sequence[Tokens], last: int = 1) -> list[Tensor]:
        """The same of several batches, each padded to its own length. All their tokens go through the large products together, so
        that a mixed lot of sentences pays neither for padding nor for small matrices."""
        dropout = self.dropout if self.training else 0.0
        shapes = [(len(one.ids), one.ids.shape[1]) for one in batches]
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.frozen):
            biases = [self._bias(one) for one in batches]
            states = self._embed(batches, dropout if not self.frozen else 0.0)
            for layer in self.layers[: self.frozen]:
                states = layer(states, shapes, biases, 0.0)
        kept = [states]
        for layer in self.layers[self.frozen :]:
            kept.append(layer(kept[-1], shapes, biases, dropout))
        parts = zip(*(one.split([b * m for b, m in shapes]) for one in kept[-last:]), strict=True)
        found = [[one.view(*shape, self.size) for one in part] for part, shape in zip(parts, shapes, strict=True)]
        return [torch.cat(part, dim=1) if last > 1 else part[0] for part in found]

    def _embed(self, batches: Sequence[Tokens], dropout: float) -> Tensor:
        """First states (T, h) of all tokens. One lookup for all: its gradient is as large as the vocabulary."""
        first = 2 if self.mpnet else 0  # MPNet keeps two positions for padding
        ids = torch.cat([one.ids.flatten() for one in batches])
        places = torch.cat([torch.arange(first, first + one.ids.shape[1], device=ids.device).repeat(len(one.ids)) for one in batches])
        states = self.words(ids) + self.positions(places)
        if not self.mpnet:
            states = states + self.kind
        return F.dropout(self.norm(states), dropout, dropout > 0)

    def _bias(self, tokens: Tokens) -> Tensor:
        """Added to the attention scores: nothing for a token, −∞ for padding, MPNet's learnt part by distance."""
        dtype = self.norm.weight.dtype
        bias = torch.zeros(tokens.mask.shape, dtype=dtype, device=tokens.ids.device).masked_fill_(~tokens.mask, torch.finfo(dtype).min)
        bias = bias[:, None, None, :]
        if self.mpnet:
            bias = bias + self.relative(_buckets(tokens.ids.shape[1], tokens.ids.device)).permute(2, 0, 1)
        return bias

    @classmethod
    def from_folder(cls, folder: Path, layers: int | None = None, frozen: int = 0, dropout: float | None = None) -> Backbone:
        """A pretrained backbone; from a sample folder, a tiny one with random weights."""
        from safetensors.torch import load_file

        config = backbone_config(folder)
        model = cls(config, layers, frozen, dropout)
        if "seed" in config:
            model.randomise(torch.Generator().manual_seed(config["seed"]))
        else:
            model.load_state_dict(from_hub(load_file(folder / "model.safetensors"), model.config))
        return model

    @torch.no_grad()
    def randomise(self, generator: torch.Generator) -> None:
        for name, one in self.named_parameters():
            if one.ndim > 1:
                one.normal_(0.0, 0.05, generator=generator)
            elif "norm" not in name:
                one.zero_()


def _buckets(length: int, device: torch.device) -> Tensor:
    """Bucket of each pair of positions (length, length): near distances one by one, far ones by their logarithm, each side its own."""
    distance = torch.arange(length, device=device)[:, None] - torch.arange(length, device=device)[None, :]
    side, near = _BUCKETS // 2, _BUCKETS // 4
    away = distance.abs()
    far = near + (torch.log(away.clamp(min=1) / near) / math.log(_FAR / near) * (side - near)).long()
    return torch.where(distance < 0, side, 0) + torch.where(away < near, away, far.clamp(max=side - 1))


def backbone_config(folder: Path) -> dict[str, Any]:
    """The pretrained model's own description, or that of the sample that stands in for it."""
    if (folder / "config.json").exists():
        config = read_json(folder / "config.json")
        if config.get("model_type") not in ("bert", "mpnet"):
            raise UserError(f"{folder} holds a {config.get('model_type')} model; the backbones here are of the types bert and mpnet.")
        return config
    sample = folder / "tiny-backbone.json"
    if not sample.exists():
        raise UserError(f"{folder} holds no backbone: run `subspaces fetch {folder.name}`, which names where to get it by hand.")
    small = read_json(sample)
    return {
        "model_type": small["model_type"],
        "hidden_size": small["hidden"],
        "num_hidden_layers": small["layers"],
        "num_attention_heads": small["heads"],
        "intermediate_size": small["intermediate"],
        "layer_norm_eps": 1e-12,
        "vocab_size": len((folder / "tiny-vocab.txt").read_text(encoding="utf-8").split()),
        "max_position_embeddings": 64,
        "hidden_dropout_prob": 0.1,
        "seed": small["seed"],
    }


_PARTS = {
    "bert": {"q": "attention.self.query", "k": "attention.self.key", "v": "attention.self.value", "joined": "attention.output.dense"}
    | {"norm_attention": "attention.output.LayerNorm"},
    "mpnet": {"q": "attention.attn.q", "k": "attention.attn.k", "v": "attention.attn.v", "joined": "attention.attn.o"}
    | {"norm_attention": "attention.LayerNorm"},
}
_COMMON = {"up": "intermediate.dense", "down": "output.dense", "norm_output": "output.LayerNorm"}


def from_hub(theirs: Mapping[str, Tensor], config: Mapping[str, Any]) -> dict[str, Tensor]:
    """Published weights under our names."""
    ours = {
        "words.weight": theirs["embeddings.word_embeddings.weight"],
        "positions.weight": theirs["embeddings.position_embeddings.weight"],
        "norm.weight": theirs["embeddings.LayerNorm.weight"],
        "norm.bias": theirs["embeddings.LayerNorm.bias"],
    }
    if config["model_type"] == "mpnet":
        ours["relative.weight"] = theirs["encoder.relative_attention_bias.weight"]
    else:
        ours["kind"] = theirs["embeddings.token_type_embeddings.weight"][0]
    names = _PARTS[config["model_type"]] | _COMMON
    for place in range(config["num_hidden_layers"]):
        there = f"encoder.layer.{place}."
        for end in ("weight", "bias"):
            ours[f"layers.{place}.qkv.{end}"] = torch.cat([theirs[f"{there}{names[one]}.{end}"] for one in "qkv"])
            for part in ("joined", "norm_attention", "up", "down", "norm_output"):
                ours[f"layers.{place}.{part}.{end}"] = theirs[f"{there}{names[part]}.{end}"]
    return ours


def to_hub(ours: Mapping[str, Tensor], config: Mapping[str, Any]) -> dict[str, Tensor]:
    """The same back, so that a trained backbone can be saved for the libraries that people use."""
    theirs = {
        "embeddings.word_embeddings.weight": ours["words.weight"],
        "embeddings.position_embeddings.weight": ours["positions.weight"],
        "embeddings.LayerNorm.weight": ours["norm.weight"],
        "embeddings.LayerNorm.bias": ours["norm.bias"],
    }
    if config["model_type"] == "mpnet":
        theirs["encoder.relative_attention_bias.weight"] = ours["relative.weight"]
    else:
        theirs["embeddings.token_type_embeddings.weight"] = torch.stack([ours["kind"], torch.zeros_like(ours["kind"])])
    names = _PARTS[config["model_type"]] | _COMMON
    for place in range(config["num_hidden_layers"]):
        there = f"encoder.layer.{place}."
        for end in ("weight", "bias"):
            for one, part in zip("qkv", ours[f"layers.{place}.qkv.{end}"].chunk(3), strict=True):
                theirs[f"{there}{names[one]}.{end}"] = part.clone()
            for part in ("joined", "norm_attention", "up", "down", "norm_output"):
                theirs[f"{there}{names[part]}.{end}"] = ours[f"layers.{place}.{part}.{end}"]
    return theirs
