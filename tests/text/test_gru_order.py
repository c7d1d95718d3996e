"""Order embeddings of sentences: the energy, the threshold, and what may not influence them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from safetensors.torch import load_file, save_file
from torch import Tensor

from subspaces.errors import UserError
from subspaces.text.encoders.gru_order import OrderGRU, Settings, best_threshold, energy
from subspaces.text.pair_model import make_model
from subspaces.text.texts import Tokens
from tests.text.subsets import WORDS, accuracy, batch, scores, slopes, subset_pairs, train

P, H = torch.tensor([[1.0, 0.5, 0.0]]), torch.tensor([[0.5, 1.0, 0.25]])


def small(seed: int = 0, **options: float) -> OrderGRU:
    settings = Settings(**{"hidden": 24, "embedding": 12, **options})
    return settings.build(2, None, WORDS, torch.Generator().manual_seed(seed))


# --- energy and loss -----------------------------------------------------------------------------------------------------------


def test_energy_by_hand() -> None:
    assert energy(P, H).item() == 0.5**2 + 0.25**2
    assert energy(H, P).item() == 0.5**2
    assert energy(torch.maximum(P, H), H).item() == 0.0  # the hypothesis lies below everywhere
    assert energy(P, torch.zeros_like(P)).item() == 0.0  # the most general of all


def test_loss_by_hand() -> None:
    model = small(margin=0.5)
    premise, hypothesis = torch.cat([P, P, H, P]), torch.cat([H, H, P, P])
    wanted = (0.3125 + (0.5 - 0.3125) + (0.5 - 0.25) + 0.0) / 4  # entailed, not, not, entailed
    assert model.loss(premise, hypothesis, torch.tensor([0, 1, 1, 0]), 0.0).item() == pytest.approx(wanted)
    assert small(margin=0.2).loss(P, H, torch.tensor([1]), 0.0).item() == 0.0  # far enough


def test_gradients_against_finite_differences() -> None:
    points = [
        torch.randn(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(s)).abs().requires_grad_()
        for s in (1, 2)
    ]
    assert torch.autograd.gradcheck(energy, points)
    for unit_norm in (True, False):
        model = small(margin=3.0, unit_norm=unit_norm).double()
        for name, (gradient, difference) in slopes(model, subset_pairs(20)).items():
            assert abs(gradient) > 1e-6, name
            assert gradient == pytest.approx(difference, rel=1e-5), name


# --- representations -----------------------------------------------------------------------------------------------------------


def test_representations_are_the_last_states_without_a_sign() -> None:
    model, row = small(), [3, 5, 2, 7]
    with torch.no_grad():
        states, last = model.gru(model.words(torch.tensor([row])))
        found = model.encode(batch([row]))
    assert torch.allclose(found[0], states[0, -1].abs()) and torch.allclose(found[0], last[0, 0].abs())
    assert bool((states[0, -1] < 0).any()) and bool((found >= 0).all())
    unit = small(unit_norm=True)
    unit.load_state_dict(model.state_dict())
    assert torch.allclose(unit.encode(batch([row])), found / found.norm())


def test_padding_has_no_influence() -> None:
    model, rows = small(), [[3, 5], [4, 2, 9, 6, 3], [7], [5, 5, 5]]
    with torch.no_grad():
        together = model.encode(batch(rows))
        assert torch.equal(together, model.encode(batch(rows, width=11, junk=8)))
        assert torch.allclose(together, torch.cat([model.encode(batch([row])) for row in rows]), atol=1e-6)
    assert not torch.allclose(together[0], together[2])


def test_padding_is_not_trained() -> None:
    model = small()
    before = model.words.weight.detach().clone()
    train(model, subset_pairs(20), lr=0.01, steps=2)
    assert not before[0].any() and not model.words.weight[0].any()
    assert not torch.equal(before, model.words.weight)


# --- threshold -----------------------------------------------------------------------------------------------------------------


def right(energies: Tensor, entailed: Tensor, threshold: Tensor) -> int:
    return int(((energies <= threshold) == entailed).sum())


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 0.1, 0.25, 0.7, 1.5, 3.0]) | st.floats(0, 2, width=32), st.booleans()),
        min_size=1,
    )
)
def test_the_threshold_is_the_best_of_all(pairs: list[tuple[float, bool]]) -> None:
    """Against every cut that there is, one after the other; and of the best cuts it is the first."""
    energies, entailed = torch.tensor([one for one, _ in pairs]), torch.tensor([one for _, one in pairs])
    cuts = [energies.min() - 1, *energies.unique()]
    counts = [right(energies, entailed, cut) for cut in cuts]
    found = best_threshold(energies, entailed)
    assert right(energies, entailed, found) == max(counts)
    assert torch.equal(energies <= found, energies <= cuts[counts.index(max(counts))])


def test_the_threshold_lies_in_the_middle() -> None:
    assert best_threshold(torch.tensor([0.1, 0.75, 0.25]), torch.tensor([True, False, True])).item() == 0.5
    assert (
        best_threshold(torch.tensor([0.5, 2.0]), torch.tensor([False, False])).item() == 0.0
    )  # half a step below all of them
    assert best_threshold(torch.tensor([0.5, 2.0]), torch.tensor([True, True])).item() == 2.5


def test_neighbouring_floats_are_told_apart() -> None:
    for start in (0.2, 0.30000001192092896, 1.0):
        low = torch.tensor(start)
        high = torch.nextafter(low, torch.tensor(9.0))
        found = best_threshold(torch.stack([low, high]), torch.tensor([True, False]))
        assert low <= found < high


def test_calibration_decides_and_can_be_repeated() -> None:
    model, data = small(margin=1.0), subset_pairs()
    train(model, data, lr=0.01, steps=3)
    first = scores(model, data)
    assert model.calibrate(first, data[2])
    second = scores(model, data)
    assert torch.equal(first[:, 0], second[:, 0])
    wanted = right(-first[:, 0], data[2] == 0, best_threshold(-first[:, 0], data[2] == 0))
    assert int((second.argmax(1) == data[2]).sum()) == wanted >= int((first.argmax(1) == data[2]).sum())
    assert not model.calibrate(second, data[2])  # nothing new, nothing moves


def test_logits_are_sensible() -> None:
    """The energy can be read off; entailment up to the threshold; even odds there."""
    model = small()
    model.threshold.fill_(0.3125)
    found = model.logits(torch.cat([P, P, P]), torch.cat([H, H + 0.01, P]))
    assert torch.equal(-found[:, 0], energy(torch.cat([P, P, P]), torch.cat([H, H + 0.01, P])))
    assert found.argmax(1).tolist() == [0, 1, 0]
    chances = found.softmax(1)[:, 0].tolist()
    assert chances[0] == pytest.approx(0.5) and chances[1] < 0.5 < chances[2]


# --- as a whole ----------------------------------------------------------------------------------------------------------------


def test_it_learns_and_a_saved_model_decides_the_same(tmp_path: Path) -> None:
    model, data = small(hidden=32, embedding=16), subset_pairs()
    losses = train(model, data, lr=0.01, steps=60)
    model.calibrate(scores(model, data), data[2])
    assert losses[-1] < losses[0] / 2
    assert accuracy(model, data) >= 0.9
    save_file(model.state_dict(), tmp_path / "weights.safetensors")
    again = small(seed=1, hidden=32, embedding=16)
    assert not torch.equal(scores(again, data), scores(model, data))
    again.load_state_dict(load_file(tmp_path / "weights.safetensors"))
    assert again.threshold == model.threshold != small().threshold
    assert torch.equal(scores(again, data), scores(model, data))


def test_the_start_depends_on_the_generator_only() -> None:
    data = subset_pairs(10)
    assert torch.equal(scores(small(), data), scores(small(), data))
    assert not torch.equal(scores(small(), data), scores(small(seed=1), data))
    with torch.random.fork_rng():
        torch.manual_seed(5)
        one = scores(make_model(Settings(hidden=8), 2, None, WORDS), data)
        torch.manual_seed(5)
        assert torch.equal(one, scores(make_model(Settings(hidden=8), 2, None, WORDS), data))


def test_sizes_of_the_table() -> None:
    model = Settings().build(2, None, WORDS)
    assert model.words.weight.shape == (WORDS, 300) and model.encode(batch([[2, 3]])).shape == (1, 1024)


def test_what_cannot_be_built() -> None:
    with pytest.raises(UserError, match="2-way only"):
        Settings().build(3, None, WORDS)
    with pytest.raises(UserError, match="at least 2 words"):
        Settings().build(2, None, 0)
    for wrong in ({"hidden": 0}, {"margin": 0.0}, {"margin": float("nan")}, {"backbone": "all-MiniLM-L6-v2"}):
        with pytest.raises(ValidationError):
            Settings(**wrong)


def test_what_cannot_be_encoded_or_calibrated() -> None:
    model = small()
    with pytest.raises(UserError, match="a text without tokens"):
        model.encode(Tokens(torch.tensor([[2], [3]]), torch.tensor([[True], [False]])))
    with pytest.raises(UserError, match="there are none"):
        model.calibrate(torch.empty(0, 2), torch.empty(0, dtype=torch.long))
    with pytest.raises(UserError, match="NaN or infinite: train again with a lower learning rate"):
        model.calibrate(torch.tensor([[float("nan"), 0.0]]), torch.tensor([0]))
