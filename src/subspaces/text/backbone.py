"""Pretrained sentence encoders: any encoder that `transformers.AutoModel` loads, with unpadded batches where its attention allows it.

Sentences of several lengths go through a BERT-like model as one row of tokens, without padding: the large products see all tokens
together, and an attention function registered with the library keeps the sentences apart. Whether a model computes the same that way is
measured once, when it is opened (`_position_start`); a model that does not, such as MPNet, takes each batch of equal length by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from subspaces.errors import UserError
from subspaces.files import read_json
from subspaces.text.texts import Tokens

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_ATTENTION = "subspaces-unpadded"
_TOLERANCE = 1e-3  # between packed and padded states of a probe, whose entries are of size 1


def _attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    batches: Sequence[Tokens] = (),
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Attention within each sentence of several batches, whose tokens stand in one row: query, key and value are (1, heads, T, e)."""
    heads, size = query.shape[1], query.shape[3]
    sizes = [tokens.ids.numel() for tokens in batches]
    gathered = []
    for tokens, q, k, v in zip(batches, *(part[0].split(sizes, dim=1) for part in (query, key, value)), strict=True):
        shape = (heads, *tokens.ids.shape, size)
        q, k, v = (part.view(shape).transpose(0, 1) for part in (q, k, v))
        mask = None if tokens.full else tokens.mask[:, None, None, :]
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout, scale=scaling)
        gathered.append(mixed.transpose(1, 2).reshape(-1, heads, size))
    return torch.cat(gathered)[None], None


def _no_mask(*args: Any, **kwargs: Any) -> None:
    """The masks are in the batches that `_attend` receives."""
    return None


class Backbone(nn.Module):
    """Token ids to hidden states. The embeddings and the first `frozen` layers are not trained; `dropout` replaces the model's own."""

    def __init__(self, model: PreTrainedModel, frozen: int = 0, dropout: float | None = None):
        super().__init__()
        self.model, self.size = model, int(model.config.hidden_size)
        if getattr(model, "pooler", None) is not None:
            model.register_module("pooler", None)  # no head reads it
        _refuse_decoder(model)
        self.layers = [_layer_list(model)]  # in a list: the layers belong to `model`
        self.frozen = min(frozen, len(self.layers[0]))
        self._fixed: list[nn.Module] = []
        if self.frozen:
            inside = {id(part) for part in self.layers[0].modules()}
            around = [part for part in model.modules() if id(part) not in inside and not list(part.children())]
            self._fixed = [*around, *self.layers[0][: self.frozen]]
            for part in self._fixed:
                part.requires_grad_(False)
        if dropout is not None:
            for part in model.modules():
                if isinstance(part, nn.Dropout):
                    part.p = dropout
        self.first_position = _position_start(model)
        self._plain: list[tuple[nn.Parameter, Tensor]] = []  # weights with merged adapters, and without

    @property
    def longest(self) -> int:
        """Tokens of the longest sentence that the model has positions for."""
        places = int(getattr(self.model.config, "max_position_embeddings", 0) or 512)
        reserved = self.first_position
        if reserved is None:
            embeddings = getattr(self.model, "embeddings", None)
            reserved = (getattr(embeddings, "padding_idx", None) or 0) + 1 if embeddings is not None else 0
        return places - reserved

    @property
    def spread(self) -> float:
        """Size of the entries of the last hidden states, as the norm that makes them tells: √(mean of weight² + bias²)."""
        norms = [part for part in self.layers[0][-1].modules() if isinstance(part, nn.LayerNorm)]
        if not norms:
            return 1.0
        return float((norms[-1].weight.square() + norms[-1].bias.square()).mean().sqrt().detach().clamp(min=1e-3))

    def train(self, mode: bool = True) -> Backbone:
        super().train(mode)
        for part in self._fixed:  # no dropout where nothing is learnt
            part.eval()
        return self

    def forward(self, tokens: Tokens, last: int = 1) -> Tensor:
        """Hidden states (B, last·m, h) of the last layers, concatenated along the token axis."""
        return self.together([tokens], last)[0]

    def together(self, batches: Sequence[Tokens], last: int = 1) -> list[Tensor]:
        """The same for several batches, each padded to its own length."""
        if self.first_position is None:
            return [_padded(self.model, tokens, last) for tokens in batches]
        return _packed(self.model, batches, last, self.first_position)

    def merge_adapters(self) -> None:
        """Add the adapters of a trained model to the weights: it computes the same, without their two products in each layer."""
        from peft.tuners.tuners_utils import BaseTunerLayer

        for layer in self.model.modules():
            if isinstance(layer, BaseTunerLayer) and not layer.merged:
                weight = cast(nn.Parameter, layer.get_base_layer().weight)
                self._plain.append((weight, weight.data))
                layer.merge(safe_merge=True)  # into new memory: the plain weights stay as they are, bit for bit

    @contextmanager
    def without_adapters(self) -> Iterator[None]:
        """Inside, the pretrained model without the adapters that were merged."""
        merged = [weight.data for weight, _ in self._plain]
        try:
            for weight, plain in self._plain:
                weight.data = plain.to(weight.device)
            yield
        finally:
            for (weight, _), value in zip(self._plain, merged, strict=True):
                weight.data = value

    @classmethod
    def from_folder(
        cls, folder: Path, layers: int | None = None, frozen: int = 0, dropout: float | None = None
    ) -> Backbone:
        """The pretrained backbone of a folder, or its first `layers`; from a sample folder, a tiny one with random weights."""
        config = backbone_config(folder)
        seed = config.pop("seed", None)
        if layers is not None:
            config["num_hidden_layers"] = min(layers, config.get("num_hidden_layers", config.get("n_layers", layers)))
        if seed is not None:
            model = _untrained(config)
            _randomise(model, torch.Generator().manual_seed(seed))
            return cls(model, frozen, dropout)
        from transformers import AutoConfig, AutoModel
        from transformers.utils import logging

        known = AutoConfig.for_model(**config)
        before = logging.get_verbosity()
        logging.set_verbosity_error()  # weights of a pooler, or of layers that are not used, are expected
        logging.disable_progress_bar()  # it takes a moment
        try:
            model = AutoModel.from_pretrained(folder, config=known, local_files_only=True, use_safetensors=True)
        except (OSError, ValueError) as error:
            raise UserError(f"{folder} holds no model that AutoModel can load: {error}") from error
        finally:
            logging.set_verbosity(before)
        return cls(model.float(), frozen, dropout)

    @classmethod
    def from_config(cls, config: dict[str, Any], frozen: int = 0, dropout: float | None = None) -> Backbone:
        """A backbone whose weights are read from a trained model afterwards."""
        return cls(_untrained(dict(config)), frozen, dropout)

    @property
    def config(self) -> dict[str, Any]:
        """What `from_config` needs; goes into the settings of a trained model."""
        return {"model_type": self.model.config.model_type, **self.model.config.to_diff_dict()}


def _untrained(config: dict[str, Any]) -> PreTrainedModel:
    from transformers import AutoConfig, AutoModel

    for name in ("transformers_version", "dtype", "_name_or_path"):
        config.pop(name, None)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # parts that are never trained, such as a pooler, are saved with the rest
        return AutoModel.from_config(AutoConfig.for_model(**config))


@torch.no_grad()
def _randomise(model: nn.Module, generator: torch.Generator) -> None:
    """Small random matrices, no biases, and norms as they start."""
    for name, parameter in model.named_parameters():
        if parameter.ndim > 1:
            parameter.normal_(0.0, 0.05, generator=generator)
        elif "norm" not in name.lower():
            parameter.zero_()


def backbone_config(folder: Path) -> dict[str, Any]:
    """The pretrained model's own description, or that of the sample that stands in for it."""
    if (folder / "config.json").exists():
        config = read_json(folder / "config.json")
        if "model_type" not in config:
            raise UserError(f"{folder}/config.json names no model_type: it is not a model of the transformers library.")
        return config
    sample = folder / "tiny-backbone.json"
    if not sample.exists():
        raise UserError(
            f"{folder} holds no backbone: run `subspaces fetch {folder.name}`, or put config.json, model.safetensors and "
            "tokenizer.json of the model there."
        )
    small = read_json(sample)
    return {
        "model_type": small["model_type"],
        "hidden_size": small["hidden"],
        "num_hidden_layers": small["layers"],
        "num_attention_heads": small["heads"],
        "intermediate_size": small["intermediate"],
        "vocab_size": len((folder / "tiny-vocab.txt").read_text(encoding="utf-8").split()),
        "max_position_embeddings": 64,
        "pad_token_id": 0,
        "seed": small["seed"],
    }


def _padded(model: PreTrainedModel, tokens: Tokens, last: int) -> Tensor:
    """Hidden states of one batch, in the way of the library."""
    mask = None if tokens.full else tokens.mask.long()
    found = model(input_ids=tokens.ids, attention_mask=mask, output_hidden_states=last > 1)
    return torch.cat(found.hidden_states[-last:], dim=1) if last > 1 else found.last_hidden_state


def _packed(model: PreTrainedModel, batches: Sequence[Tokens], last: int, start: int) -> list[Tensor]:
    """Hidden states of several batches whose tokens go through the model as one row."""
    device = batches[0].ids.device
    ids = torch.cat([tokens.ids.flatten() for tokens in batches])[None]
    places = torch.cat(
        [torch.arange(start, start + one.ids.shape[1], device=device).repeat(len(one.ids)) for one in batches]
    )[None]
    before = model.config._attn_implementation
    model.config._attn_implementation = _ATTENTION
    try:
        found = model(input_ids=ids, position_ids=places, output_hidden_states=last > 1, batches=tuple(batches))
    finally:
        model.config._attn_implementation = before
    kept = found.hidden_states[-last:] if last > 1 else (found.last_hidden_state,)
    sizes = [tokens.ids.numel() for tokens in batches]
    parts = zip(*(states[0].split(sizes) for states in kept), strict=True)
    shaped = [
        [states.view(*tokens.ids.shape, states.shape[-1]) for states in part]
        for part, tokens in zip(parts, batches, strict=True)
    ]
    return [torch.cat(part, dim=1) if last > 1 else part[0] for part in shaped]


def _register() -> None:
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(_ATTENTION, _attend)
    AttentionMaskInterface.register(_ATTENTION, _no_mask)


def _layer_list(model: PreTrainedModel) -> nn.ModuleList:
    count = model.config.num_hidden_layers
    for part in model.modules():
        if isinstance(part, nn.ModuleList) and len(part) == count:
            return part
    raise UserError(f"a {model.config.model_type} model has no list of {count} layers: choose another backbone.")


def _probe(model: PreTrainedModel) -> list[Tokens]:
    """Two sentences of five tokens and one of three, of words that are not special."""
    highest = cast(nn.Embedding, model.get_input_embeddings()).num_embeddings - 1
    ids = (torch.arange(13) % max(1, min(highest // 2, 97)) + max(1, highest // 2)).clamp(max=highest)
    ids[ids == getattr(model.config, "pad_token_id", None)] -= 1
    batches = ids[:10].view(2, 5), ids[10:].view(1, 3)
    return [Tokens(part, torch.ones_like(part, dtype=torch.bool)) for part in batches]


@torch.no_grad()
def _position_start(model: PreTrainedModel) -> int | None:
    """The first position of a sentence if the model can take unpadded batches, else None.

    Two starts exist: 0, and the one after the padding position (RoBERTa). The probe must give the states that padded batches have.
    """
    if not getattr(model, "_supports_attention_backend", False):
        return None
    _register()
    was, batches = model.training, _probe(model)
    model.eval()
    try:
        expected = [_padded(model, tokens, 1) for tokens in batches]
        for start in (0, (getattr(model.config, "pad_token_id", None) or 0) + 1):
            try:
                found = _packed(model, batches, 1, start)
            except (TypeError, ValueError, IndexError, RuntimeError):
                continue
            if all((a - b).abs().max() < _TOLERANCE for a, b in zip(expected, found, strict=True)):
                return start
        return None
    finally:
        model.train(was)


@torch.no_grad()
def _refuse_decoder(model: PreTrainedModel) -> None:
    """A sentence encoder reads in both directions: its first state depends on the last token."""
    kind = model.config.model_type
    advice = "Choose an encoder, such as BERT, RoBERTa, DistilBERT or MPNet."
    if getattr(model.config, "is_encoder_decoder", False):
        raise UserError(f"a {kind} model is an encoder with a decoder. {advice}")
    try:
        embeddings = model.get_input_embeddings()
    except NotImplementedError:
        embeddings = None
    if not isinstance(embeddings, nn.Embedding):
        raise UserError(f"a {kind} model does not read tokens. {advice}")
    was, tokens = model.training, _probe(model)[0]
    model.eval()
    changed = tokens.ids.clone()
    changed[:, -1] = tokens.ids[:, 0]
    try:
        first, other = (model(input_ids=ids).last_hidden_state[:, 0] for ids in (tokens.ids, changed))
    finally:
        model.train(was)
    if torch.equal(first, other):
        raise UserError(f"a {kind} model reads from left to right only, so it is not an encoder. {advice}")
