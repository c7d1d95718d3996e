"""The weights with the best validation: kept in a file, taken at the end, refused when they are not the ones of the record."""

import math

import pytest
import torch

from subspaces.errors import UserError
from subspaces.training.best import BestWeights


class Model:
    """One number, which training sets to the number of the validation that follows."""

    def __init__(self):
        self.X = torch.zeros(2)

    def weights(self):
        return {"X": self.X}


def offered(best: BestWeights, model: Model, values: dict[int, float]) -> None:
    for validation, value in values.items():
        model.X.fill_(validation)
        best.offer(validation, value)


@pytest.mark.parametrize(
    ("values", "chosen"),
    [({0: 1.0, 1: 3.0, 2: 2.0}, 1), ({0: 3.0, 1: 3.0, 2: 1.0}, 0), ({2: 0.0}, 2), ({1: 1.0, 2: 4.0}, 2)],
)
def test_the_weights_of_the_first_best_validation_are_taken(tmp_path, values, chosen):
    model = Model()
    best = BestWeights(tmp_path, 3, model.weights)
    offered(best, model, values)
    assert [best.knows(validation) for validation in range(3)] == [validation in values for validation in range(3)]
    model.X.fill_(-1.0)
    assert best.take() == chosen and model.X.tolist() == [chosen, chosen]


def test_a_resumed_run_takes_weights_that_were_kept_before_it_was_killed(tmp_path):
    """The checkpoint brings the values back; the file is still there, and a worse validation leaves it alone."""
    model = Model()
    before = BestWeights(tmp_path, 3, model.weights)
    offered(before, model, {0: 1.0, 1: 5.0})
    after = BestWeights(tmp_path, 3, model.weights)
    after.curve.copy_(before.curve)
    offered(after, model, {2: 4.0})
    assert after.take() == 1 and model.X.tolist() == [1, 1]


def test_weights_of_another_validation_are_refused(tmp_path):
    """A resumed run whose second validation came out otherwise: the file holds what the run before it kept."""
    model = Model()
    offered(BestWeights(tmp_path, 3, model.weights), model, {0: 1.0, 1: 5.0})
    best = BestWeights(tmp_path, 3, model.weights)
    best.curve[0] = 1.0
    best.offer(1, 0.5)
    with pytest.raises(UserError, match="damaged or missing"):
        best.take()


def test_without_a_folder_values_are_recorded_and_weights_stay(tmp_path):
    model = Model()
    best = BestWeights(None, 2, model.weights)
    offered(best, model, {0: 2.0, 1: 1.0})
    assert best.take() == 0 and model.X.tolist() == [1, 1] and best.curve.tolist() == [2.0, 1.0]
    best.reset()
    assert all(math.isnan(value) for value in best.curve.tolist())
