"""Truth and predictions -> one number: the metrics that tables know by name.

A metric is one function below :func:`metric`. The names of its arguments say what it needs, out of
`ARGUMENTS`; tables, pages and commands find it under its own name, and its first line of documentation
is what a page says about it. All take arrays of one shape, or numbers in place of one; rows whose label
is not known (NaN) are left out, and without any row the result is NaN.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from varnn._types import DoubleArray
from varnn.errors import ConfigError, DataError, nearest
from varnn.estimator.r_squared import r_squared

ARGUMENTS: dict[str, str] = {
    "truth": "labels, NaN where they are not known",
    "prediction": "predictions of these rows",
    "naive": "predictions of these rows by persistence",
    "scale": "mean absolute error of persistence on the training rows of each row's series",
    "lower": "lower bounds of the rows' intervals",
    "upper": "upper bounds of the rows' intervals",
    "level": "nominal level of the intervals, such as 0.9",
}

METRICS: dict[str, Callable[..., float]] = {}  # by name, in the order of this file
DEFAULT = ("rmse", "mae", "skill")  # what tables show unless they are told
SHARES = ("skill", "coverage")  # that are written in percent

# Keys of a table's line that are no metrics.
RESERVED = ("model", "seeds", "scaled_mse", "spread", "median_series_mse", "seconds")

_Function = TypeVar("_Function", bound=Callable[..., float])


def metric(function: _Function) -> _Function:
    """Register a function of `ARGUMENTS` as a metric, under its own name; a decorator.

    Parameters
    ----------
    function : callable
        From some of `ARGUMENTS`, by these names, to a number.

    Returns
    -------
    callable
        The function, as it was.

    Examples
    --------
    >>> @metric
    ... def largest_error(truth, prediction):
    ...     return float(np.nanmax(np.abs(truth - prediction)))
    >>> needs("largest_error"), METRICS.pop("largest_error")(np.arange(3.0), np.zeros(3))
    (('truth', 'prediction'), 2.0)
    """
    name = function.__name__
    unknown = [one for one in inspect.signature(function).parameters if one not in ARGUMENTS]
    if unknown:
        raise ConfigError(
            f"a metric is a function of {list(ARGUMENTS)}; {name} takes {unknown[0]!r}, too. "
            "Take only what is listed."
        )
    if name in RESERVED:
        raise ConfigError(f"{name!r} is a column of every table. Give your metric another name.")
    if name in METRICS and METRICS[name].__module__ != function.__module__:
        raise ConfigError(f"there is a metric {name!r} already. Give yours another name.")
    METRICS[name] = function
    return function


def needs(name: str) -> tuple[str, ...]:
    """Arguments that a metric takes, out of `ARGUMENTS`.

    Parameters
    ----------
    name : str
        One of `METRICS`.

    Examples
    --------
    >>> needs("skill"), needs("coverage")
    (('truth', 'prediction', 'naive'), ('truth', 'lower', 'upper'))
    """
    return tuple(inspect.signature(METRICS[name]).parameters)


def of_intervals(name: str) -> bool:
    """Whether a metric is about intervals, and so about their level.

    Examples
    --------
    >>> of_intervals("coverage"), of_intervals("mae")
    (True, False)
    """
    return not {"lower", "upper"}.isdisjoint(needs(name))


def check_names(names: str | Iterable[str]) -> tuple[str, ...]:
    """Names of metrics, each once; those that there are not are refused.

    Parameters
    ----------
    names : str or iterable of str
        One name, several with commas between them, or a list of names, or of the functions themselves.

    Examples
    --------
    >>> check_names(["mae", "rmse", "mae"])
    ('mae', 'rmse')
    >>> check_names("meae")
    Traceback (most recent call last):
    varnn.errors.ConfigError: there is no metric 'meae'. Did you mean 'mae'? There are: 'mse', ...
    """
    given = names.split(",") if isinstance(names, str) else names
    if not isinstance(given, Iterable):
        raise ConfigError(f"metrics must be names of metrics; got {names!r}.")
    asked = tuple(dict.fromkeys(_name(one) for one in given))
    if not asked:
        raise ConfigError(f"metrics must name at least one metric; got none. {nearest('', METRICS)}")
    for name in asked:
        if name not in METRICS:
            raise ConfigError(f"there is no metric {name!r}. {nearest(name.lower(), METRICS)}")
    return asked


def _name(one: Any) -> str:
    """Name of a metric that may be given as the function itself."""
    name = getattr(one, "__name__", "")
    if callable(one) and METRICS.get(name) is one:
        return str(name)
    return one.strip() if isinstance(one, str) else repr(one)


@metric
def mse(truth: npt.ArrayLike, prediction: npt.ArrayLike) -> float:
    """Mean squared error, in the square of the target's units.

    Parameters
    ----------
    truth : array_like
        Labels, NaN where they are not known.
    prediction : array_like or float
        Predictions of the same rows.

    Examples
    --------
    >>> mse([1.0, 2.0, np.nan], [1.0, 4.0, 9.0])
    2.0
    """
    labels, predictions = _known(truth, prediction)
    return _mean(np.square(labels - predictions))


@metric
def rmse(truth: npt.ArrayLike, prediction: npt.ArrayLike) -> float:
    """Root mean squared error, in the target's units.

    Parameters
    ----------
    truth : array_like
        Labels, NaN where they are not known.
    prediction : array_like or float
        Predictions of the same rows.

    Examples
    --------
    >>> rmse([1.0, 2.0], [2.0, 9.0])
    5.0
    """
    return float(mse(truth, prediction) ** 0.5)


@metric
def mae(truth: npt.ArrayLike, prediction: npt.ArrayLike) -> float:
    """Mean absolute error, in the target's units.

    Parameters
    ----------
    truth : array_like
        Labels, NaN where they are not known.
    prediction : array_like or float
        Predictions of the same rows.

    Examples
    --------
    >>> mae([1.0, 2.0], [4.0, 6.0])
    3.5
    """
    labels, predictions = _known(truth, prediction)
    return _mean(np.abs(labels - predictions))


@metric
def median_absolute_error(truth: npt.ArrayLike, prediction: npt.ArrayLike) -> float:
    """Median absolute error, in the target's units: half of the errors are smaller.

    Parameters
    ----------
    truth : array_like
        Labels, NaN where they are not known.
    prediction : array_like or float
        Predictions of the same rows.

    Examples
    --------
    >>> median_absolute_error([1.0, 2.0, 3.0], [1.0, 4.0, 99.0])
    2.0
    """
    labels, predictions = _known(truth, prediction)
    return float(np.median(np.abs(labels - predictions))) if len(labels) else float("nan")


@metric
def r2(truth: npt.ArrayLike, prediction: npt.ArrayLike) -> float:
    """Coefficient of determination: 1 - MSE / variance of the labels.

    Of labels that are all equal it is 1 where all predictions are right and 0 elsewhere, as scikit-learn
    has it; of fewer than two it is NaN.

    Parameters
    ----------
    truth : array_like
        Labels, NaN where they are not known.
    prediction : array_like or float
        Predictions of the same rows.

    Examples
    --------
    >>> r2([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
    0.5
    """
    labels, predictions = _known(truth, prediction)
    return r_squared(labels, predictions)


@metric
def skill(truth: npt.ArrayLike, prediction: npt.ArrayLike, naive: npt.ArrayLike) -> float:
    """Skill over persistence: how much of its squared error is gone, 1 - MSE / MSE of persistence.

    Where persistence makes no error it is 0.

    Parameters
    ----------
    truth : array_like
        Labels, NaN where they are not known.
    prediction : array_like or float
        Predictions of the same rows.
    naive : array_like or float
        Predictions of the same rows by persistence, or by another reference.

    References
    ----------
    A. H. Murphy, "Skill scores based on the mean square error and their relationships to the correlation
    coefficient", Monthly Weather Review 116 (1988), 2417-2424.

    Examples
    --------
    >>> skill([1.0, 2.0], [1.0, 1.0], naive=[1.0, 0.0])
    0.75
    """
    reference = mse(truth, naive)
    return 1 - mse(truth, prediction) / reference if reference else 0.0


@metric
def mase(truth: npt.ArrayLike, prediction: npt.ArrayLike, scale: npt.ArrayLike) -> float:
    """Mean absolute scaled error: below 1, errors are smaller than persistence's on the training rows.

    It is not defined, and NaN, where the training labels of a series never change.

    Parameters
    ----------
    truth : array_like
        Labels, NaN where they are not known.
    prediction : array_like or float
        Predictions of the same rows.
    scale : array_like or float
        Mean absolute error of persistence on the training rows: of the series of each row, or of all.

    References
    ----------
    R. J. Hyndman and A. B. Koehler, "Another look at measures of forecast accuracy", International Journal
    of Forecasting 22 (2006), 679-688.

    Examples
    --------
    >>> mase([10.0, 12.0], [11.0, 12.0], scale=2.0)
    0.25
    """
    labels, predictions, scales = _known(truth, prediction, scale)
    return float("nan") if (scales == 0).any() else _mean(np.abs(labels - predictions) / scales)


@metric
def smape(truth: npt.ArrayLike, prediction: npt.ArrayLike) -> float:
    """Symmetric mean absolute percentage error: errors over the mean size of label and prediction, 0 to 2.

    Competitions print it times 100. Labels near zero rule it: for them `mase` says more.

    Parameters
    ----------
    truth : array_like
        Labels, NaN where they are not known.
    prediction : array_like or float
        Predictions of the same rows.

    References
    ----------
    S. Makridakis, "Accuracy measures: theoretical and practical concerns", International Journal of
    Forecasting 9 (1993), 527-529.

    Examples
    --------
    >>> smape([1.0, 0.0], [3.0, 0.0])
    0.5
    """
    labels, predictions = _known(truth, prediction)
    errors, sizes = np.abs(labels - predictions), (np.abs(labels) + np.abs(predictions)) / 2
    return _mean(np.divide(errors, sizes, out=np.zeros_like(errors), where=sizes != 0))  # 0 of 0 is right


@metric
def interval_score(truth: npt.ArrayLike, lower: npt.ArrayLike, upper: npt.ArrayLike, level: float) -> float:
    """Interval score: width, plus 2 / (1 - level) times how far labels lie outside; smaller is better.

    It is a proper score: its mean is smallest for the true quantiles.

    Parameters
    ----------
    truth : array_like
        Labels, NaN where they are not known.
    lower, upper : array_like or float
        Bounds of the same rows.
    level : float
        Nominal level of the intervals, between 0 and 1.

    References
    ----------
    R. L. Winkler, "A decision-theoretic approach to interval estimation", Journal of the American
    Statistical Association 67 (1972), 187-191.

    T. Gneiting and A. E. Raftery, "Strictly proper scoring rules, prediction, and estimation", Journal of
    the American Statistical Association 102 (2007), 359-378.

    Examples
    --------
    >>> [round(interval_score([label], 0.0, 1.0, level=0.9), 9) for label in (0.5, 2.0)]
    [1.0, 21.0]
    """
    labels, low, high = _known(truth, lower, upper)
    outside = np.maximum(low - labels, 0) + np.maximum(labels - high, 0)
    return _mean(high - low + 2 / (1 - level) * outside)


@metric
def pinball(truth: npt.ArrayLike, lower: npt.ArrayLike, upper: npt.ArrayLike, level: float) -> float:
    """Pinball loss of the two bounds, as quantiles (1 - level) / 2 and (1 + level) / 2: the mean of both.

    Parameters
    ----------
    truth : array_like
        Labels, NaN where they are not known.
    lower, upper : array_like or float
        Bounds of the same rows.
    level : float
        Nominal level of the intervals, between 0 and 1.

    References
    ----------
    R. Koenker and G. Bassett, "Regression quantiles", Econometrica 46 (1978), 33-50.

    Examples
    --------
    >>> round(pinball([2.0], 0.0, 1.0, level=0.8), 9)  # 0.1 * 2 for the one, 0.9 * 1 for the other
    0.55
    """
    labels, *bounds = _known(truth, lower, upper)
    losses = np.zeros_like(labels)
    for quantile, bound in zip(((1 - level) / 2, (1 + level) / 2), bounds, strict=True):
        losses += np.maximum(quantile * (labels - bound), (quantile - 1) * (labels - bound)) / 2
    return _mean(losses)


@metric
def coverage(truth: npt.ArrayLike, lower: npt.ArrayLike, upper: npt.ArrayLike) -> float:
    """Interval coverage: the share of labels within their intervals, which should be the level.

    Parameters
    ----------
    truth : array_like
        Labels, NaN where they are not known.
    lower, upper : array_like or float
        Bounds of the same rows, which belong to the interval.

    Examples
    --------
    >>> coverage([0.0, 0.5, 1.0, 2.0], 0.0, 1.0)
    0.75
    """
    labels, low, high = _known(truth, lower, upper)
    within = (low <= labels) & (labels <= high)
    # A label is neither within nor outside of an interval that is not known.
    return _mean(np.where(np.isnan(low) | np.isnan(high), np.nan, within))


@metric
def width(truth: npt.ArrayLike, lower: npt.ArrayLike, upper: npt.ArrayLike) -> float:
    """Mean width of the intervals, in the target's units.

    Parameters
    ----------
    truth : array_like
        Labels, NaN where they are not known: such rows do not count.
    lower, upper : array_like or float
        Bounds of the same rows.

    Examples
    --------
    >>> width([0.0, 0.0, np.nan], [0.0, 1.0, 2.0], [1.0, 4.0, 99.0])
    2.0
    """
    _, low, high = _known(truth, lower, upper)
    return _mean(high - low)


def _known(truth: npt.ArrayLike, *others: npt.ArrayLike) -> tuple[DoubleArray, ...]:
    """Rows whose label is known, of labels and what belongs to them; a number stands for all rows."""
    labels = np.asarray(truth, dtype=np.float64)
    known = ~np.isnan(labels)
    kept = [labels[known]]
    for one in others:
        values = np.asarray(one, dtype=np.float64)
        if values.ndim and values.shape != labels.shape:
            raise DataError(
                f"a metric needs arrays of one shape; the labels have {labels.shape}, and {values.shape} "
                "came beside them. Give one value for each label."
            )
        kept.append(np.broadcast_to(values, labels.shape)[known])
    return tuple(kept)


def _mean(values: DoubleArray) -> float:
    return float(values.mean()) if len(values) else float("nan")
