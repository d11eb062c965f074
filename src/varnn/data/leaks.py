"""Inputs that determine the target at their own row: nothing to learn, and in most tables a mistake.

A column of parts (casual and registered riders) beside their sum (all riders) makes every error vanish, and
nothing can be predicted with it: the parts are counted when the sum is. So training rows are looked at before
a fit: does a linear combination of inputs give the target, to a millionth of its standard deviation? Lags
are no leak, and neither is what must come out so: as many rows as inputs, a constant, one group mean for each
of a few categories.
"""

import logging
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from varnn._types import DoubleArray, IntArray
from varnn.data.blas import one_blas_thread
from varnn.data.panel import Panel

logger = logging.getLogger(__name__)

EXACT = 1e-6  # of the target's standard deviation, that may be left over
MOST_ROWS = 100_000  # that are looked at
MOST_INPUTS = 256
_FEWEST_ROWS = 30
_ROWS_AN_INPUT = 5  # rows there must be for each input
_SOLVED_ON = 20  # rows for each input that weights are found on; all others have to agree
_ATTEMPTS = 3
_LONGEST_LAG = 48
_ROWS_FOR_LAGS = 2000
_SMALL_SET = 8  # inputs that are looked for one by one; larger sets are thinned out
_NAMED = 6  # of a linear combination

_found: "WeakKeyDictionary[Panel, str | None]" = WeakKeyDictionary()
_told: "WeakSet[Panel]" = WeakSet()


def exact_leak(panel: Panel) -> str | None:
    """Say which inputs determine the target of their own row, in one sentence; None if none do.

    Parameters
    ----------
    panel : Panel
        Training rows; those with gaps are passed over.

    Examples
    --------
    >>> riders = np.random.default_rng(0).poisson(9, size=(200, 3)).astype(float)
    >>> names = ["casual", "registered", "wind"]
    >>> print(exact_leak(Panel.from_arrays(riders, riders[:, :2].sum(axis=1), input_names=names)))
    y is the exact sum of casual and registered
    >>> exact_leak(Panel.from_arrays(riders[:, 1:], riders[:, :2].sum(axis=1))) is None
    True
    """
    if panel not in _found:
        # The products are small: on a busy machine their threads would wait for each other.
        with one_blas_thread():
            relation = _relation(panel)
        _found[panel] = None if relation is None else _in_words(panel, relation)
    return _found[panel]


def advice(leak: str) -> str:
    """Say what to do about a leak.

    Examples
    --------
    >>> advice("y is input x itself").partition(": ")[0]
    'y is input x itself in the training rows'
    """
    return (
        f"{leak} in the training rows: unless these inputs are known before the target is, errors mean "
        "nothing here. Leave them out: name the others with `inputs` (--inputs)"
    )


def tell_leaks(panels: Iterable[Panel]) -> None:
    """Log what leaks in training rows, once for each panel, and once if it is the same in several."""
    fresh = [one for one in panels if one not in _told]
    for text in dict.fromkeys(exact_leak(one) for one in fresh):
        if text is not None:
            logger.warning("%s.", advice(text))
    _told.update(fresh)


class _Relation(NamedTuple):
    """The target as a constant and weights of some inputs."""

    inputs: tuple[int, ...]
    weights: tuple[float, ...]
    constant: float


class _Rows(NamedTuple):
    """Rows without gaps: inputs that vary, centred and scaled, and the target likewise."""

    columns: IntArray  # which inputs these are
    inputs: DoubleArray  # (n, d)
    target: DoubleArray  # (n,)
    offset: DoubleArray
    scale: DoubleArray
    target_offset: float
    target_scale: float

    def solved(self, chosen: Sequence[int]) -> DoubleArray | None:
        """Weights of some inputs that give the target on every row; None if there are none.

        They are found on a few rows. Where an input varies in rare rows only, these may not be among them:
        they are where the target is missed by most, and are added.
        """
        inputs = self.inputs[:, list(chosen)]
        few = _SOLVED_ON * (len(chosen) + 100)
        taken = _spread(len(self.target), few)
        for _ in range(_ATTEMPTS):
            weights = np.asarray(
                np.linalg.lstsq(inputs[taken], self.target[taken], rcond=None)[0], np.float64
            )
            left = self.target - inputs @ weights
            if np.sqrt(np.mean(np.square(left))) < EXACT:
                return weights
            if len(taken) == len(left):
                return None
            taken = np.union1d(taken, np.argsort(-np.abs(left))[:few])
        return None


def _spread(count: int, most: int) -> IntArray:
    """Draw rows, the same each time; every tenth, say, might all be of one hour of the day."""
    if count <= most:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).choice(count, most, replace=False))


def _relation(panel: Panel) -> _Relation | None:
    rows = _complete_rows(panel)
    if rows is None or rows.solved(range(len(rows.columns))) is None:
        return None
    chosen = _few(rows)
    weights = rows.solved(chosen)
    if (
        weights is None
        or _had_to_be(rows, chosen)
        or all(_is_lag(panel, rows.columns[one]) for one in chosen)
    ):
        return None
    plain = weights * rows.target_scale / rows.scale[chosen]
    constant = rows.target_offset - plain @ rows.offset[chosen]
    inputs = tuple(int(rows.columns[one]) for one in chosen)
    return _Relation(inputs, tuple(plain.tolist()), float(constant))


def _complete_rows(panel: Panel) -> _Rows | None:
    """Take rows without gaps, and inputs that vary in them; None if they are too few."""
    if not 0 < panel.n_inputs <= MOST_INPUTS:
        return None
    taken = _spread(len(panel), MOST_ROWS)
    inputs, target = (np.asarray(one[taken], np.float64) for one in (panel.inputs, panel.target))
    labelled = ~np.isnan(target)
    there = ~np.isnan(inputs[labelled])
    columns = np.flatnonzero(there.mean(axis=0) > 0.5) if labelled.any() else np.empty(0, np.int64)
    complete = np.flatnonzero(labelled)[there[:, columns].all(axis=1)]
    inputs, target = inputs[np.ix_(complete, columns)], target[complete]
    if len(target) < _FEWEST_ROWS:
        return None
    offset, scale = inputs.mean(axis=0), inputs.std(axis=0)
    varies = scale > 1e-9 * np.abs(inputs).max(axis=0)
    target_offset, target_scale = float(target.mean()), float(target.std())
    count = int(varies.sum())
    if not count or len(target) < _ROWS_AN_INPUT * (count + 1):
        return None
    if not target_scale > 1e-9 * np.abs(target).max():
        return None
    offset, scale = offset[varies], scale[varies]
    return _Rows(
        columns[varies],
        (inputs[:, varies] - offset) / scale,
        (target - target_offset) / target_scale,
        offset,
        scale,
        target_offset,
        target_scale,
    )


def _few(rows: _Rows) -> list[int]:
    """Find few inputs that suffice: added one by one, or, where that does not do, taken out one by one."""
    chosen: list[int] = []
    left = rows.target
    while len(chosen) < min(_SMALL_SET, len(rows.columns)):
        gains = np.abs(left @ rows.inputs)
        gains[chosen] = -1
        chosen.append(int(np.argmax(gains)))
        if rows.solved(chosen) is not None:
            return _thinned(rows, chosen)
        inputs = rows.inputs[:, chosen]
        left = rows.target - inputs @ np.linalg.lstsq(inputs, rows.target, rcond=None)[0]
    return _thinned(rows, list(range(len(rows.columns))))


def _thinned(rows: _Rows, chosen: list[int]) -> list[int]:
    """Take out every input that the others can do without, those of least weight first."""
    weights = rows.solved(chosen)
    order = chosen if weights is None else [chosen[one] for one in np.argsort(np.abs(weights), kind="stable")]
    for one in order:
        fewer = [other for other in chosen if other != one]
        if fewer and rows.solved(fewer) is not None:
            chosen = fewer
    return sorted(chosen)


def _had_to_be(rows: _Rows, chosen: list[int]) -> bool:
    """Tell whether inputs take so few values together that weights for any target would be found."""
    often = 2 * (len(chosen) + 1)
    different = len(np.unique(rows.inputs[:, chosen], axis=0))
    _, counts = np.unique(rows.target, return_counts=True)
    return bool(different < often or len(rows.target) - counts.max() < often)


def _is_lag(panel: Panel, column: int) -> bool:
    """Tell whether an input repeats earlier labels of its series."""
    longest = int(np.argmax(panel.lengths))
    first, last = panel.starts[longest : longest + 2]
    rows = slice(int(first), min(int(last), int(first) + _ROWS_FOR_LAGS))
    values, labels = panel.inputs[rows, column], panel.target[rows]
    for lag in range(1, min(_LONGEST_LAG, len(labels) - 1) + 1):
        later, before = values[lag:], labels[:-lag]
        known = ~np.isnan(later) & ~np.isnan(before)
        if not known.any() or np.ptp(before[known]) == 0:
            continue
        if np.allclose(later[known], before[known], rtol=1e-6, atol=0):
            return True
    return False


def _in_words(panel: Panel, relation: _Relation) -> str:
    """Write a relation as people would."""
    target, weights = panel.target_name, np.array(relation.weights)
    names = [panel.input_names[one] for one in relation.inputs]
    added = _listed([name for name, weight in zip(names, weights, strict=True) if weight > 0])
    taken = _listed([name for name, weight in zip(names, weights, strict=True) if weight < 0])
    constant = relation.constant
    plus = ""
    if abs(constant) > 1e-5 * float(np.nanstd(panel.target)):
        plus = f" {'plus' if constant > 0 else 'minus'} {abs(constant):.6g}"
    same, size = _are(np.abs(weights), abs(weights[0])), abs(weights[0])
    if len(names) == 1:
        times = "" if _are(weights, 1.0) else f" times {weights[0]:.6g}"
        return f"{target} is input {names[0]}{times}{plus}" + (" itself" if not times + plus else "")
    if not same:
        return f"{target} is exactly a linear combination of {_listed(names)}"
    if taken and len(names) == 2 and added:
        what = f"difference of {added} and {taken}"
    elif taken and added:
        what = f"sum of {added}, less {taken}"
    else:
        what = f"sum of {added or taken}"
    factor = size if added else -size
    if _are(np.array([factor]), 1.0):
        return f"{target} is the exact {what}{plus}"
    return f"{target} is exactly {factor:.6g} times the {what}{plus}"


def _are(values: DoubleArray, number: float) -> bool:
    return bool(np.allclose(values, number, rtol=1e-5, atol=0))


def _listed(names: Sequence[str]) -> str:
    """Join names in a sentence; of many, the first."""
    if len(names) > _NAMED:
        return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
