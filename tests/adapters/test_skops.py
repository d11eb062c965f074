"""skops writes and reads every kind of model, with the types that are named, and no others."""

import pydoc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from varnn import Details, Panel, VARNNRegressor
from varnn.adapters.skops import TRUSTED

io = pytest.importorskip("skops.io", reason="skops is not here; make adapters has it")

QUICK: dict[str, Any] = {"epochs": 1, "hidden_size": 4, "ensemble": 2}
KINDS: dict[str, VARNNRegressor] = {
    "default": VARNNRegressor(**QUICK),
    "paper": VARNNRegressor.paper("RM", epochs=1, hidden_size=4),
    "fixed": VARNNRegressor(**QUICK, adapt=None, intervals=False),
    "network": VARNNRegressor(**QUICK, linear=False),
    "forecasts": VARNNRegressor(
        **QUICK, horizon=3, calendar=["day"], peers=True, details=Details(patience=2), scale="minmax"
    ),
    "boosting": VARNNRegressor(**QUICK, experts=("boosting",)),
}


@pytest.fixture(scope="module")
def panel() -> Panel:
    hours = np.datetime64("2026-01-01T00") + np.arange(240).astype("timedelta64[h]")
    generator = np.random.default_rng(0)
    return Panel.from_arrays(
        generator.normal(size=(480, 2)),
        10 + np.sin(np.arange(480) / 4) + generator.normal(size=480) / 5,
        series=["north"] * 240 + ["south"] * 240,
        time=np.concatenate([hours, hours]),
        input_names=["heat", "wind"],
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_comes_back(kind: str, panel: Panel, tmp_path: Path) -> None:
    if kind == "boosting":
        pytest.importorskip("lightgbm")
    model = KINDS[kind].fit(panel)
    io.dump(model, tmp_path / "model.skops")
    again = io.load(tmp_path / "model.skops", trusted=TRUSTED)
    assert set(io.get_untrusted_types(file=tmp_path / "model.skops")) <= set(TRUSTED)
    assert again.get_params() == model.get_params()
    assert again.fitted_.fingerprint == model.fitted_.fingerprint
    np.testing.assert_array_equal(again.predict(panel), model.predict(panel))
    live, other = again.stream(2, resume=True), model.stream(2, resume=True)
    x, then = [[0.1, 0.2], [0.3, 0.4]], "2026-03-01T00:00"
    np.testing.assert_array_equal(live.predict(x, time=then), other.predict(x, time=then))
    if kind == "forecasts":
        np.testing.assert_array_equal(again.forecast().prediction, model.forecast().prediction)


def test_what_is_not_named_is_not_loaded(panel: Panel) -> None:
    written = io.dumps(KINDS["paper"].fit(panel))
    with pytest.raises(Exception, match=r"varnn\.model\.fitted\.Fitted"):
        io.loads(written, trusted=["varnn.estimator.regressor.VARNNRegressor"])


@pytest.mark.parametrize("name", TRUSTED)
def test_every_name_is_that_of_a_type(name: str) -> None:
    found = pydoc.locate(name)
    assert isinstance(found, type) and f"{found.__module__}.{found.__qualname__}" == name
