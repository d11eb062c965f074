"""Forecasts of short series: bands that hold what they say, and horizons that rows cannot teach."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from typer.testing import CliRunner

from varnn import Panel, VARNNRegressor
from varnn.cli.app import app
from varnn.errors import DataError
from varnn.evaluation.backtesting import backtest
from varnn.model.forecast.rows import longest_horizon
from varnn.model.intervals import TAUS, CalibrationRows, HorizonBands
from varnn.model.intervals.few_errors import ENOUGH

Labels = npt.NDArray[np.float64]
Process = Callable[[int, int], Labels]


def random_walk(rows: int, seed: int) -> Labels:
    return np.cumsum(np.random.default_rng(seed).normal(size=rows))


def autoregressive(rows: int, seed: int) -> Labels:
    noise = np.random.default_rng(seed).normal(size=rows)
    labels = np.zeros(rows)
    for row in range(1, rows):
        labels[row] = 0.7 * labels[row - 1] + noise[row]
    return labels


@pytest.mark.parametrize("process", [random_walk, autoregressive])
@pytest.mark.parametrize(("rows", "horizon"), [(60, 24), (120, 12)])
def test_bands_of_short_series_are_honest(process: Process, rows: int, horizon: int) -> None:
    """Of 90 % intervals on 20 series most hold: not none as at zero width, and not by being endless."""
    held, widths = [], []
    for seed in range(20):
        labels = process(rows + horizon, seed)
        panel = Panel.from_arrays(None, labels[:rows])
        model = VARNNRegressor(horizon=horizon, ensemble=1, epochs=10).fit(panel)
        ahead = model.forecast(panel, interval=0.9)
        assert ahead.lower is not None and ahead.upper is not None
        outcome = labels[rows:]
        held.append((ahead.lower[0] <= outcome) & (outcome <= ahead.upper[0]))
        widths.append((ahead.upper[0] - ahead.lower[0]) / np.sqrt(np.arange(1, horizon + 1)))
    assert np.min(widths) > 0.2
    assert np.median(widths) < 2 * 2 * 1.645
    assert 0.75 < np.mean(held) < 0.97
    assert np.mean(held, axis=0)[-3:].mean() > 0.6  # far steps were never held: their width was zero


def test_bands_without_errors_grow_like_those_of_a_random_walk() -> None:
    errors = np.full((12, 30), np.nan)
    errors[:, 0] = np.random.default_rng(0).normal(size=12)
    bands = HorizonBands.fit(CalibrationRows(np.ones((12, 1)), errors, np.array([0, 12])))
    upper = bands.quantiles[:, -1]
    np.testing.assert_allclose(upper[29] / upper[9], np.sqrt(30 / 10))
    assert (np.diff(bands.quantiles, axis=1) > 0).all()


def test_many_errors_keep_their_own_quantiles() -> None:
    errors = np.random.default_rng(0).gumbel(size=(ENOUGH * 3, 3))
    bands = HorizonBands.fit(CalibrationRows(np.ones((len(errors), 1)), errors, np.array([0, len(errors)])))
    np.testing.assert_allclose(bands.quantiles, np.quantile(errors, TAUS, axis=0).T)


def test_few_errors_are_said(caplog: pytest.LogCaptureFixture) -> None:
    VARNNRegressor(horizon=24, ensemble=1, epochs=1).fit(None, random_walk(60, 0))
    assert "forecasts 1 to 24 rows ahead (none at all of the last 12)" in caplog.text
    caplog.clear()
    VARNNRegressor(horizon=2, ensemble=1, epochs=1).fit(None, random_walk(300, 0))
    assert "rows ahead" not in caplog.text


def test_a_horizon_that_the_rows_cannot_teach_is_refused_before_training() -> None:
    panel = Panel.from_arrays(None, random_walk(300, 0))
    epochs: list[dict[str, float]] = []
    with pytest.raises(DataError, match=r"1,000 rows to train on, which is 1,250 .*longest horizon.* is 120"):
        VARNNRegressor(horizon=500).fit(panel, on_epoch=epochs.append)
    with pytest.raises(DataError, match="longest horizon that these rows can teach is 96"):
        backtest(panel, horizon=100, on_epoch=epochs.append)
    assert not epochs


@pytest.mark.parametrize("lengths", [[1], [7], [40] * 6, [3, 50, 8], [2, 2]])
def test_the_longest_horizon_is_looked_at_by_as_many_rows(lengths: list[int]) -> None:
    labels = np.zeros(sum(lengths))
    panel = Panel.from_arrays(None, labels, series=np.repeat(np.arange(len(lengths)), lengths))
    supported = [h for h in range(1, 200) if sum(max(0, one - h) for one in lengths) >= h]
    assert longest_horizon(panel) == max(supported, default=1)


def test_the_command_refuses_it_too(tmp_path: Path) -> None:
    path = tmp_path / "walk.csv"
    path.write_text("y\n" + "\n".join(f"{one:.3f}" for one in random_walk(300, 0)) + "\n")
    found = CliRunner().invoke(app, ["forecast", str(path), "--target", "y", "--horizon", "500"])
    assert isinstance(found.exception, DataError) and "longest horizon" in str(found.exception)
