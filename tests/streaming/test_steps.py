"""Which models are done in compiled code, and that others are right without."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")

from tests.compiled import by_compiled_code
from tests.streaming.kinds import KINDS, TINY, fitted, rows_of
from varnn import Details, Panel, Stream, VARNNRegressor
from varnn.model.intervals.error_scale import ErrorScale
from varnn.streaming._compiled_step import handles
from varnn.streaming._numpy_step import NumpyStep


@pytest.fixture(scope="module")
def panel() -> Panel:
    rows = rows_of(400)
    return Panel.from_arrays(rows.x[:, 0], rows.y[:, 0])


OTHERS: dict[str, dict[str, Any]] = {
    "window": {"context": "window"},
    "tanh": {"memory_activation": "tanh"},
    "scalar": {"variant": "RM", "residual": "scalar"},
    "none": {"variant": "RM+AM", "residual": "none"},
    "trees": {"experts": ["boosting"]},
    "no linear part": {"linear": False},
    "not learning": {"adapt": None},
}


@pytest.mark.parametrize("other", OTHERS)
def test_other_models_are_left_to_numpy(other: str, panel: Panel) -> None:
    given = dict(OTHERS[other])
    details: dict[str, Any] = {
        name: given.pop(name) for name in ("context", "memory_activation", "residual") if name in given
    }
    details = {"context": "series", "memory_size": 3, **details}
    try:
        model = VARNNRegressor(**{**TINY, **given}, details=Details(**details)).fit(panel)
    except ImportError:
        pytest.skip("needs an extra that is not installed")
    assert not handles(model.fitted_)
    with by_compiled_code():
        live = Stream(model)
        assert type(live._step) is NumpyStep
        found = []
        for x, label in zip(panel.inputs[:60], panel.target[:60], strict=True):
            found.append(live.predict(x))
            live.observe(label)
        np.testing.assert_allclose(found, model.predict(panel)[:60], rtol=1e-4, atol=1e-4)


def test_series_that_see_each_other_are_left_to_numpy() -> None:
    rows = rows_of(200, 3)
    panel = Panel.from_arrays(
        rows.x.swapaxes(0, 1).reshape(-1, 2), rows.y.T.ravel(), series=np.repeat(["a", "b", "c"], 200)
    )
    model = VARNNRegressor(**TINY, peers=True, details=Details(context="series", memory_size=3)).fit(panel)
    assert model.fitted_.pipeline.peers and not handles(model.fitted_)
    with by_compiled_code():
        assert type(Stream(model, 3)._step) is NumpyStep


class OtherScale(ErrorScale):
    """A method of one's own that began as the error scale."""


def test_what_is_handled_is_what_the_default_is() -> None:
    for kind in KINDS:
        assert handles(fitted(kind))
    model = fitted("default")
    assert not handles(replace(model, context="window"))
    assert not handles(replace(model, experts=None))
    learnt: Any = model.calibrator
    scale = OtherScale(**{one.name: getattr(learnt, one.name) for one in fields(learnt)})
    assert not handles(replace(model, calibrator=scale))
