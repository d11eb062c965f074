"""Model + panel -> which inputs it needs: how much its error rises when one of them tells it nothing.

Permutation importance [1]_ [2]_, one step ahead and with all labels, as the model is used. Rows of a series
are not shuffled one by one: an input that jumps from row to row is nothing the model was ever asked about,
and its error then says more about that than about the input. Instead the whole course of an input is *rolled*
in time within each series, by a part of its length that is drawn anew each time: level, cycles and smoothness
of the input stay what they were, and only its tie to the target and to the other inputs is cut, as with
time-shifted surrogates [3]_. What an input tells about the time of day is cut with it, unless it was rolled
by whole days: that is one reason for repeats, and for the spread beside each figure.

Inputs that are all but copies of each other are rolled together: a row in which a thing and its copy differ
is outside all that was learnt, and what a model makes of it says nothing of either [4]_.

Two things to bear in mind. Inputs that tell much the same stand in for each other, so that each of them alone
may seem of no use. And a model that goes on learning notices while it is measured that an input has become
useless, and turns to others, as it would in use.

References
----------
.. [1] L. Breiman, "Random forests", Machine Learning 45, 2001.
.. [2] A. Fisher, C. Rudin and F. Dominici, "All models are wrong, but many are useful: learning a variable's
   importance by studying an entire class of prediction models simultaneously", Journal of Machine Learning
   Research 20, 2019: the ratio of the two errors is their model reliance.
.. [3] G. Lancaster, D. Iatsenko, A. Pidde, V. Ticcinelli and A. Stefanovska, "Surrogate data for hypothesis
   testing of physical systems", Physics Reports 748, 2018.
.. [4] G. Hooker, L. Mentch and S. Zhou, "Unrestricted permutation forces extrapolation: variable importance
   requires at least one more model, or there is no free variable importance", Statistics and Computing 31,
   2021.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from varnn._types import BoolArray, DoubleArray, FloatArray
from varnn.data.categories import source_columns, spelt_out
from varnn.data.panel import Panel
from varnn.errors import ConfigError, DataError

_LEAST = 0.1  # of a series, that its inputs are rolled by: a slow input rolled by a row is the same input
FEWEST = 40  # rows with a label that importance is measured on
_BLOCKS = 20  # of rows, whose means tell how much chance there is in a rise
_COPY = 0.995  # correlation from which on two inputs are taken to be the same
_MOST_COMPARED = 1_000  # inputs


class Predictor(Protocol):
    """What has inputs that may matter."""

    def predict(self, panel: Any, /) -> FloatArray:
        """Predict every row of a panel one step ahead."""
        ...


@dataclass(frozen=True, eq=False, kw_only=True)
class Importance:
    """How much a model's error rises without each input; made by :func:`importance`.

    Parameters
    ----------
    names : tuple of str
        Inputs, the one that matters most first; a column of categories is one of them, and so are inputs that
        are copies of each other, with commas between their names.
    mse : float
        Mean squared error of the rows as they are.
    rolled_mse : array of shape (n_inputs, n_repeats)
        The same with each input rolled in time.
    chance : array of shape (n_inputs,)
        Standard error of the mean rise: how far it would be another on other rows. From the means of 20
        blocks of rows one after the other, as errors of neighbours go together.
    rows : int
        Rows that were scored.
    """

    names: tuple[str, ...]
    mse: float
    rolled_mse: DoubleArray
    chance: DoubleArray
    rows: int

    @property
    def ratios(self) -> DoubleArray:
        """Squared error without each input over that with it: (n_inputs, n_repeats); 1 is of no use."""
        least = max(self.mse, np.finfo(np.float64).tiny)
        with np.errstate(over="ignore"):
            return np.asarray(np.where(self.rolled_mse == self.mse, 1.0, self.rolled_mse / least))

    @property
    def rise(self) -> DoubleArray:
        """Mean rise of the squared error, as a share of it: (n_inputs,)."""
        return np.asarray(self.ratios.mean(axis=1) - 1)

    @property
    def spread(self) -> DoubleArray:
        """Standard deviation of the rise over repeats: (n_inputs,); NaN of one repeat."""
        repeats = self.rolled_mse.shape[1]
        if repeats < 2:
            return np.full(len(self.names), np.nan)
        with np.errstate(over="ignore"):
            return np.asarray(self.ratios.std(axis=1, ddof=1))

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "rows": self.rows,
            "mse": self.mse,
            "inputs": [
                {"name": name, "rise": float(rise), "chance": float(chance), "rolled_mse": errors.tolist()}
                for name, rise, chance, errors in zip(
                    self.names, self.rise, self.chance, self.rolled_mse, strict=True
                )
            ],
        }


def importance(
    model: Predictor,
    panel: Panel,
    *,
    repeats: int = 5,
    rows: int = 5_000,
    seed: int = 0,
    on_step: Callable[[int, int], None] | None = None,
) -> Importance:
    """Measure how much a model's one-step error rises when an input is rolled in time.

    Parameters
    ----------
    model : Predictor
        Fitted: a `VARNNRegressor`, a baseline, or anything with ``predict(panel)``.
    panel : Panel
        Rows with labels, best those that the model was not trained on.
    repeats : int, default=5
        How often each input is rolled.
    rows : int, default=5_000
        Latest rows to score, about so many over all series. As many before them are predicted, too, if there
        are some, so that the first have a past.
    seed : int, default=0
        Of what inputs are rolled by.
    on_step : callable or None, default=None
        Called after each prediction with how many are done, and how many there are.

    Returns
    -------
    Importance
        Inputs, the one that matters most first.

    Examples
    --------
    >>> from varnn import Panel, VARNNRegressor
    >>> generator = np.random.default_rng(0)
    >>> X = generator.normal(size=(600, 2))
    >>> y = 3 * X[:, 1] + 0.1 * generator.normal(size=600)
    >>> panel = Panel.from_arrays(X, y, input_names=["noise", "cause"])
    >>> model = VARNNRegressor(epochs=2, hidden_size=8, ensemble=1).fit(panel.between(0, 400))
    >>> found = importance(model, panel.between(400, 600), repeats=3)
    >>> found.names, bool(found.rise[0] > 10), bool(abs(found.rise[1]) < 0.5)
    (('cause', 'noise'), True, True)
    """
    if repeats < 1 or rows < 1:
        raise ConfigError(f"repeats and rows must be at least 1; got {repeats} and {rows}.")
    fitted = getattr(model, "fitted_", None)
    if fitted is not None:  # the model's own inputs, which those below are rolled in
        panel = fitted.matched(panel)
    last = panel.latest(rows)
    panel = replace(panel.latest(2 * rows), texts=None)
    scored = np.isin(panel.rows, last.rows) & ~np.isnan(panel.target)
    if scored.sum() < FEWEST:
        raise DataError(
            f"importance is measured on rows with a label, at least {FEWEST}; there are "
            f"{int(scored.sum())}. Give more rows."
        )
    columns = _columns(panel)
    total, done = 2 + repeats * len(columns), 0
    edges = np.linspace(0, int(scored.sum()), _BLOCKS, endpoint=False).astype(np.int64)

    def errors(rolled: Panel) -> DoubleArray:
        """Squared errors of blocks of rows, each as its part of the mean over all."""
        nonlocal done
        with np.errstate(over="ignore"):
            squares = np.square(rolled.target - model.predict(rolled))[scored].astype(np.float64)
            found = np.add.reduceat(squares, edges) / len(squares)
        done += 1
        if on_step is not None:
            on_step(done, total)
        return np.asarray(found)

    base, generator = errors(panel), np.random.default_rng(seed)
    blocks = np.tile(base, (len(columns), repeats, 1))
    inputs = panel.inputs.copy()  # one copy for all: each input is rolled in it, and put back
    for which in columns.values():
        inputs[:, which] = _rolled(panel, panel.inputs[:, which], generator)
    makes_use = not np.array_equal(errors(replace(panel, inputs=inputs)), base)  # of any at all
    inputs[:] = panel.inputs
    for index, which in enumerate(columns.values() if makes_use else ()):
        for repeat in range(repeats):
            inputs[:, which] = _rolled(panel, panel.inputs[:, which], generator)
            blocks[index, repeat] = errors(replace(panel, inputs=inputs))
        inputs[:, which] = panel.inputs[:, which]
    rolled_mse, mse = blocks.sum(axis=2), float(base.sum())
    order = np.argsort(-rolled_mse.mean(axis=1), kind="stable")
    return Importance(
        names=tuple(list(columns)[one] for one in order),
        mse=mse,
        rolled_mse=rolled_mse[order],
        chance=_chance(blocks.mean(axis=1) - base, mse)[order],
        rows=int(scored.sum()),
    )


def _chance(differences: DoubleArray, mse: float) -> DoubleArray:
    """Standard error of sums of blocks (n, B) as a share of the error: of B blocks, each is a draw."""
    count = differences.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):
        spread = np.sqrt(count) * differences.std(axis=1, ddof=1) / max(mse, np.finfo(np.float64).tiny)
    return np.asarray(np.nan_to_num(spread, nan=np.inf, posinf=np.inf))


def _columns(panel: Panel) -> Mapping[str, list[int]]:
    """Which inputs are rolled together, by the name of their column or columns.

    The categories of a column are, so that one of them is 1; and columns that are all but copies of each
    other, as rows in which these differ are such as no model has ever seen.
    """
    places = {name: index for index, name in enumerate(panel.input_names)}
    columns = {
        column: [places[name] for name in spelt_out([column], panel.categories) if name in places]
        for column in source_columns(panel.input_names, panel.categories)
    }
    single = [name for name, which in columns.items() if len(which) == 1]
    joined: dict[str, list[str]] = {}  # the first of those that are alike -> all of them
    for name, first in zip(single, _first_alike(panel, [columns[one][0] for one in single]), strict=True):
        joined.setdefault(single[first], []).append(name)
    alike = {name for names in joined.values() for name in names}
    together = {", ".join(names): [columns[one][0] for one in names] for names in joined.values()}
    return together | {name: which for name, which in columns.items() if name not in alike}


def _first_alike(panel: Panel, columns: list[int]) -> list[int]:
    """For each of some inputs, the first among them that it is a copy of; its own place if of none."""
    values = panel.inputs[:, columns].astype(np.float64)
    complete = values[~np.isnan(values).any(axis=1)]
    if len(complete) < 2 or len(columns) > _MOST_COMPARED:
        return list(range(len(columns)))
    centred = complete - complete.mean(axis=0)
    size = np.sqrt(np.square(centred).sum(axis=0))
    scaled = centred / np.where(size > 0, size, 1.0)
    copies = np.abs(scaled.T @ scaled) > _COPY
    return [int(np.argmax(copies[one])) if size[one] > 0 else one for one in range(len(columns))]


def _rolled(panel: Panel, values: FloatArray, generator: np.random.Generator) -> FloatArray:
    """Roll some inputs (N, C) in time within each series, or among series, where they never change in one."""
    if panel.n_series > 1 and _is_constant(panel, values).all():
        other = (np.arange(panel.n_series) + generator.integers(1, panel.n_series)) % panel.n_series
        return np.asarray(np.repeat(values[panel.starts[other]], panel.lengths, axis=0))
    rolled = values.copy()
    for begin, end in zip(panel.starts[:-1], panel.starts[1:], strict=True):
        length = int(end - begin)
        least = max(1, int(_LEAST * length))
        by = int(generator.integers(least, max(least + 1, length - least + 1)))
        rolled[begin:end] = np.roll(values[begin:end], by, axis=0)
    return rolled


def _is_constant(panel: Panel, values: FloatArray) -> BoolArray:
    """Whether some inputs are the same in all rows of each series: (S,)."""
    first = np.repeat(values[panel.starts[:-1]], panel.lengths, axis=0)
    same = ((values == first) | (np.isnan(values) & np.isnan(first))).all(axis=1)
    return np.asarray(np.logical_and.reduceat(same, panel.starts[:-1]))
