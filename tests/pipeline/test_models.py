"""The curve in the record of a model is short, begins and ends with the history, and keeps its validations."""

from __future__ import annotations

from subspaces.pipeline.models import POINTS, training_curve


def history(path, rows: int):
    """A loss at every epoch and a validation at every tenth."""
    lines = [f"{epoch},{1 / epoch!r},{epoch / 10 if epoch % 10 == 0 else ''}" for epoch in range(1, rows + 1)]
    path.write_text("\n".join(["epoch,loss,validation_map", *lines, ""]))
    return path


def test_a_short_history_is_repeated(tmp_path):
    curve = training_curve(history(tmp_path / "history.csv", 12))
    assert [point["epoch"] for point in curve] == list(range(1, 13))
    assert [point["validation_map"] for point in curve] == [None] * 9 + [1.0] + [None] * 2
    assert curve[2]["loss"] == 0.333333


def test_a_long_history_keeps_its_ends_and_every_stretch_its_last_validation(tmp_path):
    curve = training_curve(history(tmp_path / "history.csv", 780))
    assert len(curve) == POINTS
    assert (curve[0]["epoch"], curve[-1]["epoch"], curve[-1]["validation_map"]) == (1, 780, 78.0)
    assert all(point["validation_map"] is not None for point in curve[1:])


def test_what_is_not_a_number_is_left_empty(tmp_path):
    path = tmp_path / "history.csv"
    path.write_text("epoch,loss\n1,0.5\n2,nan\n3,inf\n")
    assert [point["loss"] for point in training_curve(path)] == [0.5, None, None]
    path.write_text("epoch,loss\n")
    assert training_curve(path) == []
