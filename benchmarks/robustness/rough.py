"""Streams that are hard on arithmetic -> whether numbers are finite, adapting pays, and intervals hold.

Each is fitted on its first 80 % with default settings (one member), with and without a readout that adapts,
and scored on the rest. What happens in the last fifth is never in training: that is the point.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.record import Measured, Row, significant
from varnn._types import DoubleArray
from varnn.data.panel import Panel
from varnn.estimator.details import Details
from varnn.estimator.regressor import VARNNRegressor
from varnn.evaluation.metrics import coverage, mse, rmse

Stream = Callable[[np.random.Generator, DoubleArray], DoubleArray]  # inputs (N, 2) may be changed in place

ROWS = 2000
LEVEL = 0.9


def _ar(generator: np.random.Generator, inputs: DoubleArray, noise: DoubleArray | None = None) -> DoubleArray:
    """Make an AR(1) process that follows the first input."""
    news = inputs[:, 0] + 0.5 * (generator.normal(size=len(inputs)) if noise is None else noise)
    labels = np.zeros(len(news))
    for row in range(1, len(news)):
        labels[row] = 0.7 * labels[row - 1] + news[row]
    return labels


def _rows(inputs: DoubleArray) -> DoubleArray:
    return np.arange(len(inputs)) / len(inputs)


def _missing(values: DoubleArray, generator: np.random.Generator, length: int) -> DoubleArray:
    """Take out runs of so many rows, a fifth of all."""
    for first in generator.integers(0, len(values), len(values) // (5 * length)):
        values[first : first + length] = np.nan
    return values


def _missing_inputs(generator: np.random.Generator, inputs: DoubleArray) -> DoubleArray:
    labels = _ar(generator, inputs)
    _missing(inputs, generator, 5)
    return labels


def _collinear(generator: np.random.Generator, inputs: DoubleArray) -> DoubleArray:
    inputs[:, 1] = 2 * inputs[:, 0] + 1
    return _ar(generator, inputs)


def _constant_input(generator: np.random.Generator, inputs: DoubleArray) -> DoubleArray:
    inputs[:, 1] = 7.0
    return _ar(generator, inputs)


def _trending_input(generator: np.random.Generator, inputs: DoubleArray) -> DoubleArray:
    inputs[:, 1] = 100 * _rows(inputs)
    return _ar(generator, inputs) + inputs[:, 1]


STREAMS: dict[str, Stream] = {
    "random walk": lambda g, x: np.cumsum(g.normal(size=len(x))),
    "constant": lambda g, x: np.full(len(x), 3.0),
    "zeros, then a signal": lambda g, x: np.where(_rows(x) < 0.8, 0.0, _ar(g, x)),
    "alternating signs": lambda g, x: (-1.0) ** np.arange(len(x)) * (2 + 0.1 * g.normal(size=len(x))),
    "scale 1e-12": lambda g, x: 1e-12 * _ar(g, x),
    "scale 1e12": lambda g, x: 1e12 * _ar(g, x),
    "ramp": lambda g, x: 100 * _rows(x) + g.normal(size=len(x)),
    "steps every 250 rows": lambda g, x: 10 * np.floor(8 * _rows(x)) + g.normal(size=len(x)),
    "heavy tails, t2": lambda g, x: _ar(g, x, g.standard_t(2, size=len(x))),
    "Cauchy noise": lambda g, x: _ar(g, x, g.standard_cauchy(size=len(x))),
    "spikes every 100 rows": lambda g, x: _ar(g, x) + 50.0 * (np.arange(len(x)) % 100 == 50),
    "regime switches": lambda g, x: _ar(g, x) * np.where(np.arange(len(x)) // 150 % 2, 1, -2),
    "dying variance": lambda g, x: _ar(g, x) * 10 ** (-6 * _rows(x)),
    "exploding variance": lambda g, x: _ar(g, x) * 10 ** (6 * _rows(x)),
    "labels missing in runs of 50": lambda g, x: _missing(_ar(g, x), g, 50),
    "inputs missing": _missing_inputs,
    "integer counts": lambda g, x: g.poisson(np.exp(1 + 0.5 * x[:, 0])).astype(np.float64),
    "sawtooth": lambda g, x: np.arange(len(x)) % 48 + 0.5 * g.normal(size=len(x)),
    "season of 24 rows": lambda g, x: 5 * np.sin(np.arange(len(x)) * np.pi / 12) + _ar(g, x),
    "flat, then a jump": lambda g, x: np.where(_rows(x) < 0.85, 0.0, 100.0) + 0.01 * g.normal(size=len(x)),
    "drift": lambda g, x: _ar(g, x) + np.cumsum(0.2 * g.normal(size=len(x))),
    "trend that breaks": lambda g, x: 50 * np.abs(_rows(x) - 0.85) + _ar(g, x),
    "each label twice": lambda g, x: np.repeat(_ar(g, x), 2)[: len(x)],
    "collinear inputs": _collinear,
    "a constant input": _constant_input,
    "an input that leaves its range": _trending_input,
    "binary target": lambda g, x: (x[:, 0] + g.normal(size=len(x)) > 0).astype(np.float64),
}


def measure(names: tuple[str, ...] = tuple(STREAMS), *, rows: int = ROWS) -> Measured:
    """Score every stream."""
    return Measured(
        name="rough streams",
        title="Streams that are hard on arithmetic",
        threads=1,
        rows=[_score(name, rows) for name in names],
    )


def _score(name: str, rows: int) -> Row:
    generator = np.random.default_rng(list(STREAMS).index(name))
    inputs = generator.normal(size=(rows, 2))
    labels = STREAMS[name](generator, inputs)
    cut = rows * 4 // 5
    panel = Panel.from_arrays(inputs, labels)
    truth, predictions = labels[cut:], {}
    for adapt in ("constant-gain", None):
        model = VARNNRegressor(random_state=0, ensemble=1, adapt=adapt).fit(panel.between(0, cut))
        found: Any = model.predict(panel.between(cut, rows), interval=LEVEL)
        predictions[adapt] = found.prediction
        if adapt is not None:
            numbers = np.concatenate([found.prediction, found.lower, found.upper])
            bounds = found.lower[1:], found.upper[1:]
    # Without the first row, as persistence has no label before it.
    adapting, plain = (rmse(truth[1:], predictions[adapt][1:]) for adapt in ("constant-gain", None))
    return {
        "stream": name,
        "all finite": "yes" if np.isfinite(numbers).all() else "no",
        "RMSE adapting / not": significant(adapting / plain) if plain else 1.0,
        "RMSE / persistence": _over(adapting, rmse(truth[1:], _last_known(truth)[1:])),
        "coverage of 90 % intervals": significant(coverage(truth[1:], *bounds)),
    }


def _over(error: float, other: float) -> float | None:
    return significant(error / other) if other else None


def _last_known(labels: DoubleArray) -> DoubleArray:
    """Last label before each row; that of the first is its own.

    Examples
    --------
    >>> _last_known(np.array([1.0, np.nan, 3.0])).tolist()
    [1.0, 1.0, 1.0]
    """
    rows = np.maximum.accumulate(np.where(np.isnan(labels), 0, np.arange(len(labels))))
    return np.asarray(labels[np.concatenate([[0], rows[:-1]])])


def back_again(*, rows: int = 3000, members: int = 4, seeds: int = 3) -> Measured:
    """Change the law of a stream, and change it back: what adapting gains while it lasts, and costs after."""
    found: list[Row] = []
    for forgetting in ("auto", 0.99):
        ratios = []
        for seed in range(seeds):
            panel = _with_another_law(rows, seed)
            errors = []
            for adapt in ("constant-gain", None):
                model = VARNNRegressor(
                    random_state=seed, ensemble=members, adapt=adapt, details=Details(forgetting=forgetting)
                ).fit(panel.between(0, rows))
                test = panel.between(rows, len(panel))
                both = test.target, model.predict(test)
                errors.append([mse(*(one[slice(*part)] for one in both)) for part in _STRETCHES.values()])
            ratios.append(np.divide(errors[0], errors[1]))
        for name, ratio in zip(_STRETCHES, np.exp(np.log(ratios).mean(axis=0)).tolist(), strict=True):
            found.append(
                {"forgetting": str(forgetting), "rows": name, "MSE adapting / not": significant(ratio)}
            )
    return Measured(name="back again", title="Another law, and back", threads=1, rows=found)


def _with_another_law(rows: int, seed: int) -> Panel:
    """Make training rows, and 3,000 more, of which the second thousand obeys another law."""
    generator = np.random.default_rng(seed)
    inputs = generator.normal(size=(rows + 3000, 2))
    noise = 0.5 * generator.normal(size=len(inputs))
    first, second = inputs.T
    labels = first + first * second
    other = slice(rows + 1000, rows + 2000)
    labels[other] = -(first + second)[other]
    return Panel.from_arrays(inputs, labels + noise)


_STRETCHES = {
    "as trained": (0, 1000),
    "another law": (1000, 2000),
    "as trained again, 1 to 100": (2000, 2100),
    "as trained again, 101 to 500": (2100, 2500),
    "as trained again, 501 to 1,000": (2500, 3000),
}
