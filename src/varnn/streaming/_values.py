"""What a caller hands to a stream -> numbers in the order of the model; or words that say what is wrong."""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from varnn._types import DoubleArray, FloatArray
from varnn.data.categories import Categories, category_numbers, input_name
from varnn.data.finite import LARGEST
from varnn.data.odd_input import unmasked
from varnn.data.preparation import Fill
from varnn.data.timestamps import timestamp
from varnn.errors import DataError

_TOO_LARGE = f"{{}} must be finite and at most {LARGEST:g} in size; {{}}. Correct it, or leave it out."
_FARTHEST = timedelta(days=3653)  # that a row may lie after the one before: a mistyped year is farther


def inputs_of(
    x: Any, names: Sequence[str], shape: tuple[int, ...], categories: Categories | None = None
) -> DoubleArray:
    """Read x, (D,) or (n, D): numbers in order, or a mapping or a row of a frame by name.

    Texts come by the names of their columns.

    Examples
    --------
    >>> inputs_of({"b": 2, "a": 1}, ["a", "b"], (2,)).tolist()
    [1.0, 2.0]
    >>> inputs_of({"a": 3, "sky": "sun"}, ["a", "sky=sun"], (2,), {"sky": ("sun",)}).tolist()
    [3.0, 1.0]
    """
    if type(x) is dict and not categories:
        try:
            x = _in_order(tuple(names))(x)
        except KeyError:
            raise _lacking(x, names) from None
    elif isinstance(x, np.ma.MaskedArray):
        x = unmasked(x)
    elif not isinstance(x, np.ndarray) and hasattr(x, "keys"):
        if categories:
            x = _with_categories(x, categories)
        if any(name not in x for name in names):
            raise _lacking(x, names)
        x = [x[name] for name in names]
    try:
        values = np.array(x, dtype=np.float64)  # a copy: the caller may write into its own
    except (TypeError, ValueError):
        raise DataError(f"x must hold numbers only; got {x!r}.") from None
    except OverflowError:  # a whole number beyond any float
        raise DataError(_TOO_LARGE.format("x", "a number in it is not")) from None
    if values.shape != shape:
        if len(shape) == 1 and values.ndim == 1:
            listed = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
            raise DataError(f"x must hold {shape[0]} numbers ({listed}); got {len(values)}.")
        raise DataError(f"x must have shape {shape}; got {values.shape}.")
    return values


@lru_cache(maxsize=100)
def _in_order(names: tuple[str, ...]) -> Callable[[dict[str, Any]], Any]:
    """What takes the inputs of a model out of a dict, in order: one call instead of one for each."""
    return itemgetter(*names) if len(names) > 1 else lambda x: [x[name] for name in names]


def _lacking(x: Mapping[str, Any], names: Sequence[str]) -> DataError:
    missing = [name for name in names if name not in x]
    known = set(names)
    others = [name for name in x if name not in known][:5]
    hint = f" It has {others}, which the model does not know." if others else ""
    return DataError(f"x must hold every input of the model; it lacks {missing[:5]}.{hint}")


def _with_categories(x: Mapping[str, Any], categories: Categories) -> dict[str, Any]:
    """Put the inputs of each text beside it; they may be given themselves."""
    values = dict(x.items())
    for column, known in categories.items():
        names = [input_name(column, one) for one in known]
        if column in values:
            values |= dict(zip(names, category_numbers(values[column], column, known), strict=True))
        elif any(name not in values for name in names):
            raise DataError(f"x must hold every input of the model; it lacks {[column]}, a text.")
    return values


def label_of(y: Any) -> float:
    """Read the label of one series; None is NaN.

    Examples
    --------
    >>> label_of(None), label_of(3)
    (nan, 3.0)
    """
    try:
        label = math.nan if y is None else float(y)
    except (TypeError, ValueError):
        raise DataError(f"y must be a number, None or NaN; got {y!r}.") from None
    except OverflowError:  # a whole number beyond any float
        label = math.inf
    if abs(label) > LARGEST:
        raise DataError(_TOO_LARGE.format("y", f"got {label:g}"))
    return label


def labels_of(y: Any, n_series: int | None) -> DoubleArray:
    """Read the labels of a fleet, (n,).

    Examples
    --------
    >>> labels_of([1, None], 2).tolist()
    [1.0, nan]
    """
    try:
        labels = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise DataError("y must hold numbers, None or NaN only.") from None
    if labels.shape != (n_series,):
        raise DataError(f"y must have shape ({n_series},); got {labels.shape}.")
    if (np.abs(labels) > LARGEST).any():
        series = int(np.argmax(np.abs(labels) > LARGEST))
        raise DataError(_TOO_LARGE.format("y", f"that of series {series} is {labels[series]:g}"))
    return labels


def refuse_unusable(x: FloatArray, fill: Fill) -> None:
    """Raise a DataError that says which input a step cannot use, if there is one."""
    _refuse_huge(x)
    missing = np.isnan(x)
    if fill not in ("forward", "zero") and missing.any():
        place = np.argwhere(missing)[0].tolist()
        raise DataError(
            f"with fill={fill!r} a stream takes no missing input; position {place} of x is missing. Fill "
            "it first, or fit with fill='forward'."
        )


def later_than(last: np.datetime64 | None, time: Any) -> np.datetime64:
    """Read the time of a row; refuse one that is not after that of the row before."""
    when = timestamp(time)
    if last is None:
        return when
    now, before = _plain(when), _plain(last)
    if type(now) is not datetime or type(before) is not datetime:  # finer than microseconds, or far from ours
        is_later, is_near = bool(when > last), bool(when - last <= np.timedelta64(_FARTHEST))
    else:  # Python's own are compared in a fifth of the time
        is_later, is_near = now > before, now - before <= _FARTHEST
    if not is_later:
        raise DataError(
            f"the time of a row must be after that of the row observed before it; got {when} after "
            f"{last}. Send the rows of a series in the order of time, each once."
        )
    if not is_near:
        raise DataError(
            f"the time of a row must be within ten years of the row before it; got {when} after "
            f"{last}. Correct it: all rows until then would be refused."
        )
    return when


@lru_cache(maxsize=1000)  # a row's time is the last one of the next row, and that of other series
def _plain(when: np.datetime64) -> Any:
    """A time as a ``datetime``; as a number where Python has none, or it is finer than microseconds."""
    return when.item()


def _refuse_huge(values: npt.NDArray[Any]) -> None:
    """Refuse inputs that a panel would refuse; NaN passes."""
    beyond = np.abs(values) > LARGEST
    if beyond.any():
        place = np.argwhere(beyond)[0].tolist()
        raise DataError(_TOO_LARGE.format("x", f"position {place} is not"))
