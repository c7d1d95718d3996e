"""A trained subspace model as a sentence-transformers model, for the tools that people use (paper §3.2).

`SubspacePooling` stands where such a model has its pooling. A sentence becomes the half-vector of its projector, d(d+1)/2 numbers, so
that the dot product of two embeddings is the subspace similarity Tr(P_iP_j).
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Module, Transformer
from torch import Tensor

from subspaces.algebra import half_vector
from subspaces.errors import UserError
from subspaces.files import write_json, write_text
from subspaces.text.backbone import Backbone
from subspaces.text.encoders.subspace import SubspaceModel, SubspaceProjectionHead, projector
from subspaces.text.load import TextModel, load_text_model
from subspaces.text.texts import WordPieces


class SubspacePooling(Module):
    """The Subspace Projection Head after a Transformer module: token states in, half-vectors out as `sentence_embedding`."""

    config_keys: list[str] = [  # noqa: RUF012 — as the base class declares it
        "size",
        "dim",
        "vectors",
        "heads",
        "last",
        "lam",
        "layer_norm",
    ]

    def __init__(
        self,
        size: int,
        dim: int = 64,
        vectors: int = 0,
        heads: int = 8,
        last: int = 1,
        lam: float = 0.05,
        layer_norm: bool = False,
    ):
        super().__init__()
        self.size, self.dim, self.vectors, self.heads = size, dim, vectors or dim, heads
        self.last, self.lam, self.layer_norm = last, lam, layer_norm
        self.head = SubspaceProjectionHead(size, dim, vectors, heads, layer_norm)

    def forward(self, features: dict[str, Tensor | Any], **kwargs: Any) -> dict[str, Tensor | Any]:
        states, mask = features["token_embeddings"], features["attention_mask"].bool()
        if self.last > 1:
            if "all_layer_embeddings" not in features:
                raise UserError(
                    f"this head reads the last {self.last} layers: set output_hidden_states to true in the model's config.json."
                )
            states, mask = (
                torch.cat(tuple(features["all_layer_embeddings"][-self.last :]), dim=1),
                mask.repeat(1, self.last),
            )
        features["sentence_embedding"] = half_vector(projector(self.head(states, mask), self.lam, self.training))
        return features

    def get_embedding_dimension(self) -> int:
        return self.dim * (self.dim + 1) // 2

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        self.save_config(output_path)
        self.save_torch_weights(output_path, safe_serialization=True)

    @classmethod
    def load(
        cls,
        model_name_or_path: str,
        subfolder: str = "",
        token: bool | str | None = None,
        cache_folder: str | None = None,
        revision: str | None = None,
        local_files_only: bool = False,
        init_defaults: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> SubspacePooling:
        place: dict[str, Any] = {
            "subfolder": subfolder,
            "token": token,
            "cache_folder": cache_folder,
            "revision": revision,
            "local_files_only": local_files_only,
        }
        pooling = cls(**cls.load_config(model_name_or_path, **place))
        return cls.load_torch_weights(model_name_or_path, model=pooling, **place)


def export(model: Path | str | TextModel, out: Path | str, sources: Path = Path("data/sources")) -> Path:
    """Write a complete sentence-transformers folder from a trained subspace model, or from the folder of one; returns the folder.

    The folder loads with `SentenceTransformer(folder, trust_remote_code=True)` where this package is installed (the flag is what the
    library asks for before it imports a class that is not its own), or with `open_exported`.
    """
    model, out = model if isinstance(model, TextModel) else load_text_model(Path(model), sources), Path(out)
    encoder = model.model
    if not isinstance(encoder, SubspaceModel):
        raise UserError("only subspace models can be exported: choose one of the rows …-subspace-64 or …-subspace-128.")
    if not encoder.masked:
        raise UserError(
            "this model was trained without masking its padding, so a sentence has no embedding of its own: train with masked: true."
        )
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"{out} exists already and is not empty: choose another folder, or delete it.")
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as room:
        _write_backbone(encoder, model, Path(room) / "backbone")
        with torch.random.fork_rng(
            devices=[]
        ):  # parts that no model of ours has, such as BERT's pooler, start the same each time
            torch.manual_seed(0)
            modules = [Transformer(str(Path(room) / "backbone"), max_seq_length=model.limit), _pooling(encoder)]
        whole = SentenceTransformer(modules=modules, similarity_fn_name="dot", device="cpu").eval()
        whole.save(str(Path(room) / "whole"), create_model_card=False)
        write_text(Path(room) / "whole" / "README.md", _card(model, encoder))
        if out.exists():
            out.rmdir()
        (Path(room) / "whole").replace(out)
    return out


def open_exported(folder: Path | str, device: str = "cpu") -> SentenceTransformer:
    """The model of an exported folder, without running any code that the folder names."""
    folder = Path(folder)
    inner = [path for path in folder.glob("*_SubspacePooling") if path.is_dir()]
    if len(inner) != 1:
        raise UserError(f"{folder} is no exported subspace model: write one with `export`.")
    modules = [Transformer.load(str(folder)), SubspacePooling.load(str(folder), subfolder=inner[0].name)]
    return SentenceTransformer(modules=modules, similarity_fn_name="dot", device=device).eval()


def _pooling(model: SubspaceModel) -> SubspacePooling:
    head = model.head
    pooling = SubspacePooling(
        head.size, head.dim, head.vectors, head.heads, model.last, model.lam, head.norm is not None
    )
    pooling.head.load_state_dict(head.state_dict())
    return pooling


def _write_backbone(model: SubspaceModel, text_model: TextModel, folder: Path) -> None:
    """The backbone with its tokeniser, as the libraries read them. Adapters are merged already."""
    state = model.backbone.model.state_dict()
    weights = {name.replace(".base_layer.", "."): one for name, one in state.items() if "lora_" not in name}
    plain = Backbone.from_config(model.backbone.config).model
    plain.load_state_dict(weights)
    plain.config.output_hidden_states = model.last > 1
    plain.save_pretrained(folder)
    tokeniser = text_model.tokeniser
    assert isinstance(tokeniser, WordPieces)
    known = json.loads(tokeniser.text)["model"]["vocab"]
    words = {
        part: next((word for word in names if word in known), None)
        for part, names in {
            "unk_token": ("[UNK]", "<unk>"),
            "pad_token": ("<pad>", "[PAD]"),
            "cls_token": ("<s>", "[CLS]"),
            "sep_token": ("</s>", "[SEP]"),
            "mask_token": ("<mask>", "[MASK]"),
        }.items()
    }
    write_text(folder / "tokenizer.json", tokeniser.text)
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": text_model.limit}
    write_json(folder / "tokenizer_config.json", settings | {part: word for part, word in words.items() if word})


def _card(model: TextModel, encoder: SubspaceModel) -> str:
    name = model.spec.backbone.name if model.spec.backbone else "a transformer"
    length = encoder.dim * (encoder.dim + 1) // 2
    return f"""# Subspace embeddings on {name}

A sentence becomes the half-vector of a soft projector of R^{encoder.dim} (λ = {encoder.lam}): {length} numbers.
The dot product of two embeddings is the subspace similarity Tr(P₁P₂); divided by Tr(P₁) it says how much of the first lies in the second.

```python
from sentence_transformers import SentenceTransformer
model = SentenceTransformer("this folder", trust_remote_code=True)  # with the package `subspaces` installed
a, b = model.encode(["A red car drives down the street.", "A vehicle is on the road."], convert_to_tensor=True)
inclusion = (a @ b) / unhalf_vector(a).trace()  # from subspaces.algebra import unhalf_vector
```

Weights: {model.fingerprint}.
"""
