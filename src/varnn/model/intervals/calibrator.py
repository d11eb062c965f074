"""The contract of an interval method: what it learns from errors, and its running state beside predictions.

::

    Calibrator.fit(validation errors)  ->  Calibrator        immutable, saved with the model
    calibrator.tracker(n)              ->  Tracker           of n series in step, saved in snapshots
    expect(features), bounds(levels), observe(errors)        once a row, in this order

One-step intervals and forecast bands are used through the same contract. One-step errors are (n,), and the
features of a row its hidden layer, (n, K). Errors of forecasts are (n, H), and the features one column, how
much labels lately moved from row to row, (n, 1); their outcomes become known one after the other (see
`Tracker.observe`). A method that looks at no features serves both.

Shapes: N rows of a panel, n series in step, F features, H steps of the horizon, L levels.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from varnn._types import DoubleArray, IntArray
from varnn.errors import ConfigError, DataError
from varnn.model._fields import is_number


class CalibrationRows(NamedTuple):
    """Rows as an interval method sees them.

    Parameters
    ----------
    features : array of shape (N, F)
        What is known of each row before its label.
    errors : array of shape (N,) or (N, H)
        Label less prediction, NaN where unknown. Column k of row t is about row t + k.
    starts : array of shape (S + 1,)
        Row at which each series begins, and the number of rows at the end.
    """

    features: npt.NDArray[Any]
    errors: DoubleArray
    starts: IntArray


class Tracker(ABC):
    """The running state of an interval method, of n series in step.

    Each row is `expect`, then `bounds` as often as they are asked for, then `observe`. A row that is expected
    again takes the place of the one expected before.
    """

    @abstractmethod
    def expect(self, features: npt.NDArray[Any]) -> None:
        """Take in the features (n, F) of the coming row of each series, which the caller may overwrite."""

    @abstractmethod
    def bounds(self, levels: DoubleArray) -> tuple[DoubleArray, DoubleArray]:
        """Return how far below (at most 0) and above (at least 0) the predictions the intervals reach.

        Parameters
        ----------
        levels : array of shape (L,)

        Returns
        -------
        below, above : arrays of shape (n, L), or (n, H, L) for errors of H steps
        """

    @abstractmethod
    def observe(self, errors: DoubleArray) -> None:
        """Take in what the label of the row expected last makes known; NaN teaches nothing.

        Parameters
        ----------
        errors : array of shape (n,) or (n, H)
            Errors of one step; or, of H, those of the forecasts of this row: column k is the error of the
            forecast made k rows ago.
        """

    @abstractmethod
    def state(self) -> DoubleArray:
        """Return a copy of all that later intervals depend on: (n, any number of columns)."""

    @abstractmethod
    def restore(self, state: DoubleArray) -> None:
        """Take over what :meth:`state` gave; raise DataError for what it cannot have given."""

    def follow(
        self, features: npt.NDArray[Any], errors: DoubleArray, starts: IntArray, levels: DoubleArray
    ) -> tuple[DoubleArray, DoubleArray]:
        """Go through all rows of a panel, and end in the state after the last row of each series.

        This goes row after row, as a stream would. A method may override it to go through many rows at
        once; it must give the same, and this one is its oracle.

        Parameters
        ----------
        features, errors, starts : array, array, array of int
            As in `CalibrationRows`, of as many series as the tracker has.
        levels : array of shape (L,)

        Returns
        -------
        below, above : arrays of shape (N, L) or (N, H, L)
        """
        below, above = np.empty((*errors.shape, len(levels))), np.empty((*errors.shape, len(levels)))
        known, lengths, ends = known_with(errors, starts), np.diff(starts), self.state()
        for place in range(lengths.max(initial=0)):
            on, last = lengths > place, lengths == place + 1
            rows = starts[:-1] + np.minimum(place, lengths - 1)  # a series that has ended is not looked at
            self.expect(features[rows])
            below[rows[on]], above[rows[on]] = (reach[on] for reach in self.bounds(levels))
            now = known[rows]
            now[~on] = np.nan
            self.observe(now)
            if last.any():
                ends[last] = self.state()[last]
        self.restore(ends)
        return below, above


@dataclass(frozen=True, eq=False, kw_only=True)
class Calibrator(ABC):
    """What an interval method has learnt; subclasses are frozen dataclasses of arrays and floats."""

    @classmethod
    @abstractmethod
    def fit(cls, validation: CalibrationRows, training: CalibrationRows | None = None) -> Self:
        """Learn from errors.

        Parameters
        ----------
        validation : CalibrationRows
            Rows the model was not trained on.
        training : CalibrationRows or None, default None
            Rows it was trained on, whose errors are smaller; None for forecasts.
        """

    @abstractmethod
    def tracker(self, n_series: int, levels: DoubleArray | None = None) -> Tracker:
        """Begin with n series in step.

        Parameters
        ----------
        n_series : int
        levels : array of shape (L,) or None, default None
            Those that bounds will be asked for; None where they are not known yet. For methods that follow
            each level apart.
        """

    def step_numbers(self) -> dict[str, Any] | None:
        """Return what `varnn.step.intervals` needs, if it computes the method; None runs outside the step."""
        return None

    def refitted(self, before: CalibrationRows, after: CalibrationRows) -> Self:
        """Carry over what was learnt to a network that was trained again; unless overridden, all stays.

        Parameters
        ----------
        before, after : CalibrationRows
            Training rows, as the network before and the one after sees them.
        """
        return self

    def arrays(self) -> dict[str, DoubleArray]:
        """Return all that was learnt as named arrays, for a file and for the model's fingerprint."""
        return {one.name: np.atleast_1d(getattr(self, one.name)) for one in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, DoubleArray]) -> Self:
        """Undo :meth:`arrays`; raise DataError for arrays that it cannot have given."""
        missing = [one.name for one in fields(cls) if one.default is MISSING and one.name not in arrays]
        long = [one.name for one in fields(cls) if is_number(one) and np.size(arrays.get(one.name, 0)) != 1]
        if missing or long:
            raise DataError(
                f"{cls.__name__} needs {[one.name for one in fields(cls)]}; {missing} are missing, and "
                f"{long} must be one number each. Restore the file from a copy."
            )
        known = {one.name: arrays[one.name] for one in fields(cls) if one.name in arrays}
        floats = {one.name for one in fields(cls) if is_number(one)}
        return cls(**{name: array.item() if name in floats else array for name, array in known.items()})


def follow(
    calibrator: Calibrator,
    features: npt.NDArray[Any],
    errors: DoubleArray,
    starts: IntArray,
    levels: DoubleArray,
) -> tuple[DoubleArray, DoubleArray]:
    """Run a calibrator over all rows of a panel, each series from its beginning.

    Parameters
    ----------
    calibrator : Calibrator
    features, errors, starts : array, array, array of int
        As in `CalibrationRows`.
    levels : array of shape (L,)

    Returns
    -------
    below, above : arrays of shape (N, L) or (N, H, L)
        How far below and above each prediction its intervals reach, from labels before its row alone.
    """
    return calibrator.tracker(len(starts) - 1, levels).follow(features, errors, starts, levels)


def known_with(errors: DoubleArray, starts: IntArray) -> DoubleArray:
    """Sort errors by the row whose label makes them known, as `Tracker.observe` takes them.

    Parameters
    ----------
    errors : array of shape (N,), (N, H) or (N, H, any)
        By the row they were forecast from: column k of row t is about row t + k.
    starts : array of shape (S + 1,)

    Returns
    -------
    array of the same shape
        Column k of row t is about row t, and was forecast k rows before; NaN where that is before the
        series.

    Examples
    --------
    >>> known_with(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), np.array([0, 2, 3])).tolist()
    [[1.0, nan], [3.0, 2.0], [5.0, nan]]
    """
    if errors.ndim == 1:
        return errors
    known = np.full(errors.shape, np.nan)
    place = np.arange(len(errors)) - np.repeat(starts[:-1], np.diff(starts))
    for step in range(errors.shape[1]):
        rows = np.flatnonzero(place >= step)
        known[rows, step] = errors[rows - step, step]
    return known


def known_calibrator(calibrator: Calibrator | None) -> Calibrator:
    """Return what a model knows about its errors; refuse where it knows nothing."""
    if calibrator is None:
        raise ConfigError(
            "this model knows nothing of how large its errors are: it was fitted with intervals=False "
            "or without validation rows. Fit it again with both."
        )
    return calibrator
