"""What people hand to fit and predict: nothing but labels, lazy frames, tables with dates."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars
import pytest
from sklearn.base import clone

from tests.cases import random_panel
from varnn import Panel, VARNNRegressor
from varnn.data.preparation import split_in_time
from varnn.errors import DataError

LABELS = np.sin(np.arange(120) / 5)
ROWS = {"heat": np.cos(np.arange(120.0)), "load": LABELS}


def small() -> VARNNRegressor:
    return VARNNRegressor(ensemble=1, epochs=1, hidden_size=4)


def test_a_stream_without_inputs() -> None:
    model = small().fit(None, LABELS)
    assert model.n_features_in_ == 0 and not hasattr(model, "feature_names_in_")
    expected = small().fit(Panel.from_arrays(None, LABELS)).predict(Panel.from_arrays(None, LABELS))
    np.testing.assert_array_equal(model.predict(None, LABELS), expected)
    assert model.score(None, LABELS) > 0.5
    series = np.arange(120) % 2
    two = small().fit(None, LABELS, series=series)
    assert len(two.predict(None, LABELS, series=series)) == 120 and two.fitted_.training.series == 2
    live = model.stream()
    streamed = []
    for label in LABELS:
        streamed.append(live.predict([]))
        live.observe(label)
    np.testing.assert_allclose(streamed, expected, atol=1e-5)
    with pytest.raises(DataError, match=r"both X and y are None.*forecast\(horizon"):
        model.predict(None)
    with pytest.raises(DataError, match="requires y"):
        small().fit(None)


def test_inputs_that_were_there_in_fit_cannot_be_left_out() -> None:
    model = small().fit(np.zeros((120, 2)), LABELS)
    with pytest.raises(DataError, match="fitted on 2 inputs, and X is None"):
        model.predict(None, LABELS)


def test_a_lazy_frame_is_collected() -> None:
    frame = polars.DataFrame(ROWS)
    lazy: Any = frame.lazy()
    panel = Panel.from_frame(lazy, target="load")
    np.testing.assert_array_equal(panel.inputs, Panel.from_frame(frame, target="load").inputs)
    model = small().fit(lazy.select("heat"), LABELS)
    assert model.feature_names_in_.tolist() == ["heat"]
    np.testing.assert_array_equal(
        model.predict(lazy.select("heat"), LABELS), model.predict(frame.select("heat"), LABELS)
    )
    by_panel = small().fit(panel)
    found = by_panel.predict_frame(lazy)
    assert isinstance(found, polars.DataFrame) and found.equals(by_panel.predict_frame(frame))


@pytest.mark.parametrize("kind", [pd.DataFrame, polars.DataFrame])
@pytest.mark.parametrize("others", [True, False])
def test_a_date_among_the_inputs_is_named(kind: type[pd.DataFrame], others: bool) -> None:
    days = np.datetime64("2026-01-01") + np.arange(120).astype("timedelta64[D]")
    frame = kind({"day": days.astype("datetime64[ms]")} | ({"heat": ROWS["heat"]} if others else {}))
    with pytest.raises(DataError, match=r"column 'day' of X holds times.*Drop it, or.*time="):
        small().fit(frame, LABELS)
    model = small().fit(np.zeros((120, frame.shape[1])), LABELS)
    with pytest.raises(DataError, match="'day'"):
        model.predict(frame, LABELS)


def test_an_array_of_dates_is_no_input() -> None:
    with pytest.raises(DataError, match=r"X holds datetime64\[D\]"):
        small().fit(np.datetime64("2026-01-01") + np.arange(120)[:, None], LABELS)


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (np.full(200, 7.5), "the target 'y' is 7.5 in all 160 training rows: there is nothing to learn"),
        (np.arange(5.0), "trained on 5 labels in all: with fewer than 20"),
        (np.sin(np.arange(60.0)), "of 60 labels, 12 are there to choose on"),
    ],
)
def test_what_little_is_worth_is_said(
    labels: np.ndarray[tuple[int], np.dtype[np.float64]], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    small().fit(None, labels)
    assert said in caplog.text


def test_enough_is_not_commented_on(caplog: pytest.LogCaptureFixture) -> None:
    small().fit(None, LABELS)
    assert "labels" not in caplog.text and "nothing to learn" not in caplog.text


def test_the_command_says_it_too(tmp_path: Path) -> None:
    (tmp_path / "flat.csv").write_text("y\n" + "3\n" * 60)
    options = ["--target", "y", "--epochs", "1", "-o", str(tmp_path / "m.varnn")]
    command = [
        sys.executable,
        "-c",
        "from varnn.cli.app import main; main()",
        "fit",
        str(tmp_path / "flat.csv"),
    ]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=True)
    assert "the target 'y' is 3 in all 48 training rows: there is nothing to learn" in done.stderr


def swapped(panel: Panel) -> Panel:
    """The same rows with their inputs in another order."""
    names = panel.input_names[::-1]
    return replace(panel, inputs=panel.inputs[:, ::-1], input_names=names)


@pytest.mark.parametrize("horizon", [1, 3])
def test_validation_rows_are_matched_by_name(horizon: int) -> None:
    panel = random_panel([200], n_inputs=2, seed=3)
    training, validation = split_in_time(panel, 0.8, 0.2)
    model = VARNNRegressor(ensemble=1, epochs=2, hidden_size=4, horizon=horizon)
    expected = clone(model).fit(training, validation=validation)
    found = clone(model).fit(training, validation=swapped(validation))
    assert [one["validation_loss"] for one in found.history_] == [
        one["validation_loss"] for one in expected.history_
    ]
    assert found.fitted_.fingerprint == expected.fitted_.fingerprint
    if horizon > 1:
        np.testing.assert_array_equal(found.forecast().prediction, expected.forecast().prediction)


def test_validation_rows_that_lack_inputs_are_refused() -> None:
    panel = random_panel([200], n_inputs=2)
    lacking = replace(panel, inputs=panel.inputs[:, :1], input_names=("x0",))
    with pytest.raises(DataError, match=r"fitted on 2 inputs; the validation rows lack \['x1'\]"):
        small().fit(panel, validation=lacking)


def test_peers_need_two_series() -> None:
    model = VARNNRegressor(peers=True, ensemble=1, epochs=1, hidden_size=4)
    with pytest.raises(DataError, match=r"peers=True needs at least two series.*have 1"):
        model.fit(None, LABELS)
    assert not hasattr(model, "fitted_")
