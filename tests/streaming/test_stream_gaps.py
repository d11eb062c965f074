"""Missing inputs in a stream: filled as batch prediction fills them, wherever the stream goes on."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import random_panel
from varnn import Panel, Stream, VARNNRegressor
from varnn.errors import DataError
from varnn.streaming.linked import LinkedStreams

ROWS = 60
SMALL: dict[str, Any] = {"hidden_size": 6, "epochs": 2, "ensemble": 2}


def gappy(panel: Panel, seed: int = 0) -> Panel:
    """Take inputs away at random, the first rows' and one input of a whole series among them."""
    inputs = panel.inputs.copy()
    inputs[np.random.default_rng(seed).random(inputs.shape) < 0.4] = np.nan
    inputs[panel.starts[:-1]] = np.nan
    inputs[: panel.starts[1], 1] = np.nan
    return replace(panel, inputs=inputs)


TRAINING = random_panel([120, 120], missing=0.1, seed=1)
PANEL = gappy(random_panel([ROWS, ROWS], missing=0.1, seed=2))
KINDS: dict[str, VARNNRegressor] = {
    "default": VARNNRegressor(**SMALL),
    "paper": VARNNRegressor.paper("ARM+AM", epochs=2, hidden_size=6),
    "zero": VARNNRegressor(fill="zero", **SMALL),
    "looking ahead": VARNNRegressor(horizon=4, **SMALL),
}


@pytest.fixture(scope="module", params=KINDS, ids=list(KINDS))
def model(request: pytest.FixtureRequest) -> VARNNRegressor:
    return KINDS[request.param].fit(TRAINING)


def row(panel: Panel, number: int) -> Any:
    return panel.starts[:-1] + number


def test_a_fleet_with_gaps_is_batch_prediction(model: VARNNRegressor) -> None:
    live, found = model.stream(n_series=2), np.empty(len(PANEL))
    for number in range(ROWS):
        at = row(PANEL, number)
        live.predict(PANEL.inputs[at[::-1]])  # what is predicted and never observed counts for nothing
        found[at] = live.predict(PANEL.inputs[at])
        if number in (0, 7, 30):
            live = Stream.restore(model, live.snapshot())  # with a step open, too
        live.observe(PANEL.target[at])
        if number in (3, 30):
            live = Stream.restore(model, live.snapshot())
    np.testing.assert_allclose(found, model.predict(PANEL), rtol=1e-4, atol=1e-4)
    if model.horizon > 1:
        ahead = model.forecast(PANEL, interval=0.9)
        streamed = live.forecast(interval=0.9)
        np.testing.assert_allclose(streamed.prediction, ahead.prediction, atol=1e-4)
        np.testing.assert_allclose(np.asarray(streamed.upper), np.asarray(ahead.upper), atol=1e-4)


def test_one_series_with_gaps_is_batch_prediction(model: VARNNRegressor) -> None:
    for index in range(2):
        rows = slice(PANEL.starts[index], PANEL.starts[index + 1])
        live, found = model.stream(), []
        for x, y in zip(PANEL.inputs[rows], PANEL.target[rows], strict=True):
            with_none: Any = [None if np.isnan(one) else one for one in x]
            found.append(live.predict(with_none))
            live.observe(y)
        np.testing.assert_allclose(found, model.predict(PANEL)[rows], rtol=1e-4, atol=1e-4)


def test_series_that_see_each_other_with_gaps() -> None:
    model = VARNNRegressor(peers=True, **SMALL).fit(TRAINING)
    live, found = LinkedStreams(model), np.empty(len(PANEL))
    for name in PANEL.ids:
        live[name] = live.begin()
    for number in range(ROWS):
        for name, at in zip(PANEL.ids, row(PANEL, number), strict=True):
            found[at] = live[name].predict(PANEL.inputs[at])
            if number in (5, 20):
                live = LinkedStreams.restore(model, live.snapshot())
            live[name].observe(PANEL.target[at])
    np.testing.assert_allclose(found, model.predict(PANEL), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("fill", ["none", "interpolate"])
def test_what_cannot_be_filled_without_the_future_is_refused(fill: Any) -> None:
    model = VARNNRegressor(fill=fill, **SMALL).fit(TRAINING)
    live, other = model.stream(), model.stream()
    for one in (live, other):
        one.predict([0.1, 0.2, 0.3])
    with pytest.raises(DataError, match=rf"fill='{fill}' a stream takes no missing input; position \[1\]"):
        live.predict([0.1, np.nan, 0.2])
    assert live.observe(0.5) == other.observe(0.5)
    assert live.predict([0.1, 0.2, 0.3]) == other.predict([0.1, 0.2, 0.3])


def test_an_array_that_changes_afterwards_changes_nothing() -> None:
    model = KINDS["paper"].fit(TRAINING)
    live, other, buffer = model.stream(), model.stream(), np.array([0.1, 0.2, 0.3])
    for one, x in ((live, buffer), (other, [0.1, 0.2, 0.3])):
        one.predict(x)
        one.observe(1.0)
    buffer[:] = 99.0
    assert live.predict([np.nan] * 3) == other.predict([np.nan] * 3)


def test_lines_with_null(tmp_path: Path) -> None:
    model = KINDS["default"].fit(TRAINING)
    model.save(tmp_path / "m.varnn")
    lines = [{"x": {"x0": 1.0, "x1": None, "x2": 0.5}, "y": 1.0}, {"x": [None, 0.2, None], "y": None}]
    done = subprocess.run(
        [sys.executable, "-c", "from varnn.cli.app import main; main()", "stream", str(tmp_path / "m.varnn")],
        input="\n".join(map(json.dumps, lines)),
        capture_output=True,
        text=True,
        check=True,
    )
    found = [json.loads(line)["prediction"] for line in done.stdout.splitlines()]
    nan = np.nan
    panel = Panel.from_arrays([[1.0, nan, 0.5], [nan, 0.2, nan]], [1.0, nan])
    np.testing.assert_allclose(found, model.predict(panel), rtol=1e-4)
