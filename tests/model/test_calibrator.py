"""One contract for intervals: any method that keeps it is used one step and several steps ahead alike."""

from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pytest

from tests.cases import random_panel
from varnn import Details, Stream, VARNNRegressor
from varnn._types import DoubleArray, IntArray
from varnn.data.preparation import split_in_time
from varnn.errors import ConfigError, DataError, ModelFileError
from varnn.fitting import fit
from varnn.model.fitted import Fitted
from varnn.model.forecast import Forecaster
from varnn.model.intervals import (
    TAUS,
    CalibrationRows,
    Calibrator,
    ErrorScale,
    HorizonBands,
    Tracker,
    follow,
)
from varnn.model.intervals.methods import METHODS
from varnn.model.prediction import predict_intervals
from varnn.persistence import model_file
from varnn.step.intervals import level_weights

HORIZON, LEVELS = 3, np.array([0.5, 0.9])


def reach(quantiles: DoubleArray, levels: DoubleArray) -> tuple[DoubleArray, DoubleArray]:
    """Read how far intervals reach off quantiles of errors (..., T): (..., L) each."""
    found = quantiles @ level_weights(tuple(levels.tolist()))
    below, above = np.split(found, 2, axis=-1)
    return np.minimum(below, 0), np.maximum(above, 0)


@dataclass(frozen=True, eq=False, kw_only=True)
class SplitConformal(Calibrator):
    """Split conformal prediction: constant quantiles of validation errors.

    References
    ----------
    .. [1] V. Vovk, A. Gammerman and G. Shafer, "Algorithmic Learning in a Random World", Springer, 2005.
    """

    quantiles: DoubleArray  # (T,), or (H, T)

    @classmethod
    def fit(cls, validation: CalibrationRows, training: CalibrationRows | None = None) -> Self:
        return cls(quantiles=np.nanquantile(validation.errors, TAUS, axis=0).T)

    def tracker(self, n_series: int, levels: DoubleArray | None = None) -> Tracker:
        return Unmoved(np.broadcast_to(self.quantiles, (n_series, *self.quantiles.shape)))


@dataclass(frozen=True, eq=False, kw_only=True)
class Postponed(SplitConformal):
    """One whose annotations are texts, as of a module with ``from __future__ import annotations``."""

    factor: "float" = 1.0


def test_annotations_may_be_texts() -> None:
    saved = Postponed(quantiles=np.zeros(3), factor=2.0).arrays()
    again = Postponed.from_arrays(saved)
    assert type(again.factor) is float
    with pytest.raises(DataError, match=r"\['factor'\] must be one number each"):
        Postponed.from_arrays({**saved, "factor": np.ones(2)})


class Unmoved(Tracker):
    def __init__(self, quantiles: DoubleArray) -> None:
        self.quantiles = quantiles

    def expect(self, features: npt.NDArray[Any]) -> None: ...

    def bounds(self, levels: DoubleArray) -> tuple[DoubleArray, DoubleArray]:
        return reach(self.quantiles, levels)

    def observe(self, errors: DoubleArray) -> None: ...

    def state(self) -> DoubleArray:
        return np.empty((len(self.quantiles), 0))

    def restore(self, state: DoubleArray) -> None: ...


PANEL = random_panel([400, 300], missing=0.1, seed=1)
TRAINING, VALIDATION = split_in_time(PANEL, 0.7, 0.3)


@pytest.fixture(scope="module")
def models() -> tuple[Fitted, Forecaster]:
    settings = VARNNRegressor(
        epochs=2, hidden_size=6, ensemble=2, window=5, intervals="split", details=Details(memory_size=4)
    ).settings()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(METHODS, "split", SplitConformal)
        fitted, forecaster = fit(settings, TRAINING, VALIDATION, rows=PANEL, refit=True, horizon=HORIZON)
    assert forecaster is not None
    return fitted, forecaster


def test_a_new_method_is_used_in_batch_stream_and_snapshot(models: tuple[Fitted, Forecaster]) -> None:
    fitted, _ = models
    method = fitted.calibrator
    assert isinstance(method, SplitConformal)
    batch = predict_intervals(fitted, PANEL, LEVELS)
    below, above = reach(method.quantiles, LEVELS)
    np.testing.assert_allclose(batch.lower - batch.prediction[:, None], np.tile(below, (700, 1)), atol=1e-9)
    covered = (PANEL.target[:, None] >= batch.lower) & (PANEL.target[:, None] <= batch.upper)
    np.testing.assert_allclose(covered[~np.isnan(PANEL.target)].mean(axis=0), LEVELS, atol=0.1)
    live = Stream(fitted)
    for row in range(100):
        found = live.predict(PANEL.inputs[row], interval=[0.5, 0.9])
        np.testing.assert_allclose(found.upper - found.prediction, above, rtol=1e-9)
        np.testing.assert_array_equal(found.upper, batch.upper[row])
        if row == 50:
            live = Stream.restore(fitted, live.snapshot())
        live.observe(PANEL.target[row])
    other = replace(fitted, calibrator=SplitConformal(quantiles=2 * method.quantiles))
    with pytest.raises(ModelFileError, match="belongs to another"):
        Stream.restore(other, live.snapshot())


def test_a_new_method_makes_bands_of_forecasts(models: tuple[Fitted, Forecaster]) -> None:
    fitted, forecaster = models
    method = forecaster.calibrator
    assert isinstance(method, SplitConformal)
    below, above = reach(method.quantiles, LEVELS)  # (H, L)
    predictions, lower, upper = forecaster.historical_intervals(PANEL, LEVELS)
    np.testing.assert_allclose(lower - predictions[:, :, None], np.tile(below, (700, 1, 1)), atol=1e-9)
    live = Stream(fitted, 2, forecaster)
    for row in range(100):
        rows = PANEL.starts[:-1] + row
        live.predict(PANEL.inputs[rows])
        live.observe(PANEL.target[rows])
    found = live.forecast(interval=[0.5, 0.9])
    assert found.upper is not None
    np.testing.assert_allclose(found.upper - found.prediction[:, :, None], np.tile(above, (2, 1, 1)))
    np.testing.assert_allclose(found.upper, upper[PANEL.starts[:-1] + 100], atol=1e-4)


def test_a_new_method_is_saved_once_it_has_a_name(
    models: tuple[Fitted, Forecaster], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted, forecaster = models
    path = tmp_path / "m.varnn"
    with pytest.raises(ConfigError, match=r"these are of SplitConformal\. Add it to METHODS in"):
        model_file.write(path, fitted, {}, forecaster)
    monkeypatch.setitem(METHODS, "split conformal", SplitConformal)
    model_file.write(path, fitted, {}, forecaster)
    again, _, ahead_again = model_file.read(path)
    assert ahead_again is not None and again.fingerprint == fitted.fingerprint
    np.testing.assert_array_equal(
        predict_intervals(again, PANEL, LEVELS).upper, predict_intervals(fitted, PANEL, LEVELS).upper
    )
    for one, other in zip(
        ahead_again.historical_intervals(PANEL, LEVELS),
        forecaster.historical_intervals(PANEL, LEVELS),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)
    _, header = model_file.from_bytes(path.read_bytes(), "it")
    assert (header["interval_method"], header["forecaster"]["band_method"]) == ("split conformal",) * 2
    monkeypatch.delitem(METHODS, "split conformal")
    with pytest.raises(ModelFileError, match="'interval_method' in its header must be an interval method"):
        model_file.read(path)


LIES: dict[str, tuple[str, Any, str]] = {
    "no array": ("interval_method.quantiles", None, r"\['quantiles'\] are missing"),
    "no number": ("interval_method.quantiles", np.full(len(TAUS), np.nan), "holds numbers that are not"),
    "too few": ("interval_method.quantiles", np.zeros(3), "its intervals are not those of this model"),
    "bands of other steps": (
        "forecaster.band_method.quantiles",
        np.zeros((HORIZON + 1, len(TAUS))),
        "its intervals are not those of this model",
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_file_that_lies_about_its_intervals_is_refused(
    lie: str, models: tuple[Fitted, Forecaster], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(METHODS, "split conformal", SplitConformal)
    path = tmp_path / "m.varnn"
    model_file.write(path, models[0], {}, models[1])
    tensors, header = model_file.from_bytes(path.read_bytes(), "it")
    name, array, words = LIES[lie]
    tensors = {one: tensors[one] for one in tensors if one != name} | ({} if array is None else {name: array})
    path.write_bytes(model_file.to_bytes(tensors, header))
    with pytest.raises(ModelFileError, match=words):
        model_file.read(path)


def rows_of(method: str, starts: IntArray) -> tuple[Calibrator, CalibrationRows]:
    """Make a calibrator, and rows to run it over: series of many lengths, labels that are missing."""
    generator, rows = np.random.default_rng(1), int(starts[-1])
    if method == "error scale":
        hidden = np.maximum(generator.normal(size=(rows, 3)), 0).astype(np.float32)
        errors = generator.standard_t(3, size=rows) * (1 + hidden[:, 0])
        errors[generator.random(rows) < 0.2] = np.nan
        errors[300:340] = np.nan
        seen = CalibrationRows(hidden, errors, starts)
        return ErrorScale.fit(seen, seen), seen
    features = generator.lognormal(size=(rows, 1))
    errors = generator.normal(size=(rows, 4)) * features * [1, 2, 2, 3]
    calibrator = HorizonBands.fit(CalibrationRows(features, errors, starts))
    errors[200:] *= 3
    errors[generator.random((rows, 4)) < 0.2] = np.nan
    errors[generator.random(rows) < 0.01] = 0
    return calibrator, CalibrationRows(features, errors, starts)


STARTS = np.array([0, 2, 11, 11, 240, 500])


@pytest.mark.parametrize("levels", [[0.5, 0.9], [0.9, 0.33]], ids=str)
def test_bands_of_rows_together_are_those_of_rows_one_by_one(levels: list[float]) -> None:
    """The generic way over a panel, row after row, is the oracle of one that takes many at once."""
    calibrator, seen = rows_of("horizon bands", STARTS)
    asked = np.array(levels)
    together, oracle = calibrator.tracker(5, asked), calibrator.tracker(5, asked)
    assert type(together).follow is not Tracker.follow
    found, expected = together.follow(*seen, asked), Tracker.follow(oracle, *seen, asked)
    np.testing.assert_allclose(np.stack(found), np.stack(expected), rtol=1e-9)
    np.testing.assert_allclose(together.state(), oracle.state(), rtol=1e-9)
    np.testing.assert_array_equal(np.stack(follow(calibrator, *seen, asked)), np.stack(found))


@pytest.mark.parametrize("method", ["error scale", "horizon bands"])
def test_a_tracker_goes_on_from_where_it_was(method: str) -> None:
    """Over a second panel, and row after row from a state that was carried elsewhere."""
    calibrator, seen = rows_of(method, STARTS)
    together, oracle = calibrator.tracker(5, LEVELS), calibrator.tracker(5, LEVELS)
    for _ in range(2):
        found, expected = together.follow(*seen, LEVELS), Tracker.follow(oracle, *seen, LEVELS)
        np.testing.assert_allclose(np.stack(found), np.stack(expected), rtol=1e-9)
    elsewhere = calibrator.tracker(5, LEVELS)
    elsewhere.restore(together.state())
    for row in range(10):
        answers = []
        for one in (together, elsewhere, oracle):
            one.expect(seen.features[row : row + 5])
            answers.append(np.stack(one.bounds(LEVELS)))
            one.observe(seen.errors[row : row + 5])
        np.testing.assert_array_equal(answers[0], answers[1])
        np.testing.assert_allclose(answers[0], answers[2], rtol=1e-9)


@pytest.mark.parametrize("method", ["error scale", "horizon bands"])
def test_one_series_does_not_see_the_others(method: str) -> None:
    calibrator, seen = rows_of(method, STARTS)
    whole = np.stack(follow(calibrator, *seen, LEVELS))
    for begin, end in pairwise(STARTS):
        rows = slice(begin, end)
        alone = follow(calibrator, seen.features[rows], seen.errors[rows], np.array([0, end - begin]), LEVELS)
        np.testing.assert_allclose(np.stack(alone), whole[:, rows], rtol=1e-12)


@pytest.mark.parametrize("method", ["error scale", "horizon bands"])
def test_a_state_that_cannot_be_is_refused(method: str) -> None:
    calibrator, _ = rows_of(method, STARTS)
    tracker = calibrator.tracker(2, LEVELS)
    for wrong in (-tracker.state(), tracker.state()[:, :-1], tracker.state()[:1]):
        with pytest.raises(DataError, match="it does not"):
            tracker.restore(wrong)


def test_each_method_says_which_errors_it_learns_from() -> None:
    one, several = (rows_of(name, STARTS)[1] for name in ("error scale", "horizon bands"))
    with pytest.raises(ConfigError, match="For forecasts use HorizonBands"):
        ErrorScale.fit(several)
    with pytest.raises(ConfigError, match="For one step use ErrorScale"):
        HorizonBands.fit(one)
