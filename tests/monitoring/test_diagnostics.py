"""Diagnostics: correlations against statsmodels and plain loops, words on planted faults, figures."""

import json
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2, norm
from statsmodels.stats.diagnostic import acorr_ljungbox
from statsmodels.tsa.stattools import acf

from varnn import Panel, VARNNRegressor
from varnn._types import DoubleArray
from varnn.data.preparation import split_in_time
from varnn.errors import DataError
from varnn.monitoring._chi_squared import survival
from varnn.monitoring.calibration import calibrate
from varnn.monitoring.correlation import autocorrelation, cross_correlation, ljung_box
from varnn.monitoring.diagnostics import Diagnosis, PredictionTrace, diagnose, diagnose_trace
from varnn.monitoring.event import Event
from varnn.monitoring.monitor import detect
from varnn.report import diagnostic_figures, over_time
from varnn.report.figures import to_svg

LAGS = np.arange(1, 25)


def coloured(seed: int, rows: int = 2000, colour: float = 0.6) -> DoubleArray:
    values = np.random.default_rng(seed).normal(size=rows)
    for row in range(1, rows):
        values[row] += colour * values[row - 1]
    return values


def hourly(rows: int, inputs: Any = None) -> Panel:
    time = np.datetime64("2026-01-01T00") + np.arange(rows)
    return Panel.from_arrays(inputs, np.zeros(rows), time=time)


def plain(rows: int, inputs: Any = None) -> Panel:
    return Panel.from_arrays(inputs, np.zeros(rows))


# Correlations


@pytest.mark.parametrize("freedom", [1, 2, 3, 10, 51, 400])
def test_the_tail_of_chi_squared_is_scipys(freedom: int) -> None:
    for statistic in (-1.0, 0.0, 1e-9, 0.3, 7.0, float(freedom), 3.0 * freedom, 2000.0, 1e6, np.inf):
        assert survival(statistic, freedom) == pytest.approx(
            chi2.sf(statistic, freedom), rel=1e-9, abs=1e-300
        )
    assert np.isnan(survival(np.nan, freedom))


def test_autocorrelation_and_ljung_box_are_those_of_statsmodels() -> None:
    values = coloured(0, 600, 0.1)
    correlations, pairs = autocorrelation(values, LAGS, np.array([0, 600]))
    assert correlations == pytest.approx(acf(values, nlags=24, adjusted=True)[1:], abs=1e-12)
    statistic, p_values = ljung_box(correlations, pairs, 600)
    theirs = acorr_ljungbox(values, lags=24)
    assert statistic == pytest.approx(theirs["lb_stat"].to_numpy(), rel=1e-10)
    assert p_values == pytest.approx(theirs["lb_pvalue"].to_numpy(), rel=1e-8)


def test_pairs_stay_within_series_and_leave_out_what_is_missing() -> None:
    generator = np.random.default_rng(1)
    values, inputs = generator.normal(size=90), generator.normal(size=(90, 2))
    values[[3, 40, 41, 88]] = np.nan
    inputs[5:30, 1] = np.nan
    starts = np.array([0, 30, 37, 90])
    series = np.repeat([0, 1, 2], np.diff(starts))

    def by_loop(column: DoubleArray, lag: int) -> tuple[float, int]:
        first, second = ((one - np.nanmean(one)) / np.nanstd(one) for one in (values, column))
        products = [first[t] * second[t - lag] for t in range(lag, 90) if series[t] == series[t - lag]]
        return float(np.nanmean(products)), int(np.sum(~np.isnan(products)))

    correlations, pairs = autocorrelation(values, LAGS, starts)
    expected = [by_loop(values, int(lag)) for lag in LAGS]
    assert np.column_stack([correlations, pairs]) == pytest.approx(np.array(expected))
    correlations, pairs = cross_correlation(values, inputs, np.arange(5), starts)
    for column in range(2):
        expected = [by_loop(inputs[:, column], lag) for lag in range(5)]
        assert np.column_stack([correlations[:, column], pairs[:, column]]) == pytest.approx(
            np.array(expected)
        )


def test_bands_hold_on_white_noise() -> None:
    outside = []
    for seed in range(60):
        diagnosis = diagnose(np.random.default_rng(seed).normal(size=800), plain(800))
        outside.append(np.mean(np.abs(diagnosis.autocorrelation) > diagnosis.band))
    assert 0.035 < np.mean(outside) < 0.065


# Words


@pytest.mark.parametrize("seed", range(8))
def test_nothing_is_said_of_white_noise(seed: int) -> None:
    generator = np.random.default_rng(seed)
    diagnosis = diagnose(
        generator.normal(size=5000),
        hourly(5000, generator.normal(size=(5000, 20))),
        covered=generator.random(5000) < 0.9,
    )
    assert len(diagnosis.findings) == 1
    assert "white noise" in diagnosis.words()


def said(diagnosis: Diagnosis, *parts: str) -> bool:
    return any(all(part in finding for part in parts) for finding in diagnosis.findings)


def test_a_cycle_is_told_from_a_slow_decay() -> None:
    generator = np.random.default_rng(0)
    rows = np.arange(3000)
    noise = generator.normal(size=3000)
    daily = diagnose(noise + 0.7 * np.sin(2 * np.pi * rows / 24), hourly(3000))
    assert said(daily, "lag 24", "one day", "daily cycle")
    assert not said(daily, "weekly")
    weekly = diagnose(noise + 1.5 * ((rows // 24) % 7 >= 5), hourly(3000))
    assert said(weekly, "lag 168", "weekly cycle")
    slow = diagnose(coloured(1, 3000, 0.98), hourly(3000))
    assert not said(slow, "cycle")
    assert said(slow, "lag 1 ", "persist")
    ten_minutes = np.datetime64("2026-01-01T00:00") + 10 * np.arange(3000)
    panel = Panel.from_arrays(None, np.zeros(3000), time=ten_minutes)
    assert said(diagnose(noise + np.sin(2 * np.pi * rows / 144), panel), "lag 144", "daily cycle")


def test_each_fault_is_named() -> None:
    generator = np.random.default_rng(2)
    noise, inputs = generator.normal(size=4000), generator.normal(size=(4000, 3))
    assert said(diagnose(coloured(3, 4000, -0.4), plain(4000)), "lag 1 ", "corrects too much", "%")
    assert said(diagnose(noise - 0.5, plain(4000)), "too high", "0.5")
    late = noise + 0.3 * np.roll(inputs[:, 2], 5)
    assert said(diagnose(late, plain(4000, inputs)), "inputs", "x2 at lag 5")
    seventh = noise + 0.5 * np.roll(noise, 7)
    assert said(diagnose(seventh, plain(4000)), "lag 7 ", "stands out")
    assert said(diagnose(generator.standard_t(2.5, size=4000), plain(4000)), "Tails are heavy", "%")
    bursts = noise * np.where(np.arange(4000) // 200 % 2, 3.0, 1.0)
    assert said(diagnose(bursts, plain(4000)), "bursts")


def test_hours_are_looked_at_one_by_one() -> None:
    generator = np.random.default_rng(4)
    hour = np.arange(6000) % 24
    errors = generator.normal(size=6000) * np.where(hour == 18, 3.0, 1.0) + np.where(hour == 7, 0.8, 0.0)
    covered = generator.random(6000) < np.where(hour == 18, 0.6, 0.9)
    diagnosis = diagnose(errors, hourly(6000), covered=covered)
    assert said(diagnosis, "largest", "18:00")
    assert said(diagnosis, "lower", "7:00")
    assert said(diagnosis, "Intervals hold least", "18:00")
    hours = diagnosis.hours
    assert hours is not None and hours.coverage is not None
    for one in (0, 7, 18):
        assert hours.error[one] == pytest.approx(np.sqrt(np.mean(errors[hour == one] ** 2)))
        assert hours.bias[one] == pytest.approx(errors[hour == one].mean())
        assert hours.coverage[one] == pytest.approx(covered[hour == one].mean())
    assert diagnose(errors, plain(6000)).hours is None


def test_the_tail_index_of_a_pareto_tail_is_found() -> None:
    generator = np.random.default_rng(5)
    heavy = (1 + generator.pareto(3.0, size=20000)) * generator.choice([-1, 1], size=20000)
    assert diagnose(heavy, plain(20000)).tail_index == pytest.approx(3.0, abs=0.5)


# The record


def test_memory_is_averaged_over_spans_of_rows() -> None:
    states = np.random.default_rng(6).normal(size=(1000, 70)) * np.linspace(0.1, 2.0, 70)
    states[500:, 3] += 50
    memory = diagnose(coloured(0, 1000), plain(1000), states).memory
    assert memory is not None
    assert memory.states.shape == (200, 64)
    assert memory.states[10, 0] == pytest.approx(states[50:55, 3].mean())
    assert memory.rows[10] == 50


def test_the_record_is_plain_json() -> None:
    errors = np.where(np.arange(500) % 24 == 3, np.nan, coloured(0, 500))
    diagnosis = diagnose(errors, hourly(500, coloured(1, 500)[:, None]), coloured(2, 500)[:, None])
    copy = json.loads(json.dumps(diagnosis.as_dict(), allow_nan=False))
    assert copy["n_known"] == np.count_nonzero(~np.isnan(errors))
    assert copy["hours"]["error"][3] is None
    assert copy["inputs"][0]["name"] == "x0"
    assert copy["findings"] == list(diagnosis.findings)
    assert len(copy["memory"]["states"]) == 200


def test_a_constant_and_series_of_different_lengths_are_no_trouble() -> None:
    assert diagnose(np.zeros(100), plain(100, np.ones((100, 1)))).findings
    series = np.repeat(["a", "b", "c"], [1, 3, 96])
    diagnosis = diagnose(coloured(0, 100), Panel.from_arrays(None, np.zeros(100), series=series))
    assert np.isfinite(diagnosis.autocorrelation).all()


# Calibration


def normal_bounds(rows: int, levels: list[float], spread: float = 1.0) -> tuple[DoubleArray, DoubleArray]:
    reach = spread * norm.ppf((1 + np.array(levels)) / 2)
    return np.tile(-reach, (rows, 1)), np.tile(reach, (rows, 1))


def test_calibration_is_that_of_plain_counts() -> None:
    generator = np.random.default_rng(0)
    levels = [0.2, 0.5, 0.9]
    labels = generator.standard_t(4, size=400)
    labels[generator.random(400) < 0.1] = np.nan
    lower, upper = normal_bounds(400, levels)
    lower -= generator.random(400)[:, None] / 5
    found = calibrate(labels, lower, upper, levels)
    known = np.flatnonzero(~np.isnan(labels))
    bounds = [sorted([*lower[row], *upper[row]]) for row in range(400)]
    falls = [sum(bound < labels[row] for bound in bounds[row]) for row in known]
    edges = [0, 0.05, 0.25, 0.4, 0.6, 0.75, 0.95, 1]
    assert found.edges == pytest.approx(edges)
    for number in range(7):
        expected = (edges[number + 1] - edges[number]) * len(known)
        assert found.density[number] == pytest.approx(falls.count(number) / expected)
    for column in range(3):
        held = [lower[row, column] <= labels[row] <= upper[row, column] for row in known]
        assert found.coverage[column] == pytest.approx(np.mean(held))
    assert len(found.spans) == len(known) // 50
    first = known[: np.searchsorted(known, found.spans[1])]
    assert found.span_coverage[0] == pytest.approx(
        np.mean([lower[row, 2] <= labels[row] <= upper[row, 2] for row in first])
    )


def test_spans_of_several_series_are_spans_of_time() -> None:
    hits = np.tile(np.repeat([1.0, 0.0], 200), 3)  # each of three series loses its coverage half way
    position = np.tile(np.arange(400), 3)
    found = calibrate(np.where(hits, 0.0, 9.0), *normal_bounds(1200, [0.9]), [0.9], position=position)
    assert found.span_coverage == pytest.approx(np.repeat([1.0, 0.0], 10))
    assert found.spans[[0, 10, 19]].tolist() == [0, 200, 380]


@pytest.mark.parametrize(("spread", "word"), [(0.7, "narrow"), (1.4, "wide"), (1.0, "")])
def test_intervals_that_break_their_promise_are_named(spread: float, word: str) -> None:
    labels = np.random.default_rng(1).normal(size=4000)
    lower, upper = normal_bounds(4000, [0.5, 0.9], spread)
    diagnosis = diagnose(labels, plain(4000), calibration=calibrate(labels, lower, upper, [0.5, 0.9]))
    assert said(diagnosis, "90 %", f"too {word}") == bool(word)
    lapsed = np.where(np.arange(4000) // 200 == 7, 3.0, 1.0) * labels
    diagnosis = diagnose(lapsed, plain(4000), calibration=calibrate(lapsed, lower, upper, [0.5, 0.9]))
    assert said(diagnosis, "Around row 1400", "held only")


def test_calibration_needs_levels_and_labels() -> None:
    lower, upper = normal_bounds(100, [0.5, 0.9])
    for labels, levels in ((np.full(100, np.nan), [0.5, 0.9]), (np.zeros(100), [0.9, 0.5])):
        with pytest.raises(DataError, match="rising levels"):
            calibrate(labels, lower, upper, levels)
    with pytest.raises(DataError, match=r"0\.8 among them"):
        calibrate(np.zeros(100), lower, upper, [0.5, 0.9], watched=0.8)


# Changes


def test_changes_are_those_of_the_monitor() -> None:
    errors = np.random.default_rng(9).normal(size=2000)
    errors[800:] += 2.0
    errors[1500:] *= 3.0
    diagnosis = diagnose(errors, plain(2000))
    assert list(diagnosis.events) == detect(errors, false_alarms=0.05 / 2000)
    assert said(diagnosis, "changes were noticed", "level shift")
    one = diagnose(errors[:1400], plain(1400))
    assert said(one, "One change was noticed: level shift of +1.9")
    assert one.as_dict()["events"][0]["kind"] == "level shift"


# A fitted model


@pytest.fixture(scope="module")
def fitted() -> tuple[VARNNRegressor, Panel]:
    inputs = np.random.default_rng(7).normal(size=(400, 2))
    target = coloured(8, 400, 0.9) + inputs[:, 0]
    target[[50, 51, 300]] = np.nan
    time = np.datetime64("2026-01-01T00") + np.arange(400)
    panel = Panel.from_arrays(inputs, target, time=time)
    return VARNNRegressor(epochs=2, hidden_size=8, ensemble=1).fit(panel), panel


def test_a_fitted_model_is_diagnosed_with_its_intervals_and_memory(
    fitted: tuple[VARNNRegressor, Panel],
) -> None:
    model, panel = fitted
    diagnosis = model.diagnose(panel)
    by_hand = diagnose(model.innovations(panel), panel, model.memory(panel))
    assert diagnosis.autocorrelation == pytest.approx(by_hand.autocorrelation)
    assert diagnosis.n_known == 397
    assert diagnosis.memory is not None and np.isfinite(diagnosis.memory.states).all()
    found = model.predict(panel, interval=0.9)
    known = ~np.isnan(panel.target)
    held = ((found.lower <= panel.target) & (panel.target <= found.upper))[known]
    assert diagnosis.calibration is not None
    assert diagnosis.calibration.coverage[4] == pytest.approx(held.mean())
    assert diagnosis.hours is not None and diagnosis.hours.coverage is not None
    at_three = np.arange(400)[known] % 24 == 3
    assert diagnosis.hours.coverage[3] == pytest.approx(held[at_three].mean())
    json.dumps(diagnosis.as_dict(), allow_nan=False)
    arrays = model.diagnose(panel.inputs, panel.target)
    assert arrays.autocorrelation[:40] == pytest.approx(diagnosis.autocorrelation[:40])


def test_a_model_without_intervals_is_diagnosed_without_them(fitted: tuple[VARNNRegressor, Panel]) -> None:
    _, panel = fitted
    model = VARNNRegressor.paper("RM", hidden_size=4, epochs=1).fit(panel)
    diagnosis = model.diagnose(panel)
    assert diagnosis.calibration is None
    assert diagnosis.hours is not None and diagnosis.hours.coverage is None
    with pytest.raises(DataError, match="intervals=True"):
        diagnostic_figures.calibration(diagnosis)


def test_a_part_of_a_course_is_what_it_was_in_the_whole(fitted: tuple[VARNNRegressor, Panel]) -> None:
    model, panel = fitted
    trace = PredictionTrace.of(model.fitted_, panel)
    last = split_in_time(panel, 0.75, 0.25)[1]
    part = trace.part(last)
    assert len(part.prediction) == len(last) == 100
    assert np.array_equal(part.innovations, trace.innovations[-100:], equal_nan=True)
    assert part.covered is not None and trace.covered is not None
    assert np.array_equal(part.covered, trace.covered[-100:], equal_nan=True)
    assert np.isnan(part.covered).sum() == np.isnan(last.target).sum() == 1
    assert part.memory is not None and part.memory.shape[0] == 100
    assert diagnose_trace(part).n_rows == 100


def test_unusable_arrays_are_refused() -> None:
    with pytest.raises(DataError, match="one entry per row of the panel, 100; got 99"):
        diagnose(np.zeros(99), plain(100))
    with pytest.raises(DataError, match="memory must have one entry"):
        diagnose(np.zeros(100), plain(100), np.zeros((3, 2)))
    with pytest.raises(DataError, match="at least 50 rows"):
        diagnose(np.full(100, np.nan), plain(100))
    with pytest.raises(DataError, match="finite"):
        diagnose(np.full(100, np.inf), plain(100))
    with pytest.raises(DataError, match="two rows"):
        diagnose(np.zeros(100), Panel.from_arrays(None, np.zeros(100), series=np.arange(100)))


# Figures


def test_figures_show_what_was_measured_in_the_colour_of_the_page() -> None:
    rows = 2000
    events = [
        Event("level shift", 0, 300, 290, 1.0),
        Event("coverage lost", 0, 600, 550, -0.2),
        Event("level shift", 0, 900, 880, -1.0),
        Event("variance change", 0, 5000, 4990, 2.0),
    ]
    errors = coloured(0, rows)
    diagnosis = diagnose(errors, hourly(rows), coloured(1, rows)[:, None], covered=errors < 1.5)
    drawn = {
        "autocorrelation": diagnostic_figures.autocorrelation(diagnosis),
        "hours": diagnostic_figures.error_by_hour(diagnosis, unit="kWh"),
        "memory": diagnostic_figures.memory_map(diagnosis, events=events[:3]),
        "innovations": diagnostic_figures.marked_innovations(np.arange(rows), errors, events),
    }
    assert len(drawn["hours"].axes) == 2
    bars = [patch.get_extents().height for patch in drawn["autocorrelation"].axes[0].patches]
    bars = bars[len(diagnosis.lags) :]  # after those of the band
    assert np.corrcoef(bars, np.abs(diagnosis.autocorrelation))[0, 1] > 0.999
    legend = drawn["innovations"].axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["level shift", "coverage lost"]
    for name, figure in drawn.items():
        svg = to_svg(figure, name)
        assert "prefers-color-scheme:dark" in to_svg(figure, name, alone=True)
        assert svg.startswith("<svg ") and "currentColor" in svg and "#010203" not in svg


def test_a_map_of_the_memory_leaves_out_units_that_stand_still() -> None:
    states = np.column_stack([coloured(0, 300), np.zeros(300), np.ones(300), coloured(1, 300)])
    figure = over_time.memory(np.arange(300), states)
    assert figure.axes[0].get_ylabel() == "memory units that move\n(2 of 4)"
    assert over_time.memory(np.arange(9), np.zeros((9, 3))).axes[0].get_ylabel().endswith("(3 of 3)")


def test_figures_say_what_they_lack() -> None:
    diagnosis = diagnose(coloured(0, 200), plain(200))
    with pytest.raises(DataError, match="time"):
        diagnostic_figures.error_by_hour(diagnosis)
    with pytest.raises(DataError, match="memory"):
        diagnostic_figures.memory_map(diagnosis)
