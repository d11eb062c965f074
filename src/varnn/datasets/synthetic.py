"""Streams made here, each with one kind of trouble and a known best one-step predictor.

Every stream is y_t = f(x_t) + something the inputs do not show. ``best`` is the conditional mean of
y_t given x_t and all labels before t for someone who knows the process (its parameters, not its
hidden states, unless said): no model can have a smaller expected squared error, so "copes with
drift" becomes a ratio that can be measured.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from varnn._types import DoubleArray, IntArray
from varnn.data.panel import Panel
from varnn.errors import ConfigError, check_choice

INPUT_NAMES = ("demand", "temperature", "pressure", "phase_sin", "phase_cos")


@dataclass(frozen=True, eq=False)
class Synthetic:
    """A made stream.

    Parameters
    ----------
    panel : Panel
        Its rows.
    best : array of shape (N,)
        Best possible one-step prediction of each row.
    events : dict from str to list of int
        Rows at which something happens, by name; for plots.
    """

    panel: Panel
    best: DoubleArray
    events: dict[str, list[int]]


def make(kind: str = "mixed", *, rows: int = 6000, strength: float = 1.0, seed: int = 0) -> Synthetic:
    """Make a stream with one kind of trouble, and its best possible predictions.

    Parameters
    ----------
    kind : str, default "mixed"
        One of :data:`KINDS`: ``level-shift``, ``drift``, ``regimes``, ``volatility``,
        ``sensor-bias``, ``heavy-tails``, ``hpc-write-time``, or ``mixed`` (drift, regime switches and
        volatility bursts together; its best predictor also knows the regime).
    rows : int, default 6000
        Length.
    strength : float, default 1.0
        How strong the trouble is; 0 leaves a plain regression with noise (or an AR(1) error).
    seed : int, default 0
        Where the numbers are drawn from.

    Returns
    -------
    Synthetic
        The rows, the best one-step predictions, and where something happens.

    References
    ----------
    R. E. Kalman, "A new approach to linear filtering and prediction problems", Journal of Basic Engineering
    82 (1960), 35-45: the best predictor under drift and sensor bias.

    J. D. Hamilton, "A new approach to the economic analysis of nonstationary time series and the business
    cycle", Econometrica 57 (1989), 357-384: that under regimes.

    R. P. Adams and D. J. C. MacKay, "Bayesian online changepoint detection", arXiv:0710.3742 (2007): that
    under level shifts.

    Examples
    --------
    >>> stream = make("drift", rows=500, seed=1)
    >>> stream.panel.n_inputs, len(stream.best)
    (5, 500)
    >>> errors = stream.panel.target - stream.best
    >>> bool(abs(errors.mean()) < 0.05)
    True
    """
    check_choice("kind", kind, KINDS)
    if rows < 2 or strength < 0:
        raise ConfigError(f"rows must be at least 2 and strength at least 0; got {rows} and {strength}.")
    generator = np.random.default_rng(seed)
    inputs = _inputs(rows, generator)
    target, best, events, inputs = _MAKERS[kind](inputs, strength, generator)
    panel = Panel.from_arrays(
        inputs, target, time=np.arange(rows), input_names=INPUT_NAMES, target_name="load"
    )
    about = replace(panel, name=f"synthetic ({kind})", licence="BSD-3-Clause", citation="made by varnn")
    return Synthetic(about, best, events)


def panel(kind: str = "mixed", *, rows: int = 6000, strength: float = 1.0, seed: int = 0) -> Panel:
    """Rows only of a stream; the arguments are those of :func:`make`.

    Examples
    --------
    >>> len(panel(rows=100))
    100
    """
    return make(kind, rows=rows, strength=strength, seed=seed).panel


Made = tuple[
    DoubleArray, DoubleArray, dict[str, list[int]], DoubleArray
]  # target, best, events, inputs as seen

_NOISE = 0.3


def _inputs(rows: int, generator: np.random.Generator) -> DoubleArray:
    phase = 2 * np.pi * np.arange(rows) / 144  # a day of ten-minute rows
    wandering = np.column_stack([_ar(rows, 0.9, generator) for _ in range(3)])
    wandering[:, 1] += np.sin(phase)
    return np.column_stack([wandering, np.sin(phase), np.cos(phase)])


def _signal(x: DoubleArray) -> DoubleArray:
    return 1.5 * np.tanh(1.2 * x[:, 0]) + 0.6 * x[:, 1] * x[:, 4] + 0.5 * np.abs(x[:, 2]) + 0.8 * x[:, 3]


def _ar(rows: int, persistence: float, generator: np.random.Generator) -> DoubleArray:
    """Make a stationary AR(1) of unit variance."""
    steps = generator.normal(size=rows) * np.sqrt(1 - persistence**2)
    steps[0] = generator.normal()
    return _filtered(steps, persistence)


def _filtered(steps: DoubleArray, persistence: float) -> DoubleArray:
    """Run r_t = persistence * r_{t-1} + steps_t."""
    values = np.empty_like(steps)
    level = 0.0
    for row, step in enumerate(steps):
        level = persistence * level + step
        values[row] = level
    return values


def _level_shift(x: DoubleArray, strength: float, generator: np.random.Generator) -> Made:
    """Levels drawn afresh at random rows, under white noise; best by exact run-length filtering."""
    rows, rate, spread = len(x), 1 / 400, 2 * strength
    jumps = np.flatnonzero(generator.random(rows) < rate)
    levels = generator.normal(scale=spread, size=rows)
    begins = np.concatenate([[0], jumps])
    level = np.repeat(levels[: len(begins)], np.diff(np.append(begins, rows)))
    residual = level + generator.normal(scale=_NOISE, size=rows)
    signal = _signal(x)
    best = signal + _run_length_mean(residual, rate, spread**2, _NOISE**2)
    return signal + residual, best, {"level shift": jumps.tolist()}, x


def _run_length_mean(values: DoubleArray, rate: float, prior: float, noise: float) -> DoubleArray:
    """Conditional mean of value_t given those before it, when levels N(0, prior) restart with some ``rate``.

    One hypothesis per possible start of the current level, each with its conjugate posterior mean
    and precision; those of negligible weight are dropped.
    """
    means, precisions, weights = np.zeros(1), np.full(1, 1 / max(prior, 1e-12)), np.ones(1)
    predicted = np.empty_like(values)
    for row, value in enumerate(values):
        if row:
            means = np.append(means, 0.0)
            precisions = np.append(precisions, 1 / max(prior, 1e-12))
            weights = np.append(weights * (1 - rate), rate)
        predicted[row] = weights @ means / weights.sum()
        variance = 1 / precisions + noise
        weights = weights * np.exp(-0.5 * (value - means) ** 2 / variance) / np.sqrt(variance)
        means = (means * precisions + value / noise) / (precisions + 1 / noise)
        precisions = precisions + 1 / noise
        kept = weights > weights.max() * 1e-12
        means, precisions, weights = means[kept], precisions[kept], weights[kept] / weights[kept].sum()
    return predicted


def _kalman_mean(
    values: DoubleArray, step: float, noise: float, gain: DoubleArray | float = 1.0
) -> DoubleArray:
    """Kalman filter: E[value_t | values before t] for gain_t * random walk (variance ``step``) plus noise."""
    gains = np.broadcast_to(gain, values.shape)
    mean, variance = 0.0, 0.0
    predicted = np.empty_like(values)
    for row, value in enumerate(values):
        variance += step if row else 0.0
        predicted[row] = gains[row] * mean
        share = variance * gains[row] / (gains[row] ** 2 * variance + noise)
        mean += share * (value - predicted[row])
        variance *= 1 - share * gains[row]
    return predicted


def _walk(rows: int, step: float, generator: np.random.Generator) -> DoubleArray:
    steps = generator.normal(scale=np.sqrt(step), size=rows)
    steps[0] = 0.0
    return np.cumsum(steps)


def _drift(x: DoubleArray, strength: float, generator: np.random.Generator) -> Made:
    """Let a level wander as a random walk under white noise; best by the Kalman filter."""
    step = (0.05 * strength) ** 2
    residual = _walk(len(x), step, generator) + generator.normal(scale=_NOISE, size=len(x))
    signal = _signal(x)
    return signal + residual, signal + _kalman_mean(residual, step, _NOISE**2), {}, x


def _regime_path(rows: int, stay: float, generator: np.random.Generator) -> IntArray:
    return np.cumsum(generator.random(rows) > stay).astype(np.int64) % 2


def _regimes(x: DoubleArray, strength: float, generator: np.random.Generator) -> Made:
    """Switch between two laws, hidden, at random; best by the Hamilton filter."""
    stay = 1 - 1 / 300
    signal = _signal(x)
    other = signal + strength * (1.0 - 0.8 * x[:, 0])
    regime = _regime_path(len(x), stay, generator)
    target = np.where(regime == 0, signal, other) + generator.normal(scale=_NOISE, size=len(x))
    best = np.empty_like(target)
    chance = np.array([1.0, 0.0])
    for row in range(len(x)):
        if row:
            chance = stay * chance + (1 - stay) * chance[::-1]
        laws = np.array([signal[row], other[row]])
        best[row] = chance @ laws
        misfit = (target[row] - laws) ** 2 / _NOISE**2
        chance = chance * np.exp(-0.5 * (misfit - misfit.min()))
        chance /= chance.sum()
    return target, best, {"regime switch": (np.flatnonzero(np.diff(regime)) + 1).tolist()}, x


def _burst_scale(rows: int, strength: float, generator: np.random.Generator) -> DoubleArray:
    bursting = _regime_path(rows, 1 - 1 / 150, generator)
    return np.asarray(_NOISE * (1 + 3 * strength * bursting))


def _volatility(x: DoubleArray, strength: float, generator: np.random.Generator) -> Made:
    """Let AR(1) errors come in calm and in violent stretches; best knows only the AR(1)."""
    scale = _burst_scale(len(x), strength, generator)
    residual = _filtered(generator.normal(size=len(x)) * scale, 0.8)
    signal = _signal(x)
    bursts = (np.flatnonzero(np.diff(scale) > 0) + 1).tolist()
    return signal + residual, signal + 0.8 * _lagged(residual), {"burst": bursts}, x


def _lagged(values: DoubleArray) -> DoubleArray:
    return np.concatenate([[0.0], values[:-1]])


def _sensor_bias(x: DoubleArray, strength: float, generator: np.random.Generator) -> Made:
    """Let one sensor's reading wander off the truth; the target answers to the truth."""
    step = (0.04 * strength) ** 2
    bias = _walk(len(x), step, generator)
    seen = x.copy()
    seen[:, 1] += bias
    signal = _signal(x)
    target = signal + generator.normal(scale=_NOISE, size=len(x))
    # CalibrationRows from outside: the signal of the reading, plus -0.6 * phase_cos * bias, plus noise.
    outside = _signal(seen)
    best = outside + _kalman_mean(target - outside, step, _NOISE**2, gain=-0.6 * x[:, 4])
    return target, best, {}, seen


def _heavy_tails(x: DoubleArray, strength: float, generator: np.random.Generator) -> Made:
    """Let AR(1) errors be driven by Student noise, heavier-tailed with strength (3 degrees at 1)."""
    freedom = 2.5 + 0.5 / max(strength, 1e-6)
    noise = generator.standard_t(freedom, size=len(x)) * np.sqrt((freedom - 2) / freedom)
    residual = _filtered(_NOISE * noise, 0.8)
    signal = _signal(x)
    return signal + residual, signal + 0.8 * _lagged(residual), {}, x


def _hpc_write_time(x: DoubleArray, strength: float, generator: np.random.Generator) -> Made:
    """Make seconds to write a file: size over bandwidth, times a contention that persists and bursts.

    The logarithm of the contention is an AR(1) whose noise grows with the file system's load (the
    first input), so the best prediction is the mean of a log-normal.
    """
    size = 0.5 * x[:, 1] + 0.3 * x[:, 3]
    scale = 0.15 + 0.25 * strength / (1 + np.exp(-2 * x[:, 0]))
    contention = _filtered(generator.normal(size=len(x)) * scale, 0.9)
    target = np.exp(size + contention)
    return target, np.exp(size + 0.9 * _lagged(contention) + scale**2 / 2), {}, x


def _mixed(x: DoubleArray, strength: float, generator: np.random.Generator) -> Made:
    """Put a slow drift, regime switches and volatility bursts into one stream."""
    rows = len(x)
    # Switches every 400 to 1,000 rows, and one at nine tenths, where a split leaves its test part.
    switches = np.cumsum(generator.integers(400, 1000, size=rows // 400 + 1))
    switches = np.unique(np.append(switches[switches < rows], int(0.9 * rows)))
    regime = np.searchsorted(switches, np.arange(rows), side="right") % 2
    wave = np.sin(2 * np.pi * np.arange(rows) / (0.9 * rows))
    law = _signal(x) + strength * (0.8 * wave + regime * (1.2 - 0.8 * x[:, 0]))
    residual = _filtered(generator.normal(size=rows) * _burst_scale(rows, 0.6 * strength, generator), 0.6)
    return law + residual, law + 0.6 * _lagged(residual), {"regime switch": switches.tolist()}, x


_MAKERS: dict[str, Callable[[DoubleArray, float, np.random.Generator], Made]] = {
    "level-shift": _level_shift,
    "drift": _drift,
    "regimes": _regimes,
    "volatility": _volatility,
    "sensor-bias": _sensor_bias,
    "heavy-tails": _heavy_tails,
    "hpc-write-time": _hpc_write_time,
    "mixed": _mixed,
}
KINDS: tuple[str, ...] = tuple(_MAKERS)
