"""Scorers for scikit-learn that hand the labels over: predictions one step ahead, compared by any metric."""

import inspect
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from varnn._types import DoubleArray
from varnn.errors import ConfigError, DataError
from varnn.evaluation.metrics import mse

_ROUTED = ("sample_weight", "series", "time")


def one_step_scorer(
    metric: str | Callable[..., float] = mse, *, greater_is_better: bool = False
) -> "OneStepScorer":
    """Make a scorer for scikit-learn that measures predictions one step ahead, from the labels before.

    Scorers by name call ``predict(X)``: no labels, hence closed loop, which the model refuses. This one calls
    ``predict(X, y=y)``, within a pipeline, a search or a `TransformedTargetRegressor` too; of a model that
    takes no labels, ``predict(X)``, so that several kinds of models can be compared.

    Parameters
    ----------
    metric : str or callable, default :func:`varnn.evaluation.metrics.mse`
        Name of one of scikit-learn's scorers, such as "neg_root_mean_squared_error"; a scorer that its
        ``make_scorer`` made; or a function of labels and predictions, such as those of
        `varnn.evaluation.metrics` or :mod:`sklearn.metrics`.
    greater_is_better : bool, default False
        Of a function, whether its sign stays; errors are negated, as scikit-learn has it. Scorers know.

    Returns
    -------
    OneStepScorer
        To be given as ``scoring``. Rows without a label are left out.

    Examples
    --------
    >>> from sklearn.model_selection import TimeSeriesSplit, cross_val_score
    >>> from varnn import VARNNRegressor
    >>> X = np.random.default_rng(0).normal(size=(200, 1))
    >>> model = VARNNRegressor(ensemble=1, epochs=1, hidden_size=4)
    >>> one_step = one_step_scorer("neg_root_mean_squared_error")
    >>> scores = cross_val_score(model, X, X[:, 0].cumsum(), cv=TimeSeriesSplit(n_splits=3), scoring=one_step)
    >>> bool((scores < 0).all() and (scores > -2).all())
    True
    """
    if isinstance(metric, str):
        from sklearn.metrics import get_scorer

        try:
            metric = get_scorer(metric)
        except ValueError as error:
            raise ConfigError(str(error).partition("\n")[0]) from None
    if not callable(metric):
        raise ConfigError(f"metric must be a name, a scorer or a function; got {type(metric).__name__}.")
    scorer = hasattr(metric, "set_score_request")
    if scorer and greater_is_better:
        raise ConfigError("a scorer knows whether greater is better: leave greater_is_better out.")
    return OneStepScorer(metric, sign=1 if scorer or greater_is_better else -1, is_scorer=scorer)


class OneStepScorer:
    """A scorer that `one_step_scorer` made; a class, so that it can be sent to other processes.

    Parameters
    ----------
    metric : callable
        A scorer of scikit-learn, or a function of labels and predictions.
    sign : int
        What the value is multiplied by.
    is_scorer : bool
        Which of the two it is.

    Examples
    --------
    >>> one_step_scorer("r2")
    one_step_scorer(make_scorer(r2_score, response_method='predict'))
    """

    def __init__(self, metric: Callable[..., float], *, sign: int, is_scorer: bool) -> None:
        self.metric, self.sign, self.is_scorer = metric, sign, is_scorer

    def __repr__(self) -> str:
        named = repr(self.metric) if self.is_scorer else getattr(self.metric, "__name__", repr(self.metric))
        return f"one_step_scorer({named})"

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        series: Any = None,
        time: Any = None,
    ) -> float:
        """Score a fitted estimator on rows; greater is better.

        Parameters
        ----------
        estimator : estimator
            A fitted one, of this library or another.
        X, y : array_like
            Inputs and labels.
        sample_weight, series, time : array_like or None, default None
            Of each row: how much its error counts, and where it belongs.
        """
        labels = np.asarray(y, dtype=np.float64)
        known = ~np.isnan(labels)
        if not known.any():
            raise DataError("a score needs labels, and no row has one.")
        rows = {name: one for name, one in (("series", series), ("time", time)) if one is not None}
        predictions = _one_step(estimator, X, y, rows)[known]
        weights: dict[str, Any] = {}
        if sample_weight is not None:
            weights["sample_weight"] = np.asarray(sample_weight, np.float64)[known]
        if self.is_scorer:
            return float(self.metric(_echo(), predictions, labels[known], **weights))
        if weights and "sample_weight" not in inspect.signature(self.metric).parameters:
            raise ConfigError(f"{self!r} cannot weigh rows: its metric takes no sample_weight.")
        return self.sign * float(self.metric(labels[known], predictions, **weights))

    def get_metadata_routing(self) -> Any:
        """What scikit-learn's routing is to hand over, as :meth:`set_score_request` said."""
        from sklearn.utils.metadata_routing import MetadataRequest, get_routing_for_object

        if hasattr(self, "_metadata_request"):
            return get_routing_for_object(self._metadata_request)
        found = MetadataRequest(owner=repr(self))
        for name in _ROUTED:
            found.score.add_request(param=name, alias=None)
        return found

    def set_score_request(self, **requests: bool | str | None) -> Self:
        """Say which metadata is handed to the scorer: ``series=True``; see scikit-learn's metadata routing.

        Parameters
        ----------
        **requests : bool, str or None
            Of ``series``, ``time`` and ``sample_weight``: True to get it, False not to, None to refuse it, or
            the name under which it is given.
        """
        if unknown := [name for name in requests if name not in _ROUTED]:
            raise TypeError(f"the scorer takes no {unknown[0]!r} to be routed; it takes {list(_ROUTED)}.")
        routing = self.get_metadata_routing()
        for name, alias in requests.items():
            routing.score.add_request(param=name, alias=alias)
        self._metadata_request = routing
        return self


def _one_step(estimator: Any, X: Any, y: Any, rows: dict[str, Any]) -> DoubleArray:
    """Predictions of every row from the labels before it, through estimators that hold others."""
    if hasattr(estimator, "best_estimator_"):
        return _one_step(estimator.best_estimator_, X, y, rows)
    if hasattr(estimator, "steps"):  # a pipeline: under metadata routing its predict would not take labels
        before = estimator[:-1]
        return _one_step(estimator[-1], before.transform(X) if len(before.steps) else X, y, rows)
    if hasattr(estimator, "regressor_") and hasattr(
        estimator, "transformer_"
    ):  # its predict takes y as it is
        learnt = estimator.transformer_.transform(np.asarray(y, np.float64).reshape(-1, 1)).ravel()
        found = _one_step(estimator.regressor_, X, learnt, rows)
        return np.asarray(estimator.transformer_.inverse_transform(found.reshape(-1, 1)), np.float64).ravel()
    takes_labels = "y" in inspect.signature(estimator.predict).parameters
    given = {"y": y, **rows} if takes_labels else {}
    return np.asarray(estimator.predict(X, **given), np.float64)


def _echo() -> Any:
    """An estimator whose predictions are what it is given: a scorer of scikit-learn then sees ours."""
    from sklearn.base import BaseEstimator, RegressorMixin

    class Echo(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
        def predict(self, X: Any) -> Any:
            return X

    return Echo()
