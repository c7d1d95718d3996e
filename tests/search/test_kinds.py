"""The parts of the approximate kinds: selection, reduction, coded rows."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from subspaces.algebra import half_vector
from subspaces.experiments.efficiency.timing import recall
from subspaces.projector import soft_projector
from subspaces.search.index import SubspaceIndex
from subspaces.search.kinds.codes import Codes, coarse_values, partners
from subspaces.search.kinds.ivfpq import IvfPq, IvfPqSettings, number_of_lists, padded
from subspaces.search.kinds.reduction import _groups, learn_near, learn_reduction
from subspaces.search.kinds.rows import CodedRows, best_step, levels_of, pack, spread_of, value_of
from subspaces.search.storage import Store, StoreWriter
from tests.search.stand_in import sentences, stand_in


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder = tmp_path_factory.mktemp("store")
    writer = StoreWriter(folder, "float16", 136)
    writer.append(*stand_in(16).half_vectors_and_traces(sentences(900)), [1] * 900)
    writer.close()
    return Store(folder, "float16", 136)


CONSTANT = half_vector(torch.eye(16))


def test_a_whole_reduction_keeps_every_score(store: Store) -> None:
    reduction = learn_reduction(store, 136, CONSTANT, 0)
    vectors, queries = (
        store.nis(slice(0, 100)),
        half_vector(stand_in(16).encode(["a man & at night", "a cook"]).projector),
    )
    found = reduction.reduce(vectors) @ reduction.ask(queries).T + reduction.shared(queries)
    assert torch.allclose(found, vectors @ queries.T, atol=1e-3)


def test_a_reduction_is_better_than_principal_components(store: Store) -> None:
    """It keeps scores, they keep documents: the error of the scores of new queries is smaller at the same size."""
    vectors = store.nis(slice(None))
    X = vectors - vectors.mean(0)
    queries = half_vector(stand_in(16).encode(sentences(1200)[900:]).projector)
    queries = queries - (queries @ CONSTANT / 16).unsqueeze(1) * CONSTANT
    true = X @ queries.T
    components = torch.linalg.eigh(X.T @ X).eigenvectors.flip(1)
    for dims in (8, 16, 32):
        reduction = learn_reduction(store, dims, CONSTANT, 0)
        ours = (true - reduction.reduce(vectors) @ reduction.ask(queries).T).square().mean()
        theirs = (true - X @ components[:, :dims] @ (queries @ components[:, :dims]).T).square().mean()
        assert ours < theirs


def test_coordinates_have_unit_variance_and_come_in_order(store: Store) -> None:
    reduction = learn_reduction(store, 24, CONSTANT, 0)
    z = reduction.reduce(store.nis(slice(None)))
    assert torch.allclose(z.square().mean(0), torch.ones(24), atol=1e-2)
    small = learn_reduction(store, 8, CONSTANT, 0)
    assert torch.allclose(reduction.documents[:, :8].abs(), small.documents.abs(), rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("dims", [1, 3, 4, 5, 6, 17, 96, 136, 384])
def test_groups_are_a_division_and_grow(dims: int) -> None:
    sizes = _groups(dims)
    assert sum(sizes) == dims and sizes[:-1] == sorted(sizes[:-1]) and sizes[0] >= min(4, dims)
    assert len(sizes) == 1 or 2 * sizes[-1] >= sizes[-2]


def test_factors_are_one_where_nothing_is_left_out_and_rise_where_something_is(store: Store) -> None:
    whole = learn_reduction(store, 136, CONSTANT, 0)
    near = learn_near(store, whole, CONSTANT, 0)
    assert near.scores.shape == (225, 32) and near.z.shape == (225, 32, whole.dims)
    assert torch.allclose(near.emphasis(whole.dims), torch.ones(whole.dims), atol=1e-2)
    few = near.emphasis(24)
    assert few.shape == (24,) and few[-1] > 1.1 and few[-1] == few.max()


def test_factors_fit_the_nearest_documents_of_new_queries_better(store: Store) -> None:
    vectors = store.nis(slice(None))
    queries = half_vector(stand_in(16).encode(sentences(1200)[900:]).projector)
    queries = queries - (queries @ CONSTANT / 16).unsqueeze(1) * CONSTANT
    true = vectors @ queries.T
    rows = true.topk(10, dim=0).indices.T
    reduction = learn_reduction(store, 24, CONSTANT, 0)
    z, w = reduction.reduce(vectors), reduction.ask(queries)
    emphasis = learn_near(store, reduction, CONSTANT, 0).emphasis(24)
    plain, better = (recall((asked @ z.T).topk(16, dim=1).indices, rows) for asked in (w, w * emphasis))
    assert better > plain


def test_copies_of_one_document_say_nothing_about_factors(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path, "float16", 136)
    writer.append(*stand_in(16).half_vectors_and_traces(["a man"] * 40), [1] * 40)
    writer.close()
    few = Store(tmp_path, "float16", 136)
    factors = learn_near(few, learn_reduction(few, 8, CONSTANT, 0), CONSTANT, 0).emphasis(1)
    assert torch.allclose(factors, torch.ones(1), atol=1e-3)


def test_partners_are_the_first_and_the_last() -> None:
    assert partners(torch.arange(6)).tolist() == [0, 5, 1, 4, 2, 3] and partners(torch.tensor([1, 0])).tolist() == [
        1,
        0,
    ]
    assert partners(torch.tensor([2, 0, 1])).tolist() == [2, 3, 0, 1] and partners(torch.arange(0)).tolist() == []


def test_coarse_values_are_better_than_even_steps_and_know_few_values() -> None:
    values = torch.randn(5000, 3, generator=seeded(0)) * torch.tensor([1.0, 5.0, 0.01])
    points = coarse_values(values)
    assert points.shape == (3, 16) and (points.diff(dim=1) > 0).all()
    error = (values.T.unsqueeze(2) - points.unsqueeze(1)).square().amin(2).mean(1) / values.var(0)
    assert (error < 0.013).all()  # 16 even steps over four deviations on either side: 0.02
    few = coarse_values(torch.tensor([[0.0], [1.0], [1.0], [7.0]]))
    assert {0.0, 1.0, 7.0} <= set(few.flatten().tolist())


@pytest.mark.parametrize(("width", "fine"), [(1, 0), (1, 1), (2, 0), (7, 2), (16, 0), (16, 5), (16, 16)])
def test_codes_score_every_document_as_what_its_code_stands_for(tmp_path: Path, width: int, fine: int) -> None:
    z, w = torch.randn(2000, width + 3, generator=seeded(width)), torch.randn(40, width + 1, generator=seeded(1))
    emphasis = 1 + torch.rand(width, generator=seeded(2))
    learned = Codes.learn(z, w, emphasis, fine)
    learned.add(z[:900])
    learned.add(z[900:])
    learned.write(tmp_path / "codes.faiss")
    codes = Codes.read(tmp_path / "codes.faiss", learned.tensors)
    parts = torch.from_numpy(codes.index.reconstruct_n(0, 2000))
    others = torch.empty(2000, len(codes.order))
    others[:, codes.order] = parts[:, 2 * fine :]
    coarse, difference = parts[:, : 2 * fine : 2], others[:, width - fine : width]
    decoded = torch.cat([coarse + difference, others[:, : width - fine]], dim=1) / codes.weight
    scores, rows = codes.best(w, 2000)
    assert len(codes) == 2000 and torch.equal(rows.sort(1).values, torch.arange(2000).expand(40, -1))
    compared, expected = scores > -1e30, ((w[:, :width] * emphasis) @ decoded.T).gather(1, rows)
    assert compared.float().mean() > 0.9
    assert (scores - expected)[compared].abs().max() < 0.01 * (expected.amax() - expected.amin())
    error = (decoded - z[:, :width]).square().mean(0)
    assert error.max() < 0.4 and (not fine or error[:fine].max() < 0.013)


def test_weights_and_coarse_values_keep_scores_better(store: Store) -> None:
    """Points go where queries look, and the first coordinates have more of them: scores are closer."""
    reduction = learn_reduction(store, 32, CONSTANT, 0)
    z = reduction.reduce(store.nis(slice(None)))
    queries = half_vector(stand_in(16).encode(sentences(1200)[900:]).projector)
    w = reduction.ask(queries - (queries @ CONSTANT / 16).unsqueeze(1) * CONSTANT)

    def error(z: Tensor, w: Tensor, queries: Tensor, fine: int = 0) -> float:
        codes = Codes.learn(z, w, torch.ones(w.shape[1]), fine)
        codes.add(z)
        scores, rows = codes.best(queries, len(z))
        return float((scores - (queries @ z.T).gather(1, rows)).square().mean())

    plain = error(z, w, w)
    assert plain < 0.8 * error(z, torch.ones_like(w), w)
    assert error(z, w, w, fine=4) < 0.8 * plain


@pytest.mark.parametrize("width", [135, 136, 137])
def test_coded_rows_score_what_their_levels_stand_for(width: int) -> None:
    rest = torch.randn(70, width, generator=seeded(0)) * (1 + torch.arange(width) / width)
    rest[3] *= 50  # an outlier keeps its relative precision
    spread = spread_of(rest)
    unit = rest / spread.unsqueeze(1)
    step = best_step(unit)
    levels = levels_of(unit, step)
    assert levels.min() == 0 and levels.max() == 5
    decoded = value_of(levels, step) * spread.unsqueeze(1)
    assert ((decoded - rest).square().sum(1) / rest.square().sum(1)).max() < 0.12
    queries, reduced = torch.randn(2, width, generator=seeded(1)), torch.randn(2, 60, generator=seeded(2))
    rows = torch.stack([torch.randperm(70, generator=seeded(seed))[:60] for seed in (3, 4)])
    found = CodedRows(pack(levels), step, spread).scores(rows, queries, lambda: reduced)
    expected = torch.stack([decoded[rows[q]] @ queries[q] for q in range(2)]) + reduced
    assert torch.allclose(found, expected, rtol=1e-4, atol=1e-3)


def test_every_byte_is_read_back() -> None:
    levels = torch.cartesian_prod(*[torch.arange(6.0)] * 3)
    codes = pack(levels)
    assert codes.flatten().tolist() == [int(a + 6 * b + 36 * c) for a, b, c in levels.tolist()]
    rows = CodedRows(codes, torch.ones(3), torch.ones(216))
    for entry in range(3):
        query = torch.zeros(1, 3)
        query[0, entry] = 1.0
        found = rows.scores(torch.arange(216).unsqueeze(0), query, lambda: torch.zeros(1, 216))
        assert torch.allclose(found[0], levels[:, entry] - 2.5)


def test_outliers_are_found(tmp_path: Path) -> None:
    """Documents of very small rank have NIS vectors far from all others; they answer best, and no kind may cut them off."""
    texts = sentences(700)
    P = soft_projector(torch.randn(700, 16, 12, generator=seeded(0)), 0.05)
    lines = torch.nn.functional.normalize(torch.randn(8, 16, 1, generator=seeded(1)), dim=1)
    P[::100][:7] = (lines @ lines.mT)[:7] * 0.9
    places = {text: place for place, text in enumerate(texts)}
    from subspaces.search.half_vectors import HalfVectorEncoder

    encoder = HalfVectorEncoder(lambda some: P[[places[text] for text in some]], 16, "outliers")
    for kind in ("reduced", "compact"):
        index = SubspaceIndex.build(texts, encoder, tmp_path / kind, kind=kind)
        _, rows = index.search_matrices(P[::100][:7], top=1)
        assert rows.flatten().tolist() == list(range(0, 700, 100)), kind


def test_more_effort_finds_more(tmp_path: Path) -> None:
    """With a tiny shortlist recall is poor, and effort mends it without another build."""
    texts, encoder = sentences(3000), stand_in(16)
    tiny = {"first": 4, "dims": 8, "shortlist": 40, "rerank": 10}
    index = SubspaceIndex.build(texts, encoder, tmp_path / "tiny", kind="reduced", settings=tiny)
    exact = SubspaceIndex.build(texts, encoder, tmp_path / "exact", kind="exact-fp16")
    queries = encoder.encode(
        [f"{a} {b}" for a in ("a man", "an old dog", "some players", "a cook") for b in ("sits", "in winter")]
    ).projector
    true = exact.search_matrices(queries)[1]

    def recall(effort: float) -> float:
        rows = index.search_matrices(queries, effort=effort)[1]
        return float((rows.unsqueeze(1) == true.unsqueeze(2)).any(2).float().mean())

    assert recall(1) < 0.7 and recall(1) < recall(5) < recall(40) and recall(300) > 0.99
    with pytest.raises(Exception, match="effort must be above 0"):
        recall(0)


def test_the_papers_index_scores_about_right_centred_or_not(tmp_path: Path, store: Store) -> None:
    queries = half_vector(stand_in(16).encode(sentences(920)[900:]).projector)
    true = queries @ store.nis(slice(None)).T
    errors = {}
    for centred in (True, False):
        folder = tmp_path / str(centred)
        folder.mkdir()
        used = IvfPq().make(store, folder, IvfPqSettings(centred=centred, sub_quantisers=34), lambda _: None)
        scores, rows = IvfPq().open(folder, 136, used).search(queries, 5, effort=100)
        errors[centred] = float((scores - true.gather(1, rows)).square().mean().sqrt())
    assert errors[True] < errors[False] < 0.5 * float(true.std())


def test_lists_and_padding_of_the_papers_index() -> None:
    assert (
        number_of_lists(155_070, 50_000) == 1024
        and number_of_lists(1000, 50_000) == 16
        and number_of_lists(20, 50_000) == 1
    )
    wide = padded(torch.ones(2, 2080), 2112)
    assert wide.shape == (2, 2112) and wide.sum() == 2 * 2080
