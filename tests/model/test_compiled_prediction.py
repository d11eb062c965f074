"""Batch predictions by compiled code: those of NumPy, for panels of all kinds and however they are cut."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")

from tests.cases import random_panel
from tests.compiled import by_compiled_code, by_numpy, n_forms
from varnn import Details, Panel, VARNNRegressor
from varnn._types import FloatArray
from varnn.model import prediction
from varnn.model.compiled_adaptation import adapted_rows
from varnn.model.compiled_aggregation import aggregated_rows
from varnn.model.fitted import Fitted
from varnn.model.intervals import Interval
from varnn.model.intervals.compiled_error_scale import tracked_rows
from varnn.model.prediction import (
    predict,
    predict_chunks,
    predict_intervals,
    residual_memory,
)
from varnn.network import compiled_code
from varnn.network.compiled_carried import carried_rows

TINY: dict[str, Any] = {"hidden_size": 6, "epochs": 1, "ensemble": 2, "window": 4, "device": "cpu"}
LEVELS = np.array([0.5, 0.9])
KINDS: dict[str, dict[str, Any]] = {
    "default": {"variant": "ARM+AM"},
    "RM": {"variant": "RM"},
    "alone": {"variant": "ARM", "ensemble": 1},
    "few joined": {"variant": "RM", "most_joined": 2},
    "one factor": {"variant": "RM", "forgetting": 0.99},
    "positive": {"variant": "RM", "offset": 30.0, "positive": True},
    "no linear part": {"variant": "RM", "linear": False},
    "window": {"variant": "RM", "context": "window"},
    "tanh": {"variant": "RM", "memory_activation": "tanh"},
}


def rows_of(lengths: list[int], kind: str = "default", *, seed: int = 1) -> Panel:
    """Series with gaps in inputs and labels, glitches and a shift."""
    panel = random_panel(lengths, missing=0.1, seed=seed)
    draw = np.random.default_rng(seed)
    inputs, target = panel.inputs.copy(), panel.target + KINDS[kind].get("offset", 0.0)
    inputs[draw.random(inputs.shape) < 0.05] = np.nan
    target[draw.random(len(target)) < 0.02] += 50.0
    target[len(target) // 2 :] += 6.0
    return replace(panel, inputs=inputs, target=target)


@pytest.fixture(scope="module")
def models() -> dict[str, Fitted]:
    found = {}
    for kind, settings in KINDS.items():
        given = dict(settings)
        offset, most = given.pop("offset", 0.0), given.pop("most_joined", None)
        names = ("forgetting", "positive", "context", "memory_activation")
        details = {name: given.pop(name) for name in names if name in given}
        panel = random_panel([300, 150], seed=0)
        with pytest.MonkeyPatch.context() as patch:
            if most is not None:
                patch.setattr("varnn.fitting._learning.MOST_JOINED", most)
            model = VARNNRegressor(
                **{**TINY, **given}, details=Details(**{"memory_size": 3, "context": "series", **details})
            ).fit(replace(panel, target=panel.target + offset))
        found[kind] = model.fitted_
    return found


def both(fitted: Fitted, panel: Panel, **options: Any) -> tuple[Interval, Interval]:
    """Predict with intervals, by NumPy and by compiled code."""
    found = []
    for way in (by_numpy, by_compiled_code):
        with way():
            found.append(predict_intervals(fitted, panel, LEVELS, **options))
            np.testing.assert_array_equal(predict(fitted, panel, **options), found[-1].prediction)
    return found[0], found[1]


def close(ours: Any, theirs: Any, tolerance: float = 1e-5) -> None:
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("lengths", [[200], [1], [90, 1, 140, 33]])
@pytest.mark.parametrize("kind", KINDS)
def test_predictions_are_those_of_numpy(kind: str, lengths: list[int], models: dict[str, Fitted]) -> None:
    panel = rows_of(lengths, kind)
    if np.isnan(panel.target).all():
        panel = replace(panel, target=np.full(len(panel), 1.0))
    plain, ours = both(models[kind], panel)
    close(ours, plain)
    assert np.isfinite(ours.lower).all()


@pytest.mark.parametrize("most", [1, 7, 64])
@pytest.mark.parametrize("kind", ["default", "RM", "positive"])
def test_chunks_make_no_difference(
    kind: str, most: int, models: dict[str, Fitted], monkeypatch: pytest.MonkeyPatch
) -> None:
    panel = rows_of([90, 40, 33], kind)
    with by_compiled_code():
        whole = predict_intervals(models[kind], panel, LEVELS)
        monkeypatch.setattr(prediction, "_HIDDEN_ROWS_AT_ONCE", most)
        close(predict_intervals(models[kind], panel, LEVELS), whole)


def test_some_chunks_may_be_worth_it_and_some_not(
    models: dict[str, Fitted], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The states that one way leaves are taken up by the other."""
    panel = rows_of([90, 40, 33])
    plain, _ = both(models["default"], panel)
    monkeypatch.setattr(prediction, "_HIDDEN_ROWS_AT_ONCE", 50)
    with by_compiled_code():
        monkeypatch.setattr("varnn.network.compiled_code.is_worth_it", lambda rows: rows % 2 == 0)
        parts = [one.interval for one in predict_chunks(models["default"], panel, LEVELS)]
        close([np.concatenate(one) for one in zip(*parts, strict=True)], plain)


@pytest.mark.parametrize("kind", ["default", "RM", "few joined"])
def test_rows_that_follow_the_training_rows(kind: str, models: dict[str, Fitted]) -> None:
    """Rows looked back on teach nothing, either way."""
    panel = rows_of([60, 50], kind)
    plain, ours = both(models[kind], panel, resume=True)
    close(ours, plain)
    fresh, _ = both(models[kind], panel, resume=False)
    assert not np.allclose(fresh.prediction[:3], plain.prediction[:3], atol=1e-4)


def test_the_residual_memory_is_that_of_numpy(models: dict[str, Fitted]) -> None:
    panel, found = rows_of([90, 40]), []
    for way in (by_numpy, by_compiled_code):
        with way():
            found.append(residual_memory(models["default"], panel, 20, 110))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-4, atol=1e-4)


def in_another_form(panel: Panel, form: str) -> Panel:
    def other(array: FloatArray) -> Any:
        if form == "float32":
            return array.astype(np.float32)
        if form == "view":
            return np.repeat(array, 2, axis=0)[::2]
        if form == "turned":
            return np.asfortranarray(array)
        again = array.copy()
        again.flags.writeable = False
        return again

    starts = panel.starts.copy()
    if form == "read-only":
        starts.flags.writeable = False
    return replace(panel, inputs=other(panel.inputs), target=other(panel.target), starts=starts)


FORMS = ("float32", "view", "turned", "read-only")
FUNCTIONS = (carried_rows, adapted_rows, aggregated_rows, tracked_rows)


@pytest.mark.parametrize("form", FORMS)
def test_panels_of_all_forms_are_predicted_alike(form: str, models: dict[str, Fitted]) -> None:
    panel = rows_of([60, 20])
    plain, ours = both(models["default"], in_another_form(panel, form))
    close(ours, plain)


def test_all_panels_share_what_is_compiled(models: dict[str, Fitted]) -> None:
    """One form for each function: another would be a pause of seconds."""
    with by_compiled_code():
        for kind, model in models.items():
            for lengths in ([1], [30], [20, 3]):
                panel = replace(rows_of(lengths, kind), target=np.linspace(29, 31, sum(lengths)))
                predict_intervals(model, panel, LEVELS)
        for form in FORMS:
            predict_intervals(models["default"], in_another_form(rows_of([30, 9]), form), LEVELS)
    for function in FUNCTIONS:
        assert n_forms(function) == 1, function


def test_two_runs_give_the_same_bits(models: dict[str, Fitted], monkeypatch: pytest.MonkeyPatch) -> None:
    panel, found = rows_of([90, 40]), []
    for cores in (1, 2, 5):
        monkeypatch.setattr(compiled_code, "n_cores", lambda cores=cores: cores)
        with by_compiled_code():
            found.append(predict_intervals(models["default"], panel, LEVELS))
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


def test_digits_do_not_depend_on_the_series_beside(
    models: dict[str, Fitted], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A panel in parts gives what the whole gives, but for how BLAS rounds, as long as all go one way."""
    panel = rows_of([900, 700, 33, 500])
    assert len(panel) >= compiled_code.ROWS_WORTH_IT
    monkeypatch.setattr(prediction, "_HIDDEN_ROWS_AT_ONCE", 1000)  # chunks that alone are not worth it
    whole = predict_intervals(models["default"], panel, LEVELS)
    for first, last in ((0, 2), (2, 3), (3, 4)):
        rows = slice(int(panel.starts[first]), int(panel.starts[last]))
        part = panel.between(rows.start, rows.stop)
        with compiled_code.worth_it_for(len(panel)):
            found = predict_intervals(models["default"], part, LEVELS)
        for values, expected in zip(found, whole, strict=True):
            np.testing.assert_allclose(values, expected[rows], rtol=1e-11, atol=1e-11)
