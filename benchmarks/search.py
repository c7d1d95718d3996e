"""Search: encoding by the shipped model, an approximate index against scoring all captions, and hyperbolic brute force."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from torch import Tensor, nn

from benchmarks.nli import SEED
from benchmarks.timing import Row, in_turns, require_agreement
from subspaces.algebra import half_vector
from subspaces.experiments.efficiency.poincare import ObviousPoincareSearcher, PoincareSearcher, any_points
from subspaces.experiments.efficiency.timing import query_forms, recall
from subspaces.search.build import build_shard, merge
from subspaces.search.half_vectors import HalfVectorEncoder
from subspaces.search.index import SubspaceIndex
from subspaces.sources.origins import SAMPLES
from subspaces.text.backbone import Backbone
from subspaces.text.load import TextModel
from subspaces.text.pair_model import make_model, read_encoder
from subspaces.text.sentence_transformer import export, open_exported
from subspaces.text.subspace_encoder import SubspaceEncoder
from subspaces.text.texts import WordPieces, sample_tokeniser

BATCH, TOP = 128, 10
WORDS = Path(SAMPLES / "tiny-vocab.txt").read_text(encoding="utf-8").split()[20:]
TINY = {"encoder": "subspace", "backbone": "tiny", "dim": 8, "heads": 4, "lam": 0.05, "adapters": {"r": 2}}


def shipped(root: Path, small: bool) -> TextModel:
    """The model that ships; for a small run an untrained one on the sample backbone."""
    if not small:
        return SubspaceEncoder.from_pretrained(sources=root / "data/sources").text_model
    torch.manual_seed(SEED)
    model = make_model(read_encoder(TINY), 2, Backbone.from_folder(SAMPLES, None, 0, 0.0))
    for name, part in model.named_parameters():
        if "lora_B" in name:  # zero at the start
            nn.init.normal_(part, std=0.1)
    record = {"model": TINY, "backbone": {"name": "tiny", "wanted": "tiny"}, "ways": 2, "limit": 35, "config": None}
    tokeniser = WordPieces(text=sample_tokeniser(SAMPLES / "tiny-vocab.txt"))
    return TextModel(model, record | {"weights_sha256": "0" * 64}, tokeniser, SAMPLES)


def captions(root: Path, count: int) -> tuple[list[str], str]:
    """Captions drawn from Flickr30k where they are; else made-up sentences."""
    path, draw = root / "data/captions.txt", np.random.default_rng(SEED)
    if path.exists():
        lines = path.read_text(encoding="utf-8").splitlines()
        return [lines[row] for row in draw.permutation(len(lines))[:count]], "Flickr30k captions"
    return [" ".join(draw.choice(WORDS, draw.integers(4, 20))) for _ in range(count)], "made-up sentences"


def encoding(root: Path, small: bool = False, texts: int = 1024, rounds: int = 5) -> Row:
    """Milliseconds per text: subspaces of the shipped model, and vectors of the same backbone by sentence-transformers."""
    name = "encoding with the shipped model (over ST)"
    model = shipped(root, small)
    some, kind = captions(root, texts)
    with tempfile.TemporaryDirectory() as room:
        folder = export(model, Path(room) / "exported")
        whole = open_exported(folder)
        plain = SentenceTransformer(
            modules=[Transformer.load(str(folder)), Pooling(model.model.backbone.size)], device="cpu"
        )
    expected = whole.encode(some[:BATCH], convert_to_tensor=True)
    found = half_vector(model.projectors(some[:BATCH]))
    agreement = {"vectors": float((found - expected).norm() / expected.norm())}
    require_agreement(name, agreement, {"vectors": 1e-3})
    ours, theirs = in_turns(
        lambda _: model.projectors(some, BATCH), lambda _: plain.encode(some, batch_size=BATCH), rounds
    )
    settings = {"batch": BATCH, "texts": texts, "rounds": rounds, "material": kind, "unit": "ms per text"}
    row = Row(name, ours / texts, theirs / texts, ours / theirs, at_least=1.3, aim=1.0, smaller_is_better=True)
    row.agreement, row.settings = agreement, settings
    return row


def search(root: Path, small: bool = False, documents: int = 20_000, queries: int = 512, rounds: int = 5) -> Row:
    """Milliseconds per query in batches: an approximate index against scoring every document, with the recall of each form."""
    kind = "compact" if small else "reduced"
    texts, material = captions(root, documents + 2 * queries)
    encoder = HalfVectorEncoder.of_text_model(shipped(root, small))
    encoder.profile = type(encoder.profile)()  # inclusion only: no second pass for the cosines of `hybrid`
    forms = query_forms(encoder.encode(texts[documents:]).projector)
    with tempfile.TemporaryDirectory() as room:
        shard = build_shard(texts[:documents], 0, documents, encoder, Path(room) / "exact")
        merge([shard], Path(room) / kind, kind=kind)
        exact = SubspaceIndex.open(shard, encoder)
        began = time.perf_counter()
        index = SubspaceIndex.open(Path(room) / kind, encoder)
        index.search_matrices(forms["plain"][:1], TOP)
        first = time.perf_counter() - began
        found = {
            form: recall(index.search_matrices(some, TOP)[1], exact.search_matrices(some, TOP)[1])
            for form, some in forms.items()
        }
        missed = {f"missed, {form}": 1 - share for form, share in found.items()}
        require_agreement("search", missed, dict.fromkeys(missed, 1.0 if small else 0.05))

        def asked(one: SubspaceIndex, some: Tensor) -> None:
            for batch in some.split(BATCH):
                one.search_matrices(batch, TOP)

        plain = forms["plain"]
        ours, theirs = (
            time / len(plain) for time in in_turns(lambda _: asked(index, plain), lambda _: asked(exact, plain), rounds)
        )
        size = index.manifest.bytes / documents
    settings = {
        "kind": kind, "documents": documents, "dim": encoder.dim, "batch": BATCH, "top": TOP, "rounds": rounds,
        "material": material, "unit": "ms per query", "bytes_per_document": round(size), "recall": found,
        "first_search_seconds": round(first, 3),
    }  # fmt: skip
    name = f"search, {documents:,} captions, d = {encoder.dim}"
    return Row(name, ours, theirs, theirs / ours, at_least=3.0, aim=10.0, agreement=missed, settings=settings)


def hyperbolic(documents: int = 155_070, queries: int = 256, dims: int = 10, rounds: int = 5) -> Row:
    """Milliseconds per query of the hyperbolic brute force of Table 8: one product of matrices, and all distances with arcosh."""
    points = any_points(documents + queries, dims, torch.Generator().manual_seed(SEED))
    asked = points[documents:].split(BATCH)
    product, obvious = (searcher(points[:documents]) for searcher in (PoincareSearcher, ObviousPoincareSearcher))
    nearest, expected = (one.search(asked[0], TOP)[0] for one in (product, obvious))
    agreement = {"distance": float((nearest - expected).abs().max() / expected.abs().max())}
    name = f"hyperbolic brute force, {documents:,} points"
    require_agreement(name, agreement, {"distance": 1e-3})
    ours, theirs = (
        time / queries
        for time in in_turns(
            lambda _: [product.search(some, TOP) for some in asked],
            lambda _: [obvious.search(some, TOP) for some in asked],
            rounds,
        )
    )
    settings = {"documents": documents, "dims": dims, "batch": BATCH, "top": TOP, "unit": "ms per query"}
    return Row(name, ours, theirs, theirs / ours, at_least=3.0, aim=8.0, agreement=agreement, settings=settings)
