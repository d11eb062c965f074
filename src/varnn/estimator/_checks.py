"""X and y as people hand them over -> arrays of numbers, or the words that scikit-learn's contract has.

Its own `check_array` and `validate_data` would do; importing them takes longer than predicting. Messages are
close to theirs, since tests and people know them.
"""

import sys
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from varnn._types import FloatArray
from varnn.data.odd_input import unmasked
from varnn.errors import DataError

_LONGEST = 400  # characters of what NumPy says, which may show a whole cell
_NAMED = 5  # columns that a message names


class NotNumbersError(DataError, TypeError):
    """Cells that are no numbers at all, for which scikit-learn's contract has a TypeError."""


def checked_inputs(estimator: Any, X: Any, *, fitting: bool) -> FloatArray:
    """Inputs (n_rows, n_inputs); fitting, the estimator keeps their number and names, else they must match.

    Parameters
    ----------
    estimator : estimator
        Whose ``n_features_in_`` and ``feature_names_in_`` are set, or must be met.
    X : array_like or table
        The inputs.
    fitting : bool
        Whether this is a call of ``fit``.
    """
    names = _names(X)
    if not fitting:
        _check_names(estimator, names)
    inputs = _numbers(X, "X")
    _check_shape(inputs, type(estimator).__name__)
    if fitting:
        estimator.n_features_in_ = inputs.shape[1]
        estimator.__dict__.pop("feature_names_in_", None)
        if names is not None:
            estimator.feature_names_in_ = np.asarray(names, dtype=object)
    elif inputs.shape[1] != estimator.n_features_in_:
        raise DataError(
            f"X has {inputs.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    return inputs


def checked_labels(y: Any) -> FloatArray:
    """Labels (n_rows,), NaN where missing; a column is flattened, with a warning as scikit-learn's."""
    labels = _numbers(y, "y").astype(np.float64, copy=False)
    if labels.ndim == 2 and labels.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of y to "
            "(n_samples, ), for example using ravel().",
            _conversion_warning(),
            stacklevel=2,
        )
    elif labels.ndim != 1:
        raise DataError(f"y should be a 1d array, got an array of shape {labels.shape} instead.")
    if not labels.size:
        raise DataError(f"y must hold at least one label; found 0 samples (shape={labels.shape}).")
    if np.isinf(labels).any():
        raise DataError("y must hold finite numbers, or NaN where one is missing; it contains infinity.")
    return labels.ravel()


def _numbers(values: Any, name: str) -> FloatArray:
    """An array of float32 as it is, and of float64 what else holds numbers."""
    if hasattr(values, "tocsr"):
        raise NotNumbersError(
            f"{name} must be dense; sparse data was passed. Use '.toarray()' to convert it to a dense array."
        )
    try:
        array = np.asarray(unmasked(values))
        if array.dtype == object and hasattr(values, "iloc"):  # pandas' own kinds of missing cells
            array = values.to_numpy(dtype=np.float64, na_value=np.nan)
        if array.dtype.kind in "cmM":
            what = "Complex data not supported" if array.dtype.kind == "c" else "dates are no numbers"
            raise DataError(f"{name} must hold numbers only; it holds {array.dtype}: {what}.")
        if array.dtype not in (np.float32, np.float64):
            array = _without_complex(array, name).astype(np.float64)
    except DataError:
        raise
    except TypeError as error:
        raise NotNumbersError(_said(error, name)) from None
    except (ValueError, OverflowError, ArithmeticError) as error:
        raise DataError(_said(error, name)) from None
    return np.ascontiguousarray(array) if isinstance(array, np.matrix) else array


def _without_complex(array: Any, name: str) -> Any:
    """Refuse complex cells among objects, whose imaginary part NumPy would drop with a warning."""
    if array.dtype == object and any(isinstance(one, complex | np.complexfloating) for one in array.flat):
        raise DataError(f"{name} must hold numbers only; some are complex: Complex data not supported.")
    return array


def _said(error: Exception, name: str) -> str:
    return f"{name} must hold numbers only: {' '.join(str(error).split())[:_LONGEST]}"


def _check_shape(inputs: FloatArray, who: str) -> None:
    if inputs.ndim < 2:
        raise DataError(
            f"Expected 2D array, got {'scalar' if inputs.ndim == 0 else '1D'} array instead, of shape "
            f"{inputs.shape}. Reshape your data either using array.reshape(-1, 1) if your data has a single "
            "feature or array.reshape(1, -1) if it contains a single sample."
        )
    if inputs.ndim > 2:
        raise DataError(f"Found array with dim {inputs.ndim}, while dim <= 2 is required by {who}.")
    for count, what in zip(inputs.shape, ("sample", "feature"), strict=True):
        if count == 0:
            raise DataError(
                f"Found array with 0 {what}(s) (shape={inputs.shape}) while a minimum of 1 is required "
                f"by {who}."
            )


def _names(X: Any) -> list[str] | None:
    """Names of a table's columns, where all are texts; None for what has none."""
    if not hasattr(type(X), "columns"):
        return None
    import narwhals as nw

    table = nw.from_native(X, pass_through=True)
    if not isinstance(table, nw.DataFrame) or not table.columns:
        return None
    texts = {isinstance(one, str) for one in table.columns}
    if len(texts) > 1:
        kinds = sorted({type(one).__name__ for one in table.columns})
        raise NotNumbersError(
            "Feature names are only supported if all input features have string names, but your input has "
            f"{kinds} as column name types. Convert them all: X.columns = X.columns.astype(str)."
        )
    return list(table.columns) if texts == {True} else None


def _check_names(estimator: Any, names: Sequence[str] | None) -> None:
    """Refuse names that are not those of the fit; warn where there are none on one side."""
    kept = getattr(estimator, "feature_names_in_", None)
    who = type(estimator).__name__
    if kept is None or names is None:
        if kept is not None or names is not None:
            said = "X has feature names, but {} was fitted without feature names"
            if names is None:
                said = "X does not have valid feature names, but {} was fitted with feature names"
            warnings.warn(said.format(who), UserWarning, stacklevel=2)
        return
    if list(kept) == list(names):
        return
    unseen, missing = (sorted(one) for one in (set(names) - set(kept), set(kept) - set(names)))
    found = [
        f"{what}:\n" + "".join(f"- {one}\n" for one in [*those[:_NAMED], *["..."] * (len(those) > _NAMED)])
        for what, those in (
            ("Feature names unseen at fit time", unseen),
            ("Feature names seen at fit time, yet now missing", missing),
        )
        if those
    ]
    raise DataError(
        "The feature names should match those that were passed during fit.\n"
        + ("".join(found) or "Feature names must be in the same order as they were in fit.\n")
    )


def _conversion_warning() -> type[Warning]:
    """scikit-learn's class of warnings, for those who have it loaded."""
    theirs = sys.modules.get("sklearn.exceptions")
    return getattr(theirs, "DataConversionWarning", UserWarning)
