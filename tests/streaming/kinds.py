"""Small models of all kinds that streams are compared on, and rows for them."""

from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.compiled import by_compiled_code, by_numpy
from varnn import Details, Panel, Stream, VARNNRegressor
from varnn.fitting import _learning
from varnn.model.fitted import Fitted
from varnn.step.layout import CARRIED
from varnn.step.loops import run

TINY: dict[str, Any] = {"hidden_size": 6, "epochs": 1, "ensemble": 2, "window": 4, "device": "cpu"}
FIRST = np.datetime64("2026-01-05T00:00:00.000000")
LEVELS = [0.5, 0.8, 0.95]


class Rows(NamedTuple):
    """T rows of n series in step, with D inputs."""

    x: Any  # (T, n, D)
    y: Any  # (T, n)
    times: Any  # (T,), or None

    def of(self, series: int) -> "Rows":
        return Rows(self.x[:, [series]], self.y[:, [series]], self.times)


def rows_of(
    count: int,
    n_series: int = 1,
    *,
    n_inputs: int = 2,
    offset: float = 0.0,
    timed: bool = False,
    trouble: bool = False,
    profile: bool = False,
    seed: int = 0,
) -> Rows:
    """Draw series with a daily season, gaps, and in trouble glitches, shifts and wild inputs."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(count, n_series, n_inputs))
    season = 2 * np.sin(2 * np.pi * np.arange(count) / 24)[:, None]
    if profile:  # of a day, which no few lags tell
        season = np.resize(5 * np.random.default_rng(9).normal(size=48), count)[:, None]
    y = offset + season + np.cumsum(0.2 * draw.normal(size=(count, n_series)), axis=0)
    y = y + (x[:, :, 0] if n_inputs else 0) + 0.1 * draw.normal(size=y.shape)
    if trouble:
        y[draw.random(y.shape) < 0.1] = np.nan
        wild = draw.random(y.shape) < 0.03
        y[wild] += draw.choice([20.0, -200.0, 1e6], size=wild.sum())
        y[count // 2 :] += 15.0
        y[3 * count // 4 :] -= 40.0
        x[draw.random(x.shape) < 0.01] *= 1e5
    step = np.timedelta64(30 if profile else 60, "m")
    return Rows(x, y, FIRST + np.arange(count) * step if timed else None)


KINDS: dict[str, dict[str, Any]] = {
    "default": {},
    "RM": {"variant": "RM"},
    "ARM": {"variant": "ARM"},
    "RM+AM": {"variant": "RM+AM"},
    "alone": {"ensemble": 1},
    "no intervals": {"intervals": False},
    "one factor": {"forgetting": 0.99},
    "zero": {"fill": "zero"},
    "refused": {"fill": "none"},
    "minmax": {"scale": "minmax"},
    "calendar": {"timed": True, "calendar": ("day", "week")},
    "positive": {"offset": 9.0, "positive": True},
    "no inputs": {"n_inputs": 0, "variant": "RM"},
    "seasonal": {"timed": True, "profile": True},
    "few joined": {"most_joined": 2},
    "wide": {"hidden_size": 19, "memory_size": 5},
    "few rows": {"rows": 60},
    "free": {"state_limit": 1e30},
    "unfiltered": {"unfiltered": True},
    "window": {"context": "window"},
    "tanh": {"memory_activation": "tanh"},
    "scalar": {"variant": "RM", "residual": "scalar"},
    "none": {"variant": "RM+AM", "residual": "none"},
    "trees": {"experts": ["boosting"]},
    "no linear part": {"linear": False},
    "not learning": {"adapt": None},
}
_DETAILS = ("forgetting", "positive", "memory_size", "context", "memory_activation", "residual")


@cache
def fitted(kind: str) -> Fitted:
    """Fit a model of some kind."""
    if kind == "trees":
        pytest.importorskip("lightgbm")
    given = dict(KINDS[kind])
    details: dict[str, Any] = {name: given.pop(name) for name in _DETAILS if name in given}
    drawn = {name: given.pop(name) for name in ("timed", "offset", "n_inputs", "profile") if name in given}
    count, most = given.pop("rows", 500), given.pop("most_joined", None)
    limit, unfiltered = given.pop("state_limit", None), given.pop("unfiltered", False)
    rows = rows_of(count, **drawn)
    panel = Panel.from_arrays(rows.x[:, 0] if rows.x.shape[2] else None, rows.y[:, 0], time=rows.times)
    with pytest.MonkeyPatch.context() as patch:
        if most is not None:
            patch.setattr(_learning, "MOST_JOINED", most)
        details = {"memory_size": 3, "context": "series", **details}
        model = VARNNRegressor(**{**TINY, **given}, details=Details(**details)).fit(panel).fitted_
    if limit is not None:
        model = replace(model, state_limit=limit)
    if unfiltered:
        model = replace(model, pipeline=replace(model.pipeline, label_filter=None))
    return model


def later(kind: str, count: int, n_series: int = 1, *, trouble: bool = True, seed: int = 1) -> Rows:
    """Rows for a model of some kind."""
    given = KINDS[kind]
    drawn = {name: given[name] for name in ("timed", "offset", "n_inputs", "profile") if name in given}
    rows = rows_of(count, n_series, trouble=trouble, seed=seed, **drawn)
    if rows.x.size and fitted(kind).pipeline.fill in ("forward", "zero"):
        rows.x[np.random.default_rng(seed + 1).random(rows.x.shape) < 0.1] = np.nan
    return rows


def streams(model: Fitted, n_series: int | None, **options: Any) -> tuple[Stream, Stream]:
    """A stream in plain code, and one in compiled code."""
    pytest.importorskip("numba")
    with by_numpy():
        plain = Stream(model, n_series, **options)
    with by_compiled_code():
        ours = Stream(model, n_series, **options)
    assert plain._step._run is run and ours._step._run is not run
    return plain, ours


def step(live: Stream, rows: Rows, row: int, interval: Any = None) -> list[Any]:
    """Predict a row and observe its label; give all there is to be seen."""
    x, y = rows.x[row], rows.y[row]
    if live.n_series is None:
        x, y = x[0], y[0]
    found = live.predict(x, time=None if rows.times is None else rows.times[row], interval=interval)
    return [*(found if interval is not None else [found]), live.observe(y)]


def close(ours: Any, theirs: Any, tolerance: float = 1e-5) -> None:
    for one, other in zip(ours, theirs, strict=True):
        assert np.shape(one) == np.shape(other)
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def alike(one: Stream, other: Stream) -> None:
    """Compare all that two streams carry, field by field."""
    for ours, theirs in zip(one._step.blocks, other._step.blocks, strict=True):
        for name in CARRIED:
            found, expected = getattr(ours.state, name), getattr(theirs.state, name)
            scale = np.abs(expected).max(initial=1.0, where=np.isfinite(expected))
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6 * scale, err_msg=name)
