"""Training on pairs: micro-batches, shared premises and padding change nothing; a killed run ends with the same bits; the best is kept."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from subspaces.errors import UserError
from subspaces.experiments.snli.task import accuracy, judge
from subspaces.training.checkpoint import Checkpoints
from subspaces.training.loop import generator_for, train
from subspaces.training.progress import Silent
from tests.text.toys import toy_model, toy_pairs, toy_task

OPTIONS = {
    "subspace": {"dim": 8, "lam": 0.05, "heads": 4},
    "vector": {"difference": True},
    "box": {"dim": 8},
    "gru_order": {"hidden": 16},
}


def gradients(task) -> dict[str, torch.Tensor]:
    rows = np.arange(12)
    task.model.train()
    task.model.zero_grad()
    for micro in task.micro_batches(rows):
        (task.loss(micro) * (len(micro) / len(rows))).backward()
    return {name: one.grad.clone() for name, one in task.model.named_parameters() if one.grad is not None}


@pytest.mark.parametrize("encoder", OPTIONS)
@pytest.mark.parametrize(
    "other",
    [{"micro": 12}, {"micro": 1}, {"by_length": False}, {"share_premises": False}, {"pad_to_longest": False}],
    ids=str,
)
def test_the_gradient_of_a_batch_does_not_depend_on_how_it_is_cut(encoder, other):
    one = gradients(toy_task(toy_model(encoder, **OPTIONS[encoder])))
    two = gradients(toy_task(toy_model(encoder, **OPTIONS[encoder]), **other))
    assert one.keys() == two.keys()
    for name in one:
        assert torch.allclose(one[name], two[name], rtol=2e-3, atol=2e-6), name


def test_three_way_gradients_add_up_too():
    options = OPTIONS["subspace"] | {"neutral_width": 16}
    one = gradients(toy_task(toy_model("subspace", 3, **options)))
    two = gradients(toy_task(toy_model("subspace", 3, **options), micro=12))
    assert all(torch.allclose(one[name], two[name], rtol=2e-3, atol=2e-6) for name in one)


def run(folder, stop_at: int | None = None, dropout: float = 0.2) -> dict[str, torch.Tensor]:
    """Train to the end, or until a step fails as if the process had been killed."""
    task = toy_task(toy_model(**OPTIONS["subspace"], dropout=dropout), folder / "best")
    original = task.step

    def step(epoch, place, generator):
        if stop_at is not None and epoch * task.steps_per_epoch + place == stop_at:
            raise KeyboardInterrupt
        return original(epoch, place, generator)

    task.step = step
    checkpoints = Checkpoints(folder / "checkpoints", "k" * 64, lambda text: None)
    train(task, epochs=2, seed=3, checkpoints=checkpoints, progress=Silent(), checkpoint_seconds=0.0)
    task.validate(len(task.curve) - 1)
    task.take_best()
    return {name: value.clone() for name, value in task.weights().items()} | {"curve": task.curve}


def test_a_killed_run_ends_with_the_same_bits(tmp_path):
    whole = run(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "cut", stop_at=11)
    resumed = run(tmp_path / "cut")
    assert whole.keys() == resumed.keys()
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def test_the_weights_with_the_best_validation_accuracy_are_kept(tmp_path):
    task = toy_task(toy_model(**OPTIONS["subspace"]), tmp_path / "best", validate_steps=2)
    values = iter([50.0, 70.0, 60.0, 65.0] + [10.0] * 20)
    kept = []

    def validate(place: int) -> None:
        original = task.curve[place]
        if torch.isnan(original):
            kept.append(next(iter(task.weights().values())).clone())
            task_validate(place)

    task_validate = task.validate
    task.validate = validate
    import subspaces.experiments.snli.task as module

    real, module.accuracy = module.accuracy, lambda logits, labels: next(values)
    try:
        train(task, epochs=2, seed=0, checkpoints=Checkpoints(tmp_path / "c", "k" * 64, print), progress=Silent())
        task.validate(len(task.curve) - 1)
        assert task.take_best() == 4
    finally:
        module.accuracy = real
    assert torch.equal(next(iter(task.weights().values())), kept[1])


def test_damaged_best_weights_are_refused(tmp_path):
    task = toy_task(toy_model(**OPTIONS["subspace"]), tmp_path / "best")
    task.validate(0)
    (tmp_path / "best" / "weights.safetensors").write_bytes(b"broken")
    with pytest.raises(UserError, match="damaged or missing"):
        task.take_best()


def test_toy_pairs_are_learnt(tmp_path):
    task = toy_task(toy_model(**OPTIONS["subspace"]), epochs=25, lr=0.01, lr_decay=1.0, smoothing=0.0)
    train(task, epochs=25, seed=0, checkpoints=Checkpoints(tmp_path / "c", "k" * 64, print), progress=Silent())
    logits, inclusion = judge(task.model, task.texts, task.train)
    assert accuracy(logits, task.train.labels(2)) > 90
    assert inclusion is not None and bool(((inclusion > 0) & (inclusion <= 1)).all())


def test_rates_fall_by_epoch_and_warm_up():
    task = toy_task(toy_model(**OPTIONS["subspace"]), warmup=0.25, lr_final=0.5)
    total = task.total
    rates = [task.rate(*divmod(step, task.steps_per_epoch)) for step in range(total)]
    assert rates[0] < rates[1] and rates[-1] == pytest.approx(0.9 * (1 - 0.5 * (total - 1) / total))


def test_out_of_memory_says_which_micro_batch_to_try(monkeypatch):
    task = toy_task(toy_model(**OPTIONS["subspace"]))

    def full(*_):
        raise RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr(task.model, "encode_together", full)
    task.begin_epoch(0, generator_for(0))
    with pytest.raises(UserError, match="set micro: 2 "):
        task.step(0, 0, generator_for(0))


def test_a_loss_that_is_not_finite_moves_no_weights(tmp_path):
    task = toy_task(toy_model(**OPTIONS["subspace"]))
    before = {name: value.clone() for name, value in task.weights().items()}
    task.model.loss = lambda p, h, *labels: (p.sum() + h.sum()) * float("nan")
    with pytest.raises(UserError, match="the loss became nan"):
        train(task, epochs=1, seed=0, checkpoints=Checkpoints(tmp_path / "c", "k" * 64, print), progress=Silent())
    assert all(torch.equal(before[name], value) for name, value in task.weights().items())


def test_sentences_of_one_length_make_a_piece_and_nothing_is_padded():
    task = toy_task(toy_model(**OPTIONS["subspace"]), pairs=toy_pairs(30))
    lengths = task.texts.table.lengths
    rows = np.argsort(lengths, kind="stable")
    pieces = task._pieces(rows)
    assert np.array_equal(np.concatenate(pieces), rows)
    assert [len(set(lengths[piece])) for piece in pieces] == [1] * len(set(lengths))
    task.settings = task.settings.model_copy(update={"by_length": False})
    assert len(task._pieces(rows)) == 1


def test_pairs_of_one_premise_stay_together():
    task = toy_task(toy_model(**OPTIONS["subspace"]), pairs=toy_pairs(30))
    task.begin_epoch(0, generator_for(1))
    premises = task.train.premise[task.order]
    changes = int((premises[1:] != premises[:-1]).sum())
    assert changes == len(np.unique(premises)) - 1
