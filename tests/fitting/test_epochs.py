"""What `on_epoch` is told: the validation loss in every stage, and which stage it is."""

from typing import Any

import numpy as np
import pytest

from varnn import Details, VARNNRegressor
from varnn.fitting import Stage

LABELS = np.sin(np.arange(400) / 9) + np.random.default_rng(0).normal(size=400) / 5
Line = dict[str, float]


def told(**changes: Any) -> tuple[VARNNRegressor, list[Line]]:
    lines: list[Line] = []
    settings: dict[str, Any] = {"ensemble": 3, "epochs": 4, "hidden_size": 4} | changes
    model = VARNNRegressor(**settings, details=Details(patience=None))
    return model.fit(None, LABELS, on_epoch=lines.append), lines


@pytest.mark.parametrize("horizon", [1, 3])
def test_every_epoch_has_a_validation_loss_and_a_stage(horizon: int) -> None:
    _, lines = told(horizon=horizon)
    assert {Stage(int(line["stage"])) for line in lines} == set(Stage)
    assert {line["horizon"] for line in lines} == {1, horizon}
    assert all(np.isfinite(line["validation_loss"]) for line in lines)
    assert lines[-1]["progress"] == 1


def test_a_refit_carries_the_validation_loss_of_its_member_and_epoch() -> None:
    model, lines = told()
    measured = {(line["member"], line["epoch"]): line["validation_loss"] for line in model.history_}
    again = [line for line in lines if line["stage"] == Stage.REFIT]
    assert len(again) == sum(model.fitted_.training.best_epoch)
    for line in again:
        assert line["validation_loss"] == measured[line["member"], line["epoch"]]


def test_members_are_counted_from_the_first_on() -> None:
    _, lines = told()
    members = {stage: {line["member"] for line in lines if line["stage"] == stage} for stage in Stage}
    assert members == {Stage.CHOOSING: {0}, Stage.MEMBERS: {1, 2}, Stage.REFIT: {0, 1, 2}}


def test_without_validation_rows_there_is_no_loss_of_theirs() -> None:
    _, lines = told(validation_fraction=0)
    assert lines and not any("validation_loss" in line for line in lines)
    assert {Stage(int(line["stage"])) for line in lines} == {Stage.CHOOSING, Stage.MEMBERS}


def test_a_line_holds_numbers_only() -> None:
    _, lines = told(ensemble=1)
    assert all(isinstance(value, int | float) for line in lines for value in line.values())


def test_the_history_of_a_model_is_what_was_measured(capsys: pytest.CaptureFixture[str]) -> None:
    model, _ = told(verbose=1)
    assert all("stage" not in line for line in model.history_)
    printed = capsys.readouterr().out.splitlines()
    assert "validation" in printed[0] and "refit" in printed[-1]
