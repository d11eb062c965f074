"""A fit says which inputs determine the target, once, and its file keeps it."""

import json
import logging
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from varnn import Panel, VARNNRegressor, load
from varnn.cli.app import app
from varnn.persistence.model_file import read_card

LEAK = "cnt is the exact sum of casual and registered"


def bikes() -> Panel:
    riders = np.random.default_rng(0).poisson([3, 40, 9], size=(200, 3)).astype(float)
    names = ["casual", "registered", "wind"]
    return Panel.from_arrays(riders, riders[:, :2].sum(axis=1), input_names=names, target_name="cnt")


def test_a_fit_says_it_once_and_the_file_keeps_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        model = VARNNRegressor(epochs=1, hidden_size=4, ensemble=2).fit(bikes())
    assert [LEAK in one for one in caplog.messages].count(True) == 1
    assert model.fitted_.training.leak == LEAK
    model.save(tmp_path / "bikes.varnn")
    assert load(tmp_path / "bikes.varnn").fitted_.training.leak == LEAK
    assert f"Look: {LEAK} in the training rows" in read_card(tmp_path / "bikes.varnn")
    shown = CliRunner().invoke(app, ["inspect", str(tmp_path / "bikes.varnn"), "--json"]).stdout
    assert json.loads(shown)["exact leak"] == LEAK


def test_without_the_columns_nothing_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        model = VARNNRegressor(epochs=1, hidden_size=4).fit(bikes().with_inputs(["casual", "wind"]))
    assert not any("exact" in one for one in caplog.messages)
    model.save(tmp_path / "bikes.varnn")
    assert load(tmp_path / "bikes.varnn").fitted_.training.leak is None
    assert "Look" not in read_card(tmp_path / "bikes.varnn")
