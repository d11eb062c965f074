"""Fitted model + panel -> one-step predictions and intervals, in one pass that goes forward.

::

    rows -> chunk -> prepared (`varnn.model.pipeline`)
         -> hidden layer and output (`varnn.network.scoring`, or `varnn.network.carried`)
         -> prediction, of all experts together (`varnn.model.experts`) -> bounds (`varnn.model.intervals`)

A panel goes through some rows at a time, so that what a prediction takes does not grow with the rows; what
runs on from row to row (what experts learn, tracked quantiles) is carried from chunk to chunk. A stream
(`varnn.streaming`) goes the same way with one row at a time.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from varnn._types import BoolArray, DoubleArray, FloatArray, IntArray
from varnn.data.chunks import ROWS_AT_ONCE, Chunk, chunks
from varnn.data.panel import Panel
from varnn.errors import DataError
from varnn.model.experts import Followed, LiveExperts
from varnn.model.fitted import Fitted
from varnn.model.floor import floored, lifted
from varnn.model.intervals import Interval, Tracker, check_levels, known_calibrator
from varnn.model.intervals.error_scale import ScaleTracker
from varnn.model.linear import LinearRows
from varnn.model.warm_start import begun
from varnn.network import compiled_code
from varnn.network.carried import CarriedCell, score_carried
from varnn.network.scoring import Scores, score

_HIDDEN_ROWS_AT_ONCE = 1 << 13  # whose hidden layers are kept: 8 MB, for 4 members of 64 units


class PredictedChunk(NamedTuple):
    """Some rows of a panel, predicted: n rows, E members, K hidden units, L levels."""

    rows: slice  # of the panel
    starts: IntArray  # of its series, within the chunk
    linear: DoubleArray  # (n,): the linear prediction
    correction: DoubleArray  # (n,): the network's, before it is shrunk
    prediction: DoubleArray  # (n,): the experts' together; without any, linear + shrinkage * correction
    hidden: Any  # (E, n, K): the layer it was read from; None unless kept
    followed: Followed | None = None  # what each expert said, and what it counted
    lower: DoubleArray | None = None  # (n, L)
    upper: DoubleArray | None = None

    @property
    def interval(self) -> Interval:
        """The predictions with their bounds, which are None where no levels were asked for."""
        return Interval(self.prediction, self.lower, self.upper)


def predict(fitted: Fitted, panel: Panel, *, resume: bool | None = None) -> FloatArray:
    """One-step predictions of every row, in the target's units and the panel's order: (N,)."""
    predictions = np.empty(len(panel))
    with compiled_code.worth_it_for(len(panel)):  # all rows go one way, whatever the chunks
        for rows, found in predict_rows(fitted, panel, resume=resume):
            predictions[rows] = found.prediction
    return predictions


def predict_intervals(
    fitted: Fitted,
    panel: Panel,
    interval: float | Sequence[float] | FloatArray,
    *,
    resume: bool | None = None,
) -> Interval:
    """One-step predictions (N,) with intervals: bounds are (N,) for one level, (N, L) for several."""
    levels = check_levels(interval)
    if np.isnan(panel.target).all():
        raise DataError(
            "an interval is made from the errors before it, so rows need labels; they have none. "
            "Give predict(X, y, interval=...)."
        )
    shape = (len(panel), len(levels))
    whole = Interval(np.empty(len(panel)), np.empty(shape), np.empty(shape))
    with compiled_code.worth_it_for(len(panel)):
        for rows, found in predict_rows(fitted, panel, levels, resume=resume):
            for values, some in zip(whole, found, strict=True):
                values[rows] = some
    if isinstance(interval, Sequence | np.ndarray):
        return whole
    return Interval(whole.prediction, whole.lower[:, 0], whole.upper[:, 0])


def predict_rows(
    fitted: Fitted,
    panel: Panel,
    levels: DoubleArray | None = None,
    *,
    resume: bool | None = None,
    most: int = ROWS_AT_ONCE,
) -> Iterator[tuple[slice, Interval]]:
    """Predict a panel some rows at a time, from the training rows on where it follows them.

    Parameters
    ----------
    fitted, panel, levels, most
        As those of :func:`predict_chunks`.
    resume : bool or None, default=None
        Whether the rows follow the training rows; None goes by their times (`varnn.model.warm_start`).

    Yields
    ------
    rows, found
        Rows of the panel, and what is predicted for them; bounds are None without levels.
    """
    joined, own = begun(fitted, fitted.matched(panel), resume)
    done = 0
    for chunk in predict_chunks(fitted, joined, levels, most=most, own=own):
        here = own[chunk.rows]
        rows = slice(done, done + int(np.count_nonzero(here)))
        done = rows.stop
        if here.all():
            yield rows, chunk.interval
        elif here.any():
            yield rows, Interval(*(None if one is None else one[here] for one in chunk.interval))


def predict_chunks(
    fitted: Fitted,
    panel: Panel,
    levels: DoubleArray | None = None,
    *,
    keep_hidden: bool = False,
    most: int = ROWS_AT_ONCE,
    own: BoolArray | None = None,
) -> Iterator[PredictedChunk]:
    """Predict a panel chunk by chunk.

    Parameters
    ----------
    fitted : Fitted
        The model.
    panel : Panel
        The rows.
    levels : array of shape (L,), optional
        Levels of intervals to give with the predictions.
    keep_hidden : bool, default=False
        Whether to give the hidden layers, too.
    most : int, default=ROWS_AT_ONCE
        Rows at a time; fewer where hidden layers are needed, which are large.
    own : array of shape (N,), optional
        Rows that are learnt from; others are only looked back on. None is all.
    """
    calibrator = None if levels is None else known_calibrator(fitted.calibrator)
    tracker: Tracker | None = None
    network = _Network(fitted, keep_hidden=keep_hidden or calibrator is not None)
    rows = fitted.pipeline.in_chunks(
        fitted.matched(panel),
        most=min(most, network.most),
        context=fitted.rows_before,
        regressors=fitted.experts is not None,
    )
    if fitted.experts is not None and compiled_code.is_worth_it(len(panel)):
        _announce()
        rows = compiled_code.ahead(rows)  # of chunks that are small, as their hidden layers are kept
    # Rows that may be predicted below zero: a label that is not plausible does not lift the floor.
    free = lifted(fitted.pipeline.plausible(panel)) if fitted.positive else None
    for chunk, linear in rows:
        learnt = slice(None) if own is None or own[chunk.rows].all() else own[chunk.rows]
        starts, hidden, found = network(chunk, linear, learnt)
        if free is not None:
            found = found._replace(prediction=floored(found.prediction, free[chunk.rows]))
        if calibrator is not None and levels is not None:
            if tracker is None or not chunk.continues:
                tracker = calibrator.tracker(len(starts) - 1, levels)
            prediction = found.prediction
            errors = _where(learnt, panel.target[chunk.rows] - prediction)
            below, above = _followed(tracker, hidden[0], errors, starts, levels)
            lower, upper = prediction[:, None] + below, prediction[:, None] + above
            if free is not None:
                lower = floored(lower, free[chunk.rows, None])
            found = found._replace(lower=lower, upper=upper)
        yield found


def _announce() -> None:
    """Say that code is compiled, if that has to be done first."""
    from varnn.model.intervals.compiled_error_scale import tracked_rows  # the last of all that is compiled
    from varnn.network.jit import announce

    announce(tracked_rows)


def _followed(
    tracker: Tracker, hidden: Any, errors: DoubleArray, starts: IntArray, levels: DoubleArray
) -> tuple[DoubleArray, DoubleArray]:
    """Let a tracker follow the errors, by compiled code where that is worth it."""
    if type(tracker) is ScaleTracker and compiled_code.is_worth_it(len(errors)):
        from varnn.model.intervals.compiled_error_scale import follow_compiled

        return follow_compiled(tracker, hidden, errors, starts, levels)
    return tracker.follow(hidden, errors, starts, levels)


def _where(learnt: slice | BoolArray, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Take values of rows that are learnt from; others are missing."""
    return values if isinstance(learnt, slice) else np.where(learnt, values, np.nan)


class ScoredChunk(NamedTuple):
    """Some prepared rows, scored: what the network says of them, in its own units."""

    rows: slice
    hidden: Any  # (E, n, K)
    output: DoubleArray  # (n,): mean of the members


def score_chunks(fitted: Fitted, prepared: Panel) -> Iterator[ScoredChunk]:
    """Score rows that are prepared already, chunk by chunk, as their hidden layers are large."""
    scorer = Scorer(fitted, keep_hidden=True)
    for chunk in chunks(prepared, most=_HIDDEN_ROWS_AT_ONCE, context=fitted.rows_before):
        scores = scorer(chunk)
        yield ScoredChunk(chunk.rows, scores.hidden, scores.predictions.mean(axis=0, dtype=np.float64))


def rows_scored(fitted: Fitted, panel: Panel) -> tuple[npt.NDArray[np.float32], DoubleArray]:
    """Hidden layers (E, N, K) and regressors of the linear part (N, F) of every row."""
    layers, regressors, scorer = [], [], Scorer(fitted, keep_hidden=True)
    rows = fitted.pipeline.in_chunks(
        fitted.matched(panel), most=_HIDDEN_ROWS_AT_ONCE, context=fitted.rows_before, regressors=True
    )
    for chunk, linear in rows:
        layers.append(scorer(chunk).hidden)
        regressors.append(np.empty((len(linear.last), 0)) if linear.regressors is None else linear.regressors)
    return np.concatenate(layers, axis=1), np.concatenate(regressors)


class Scorer:
    """The network on prepared rows, one chunk after the other: by member, in its own units, not adapted.

    Parameters
    ----------
    fitted : Fitted
        The model.
    keep_memory, keep_hidden : bool, default=False
        Also give the residual memory each row was predicted with, and the hidden layer.
    """

    def __init__(self, fitted: Fitted, *, keep_memory: bool = False, keep_hidden: bool = False) -> None:
        self.fitted = fitted
        self._carried: CarriedCell | None = None
        self._kept = {"keep_memory": keep_memory, "keep_hidden": keep_hidden}

    def __call__(self, chunk: Chunk) -> Scores:
        """Score the rows of a chunk, without its context."""
        fitted, panel, context = self.fitted, chunk.panel, chunk.context
        cell, weights = fitted.architecture, fitted.weights
        if not fitted.carried:
            rows = (panel.inputs, panel.target, panel.first_rows)
            found = score(cell, weights, *rows, fitted.window, **self._kept)
            return Scores(*(None if one is None else one[:, context:] for one in found))
        if self._carried is None or not chunk.continues:
            self._carried = CarriedCell(cell, weights, panel.n_series, fitted.state_limit)
        return score_carried(self._carried, panel.inputs, panel.target, panel.starts, **self._kept)


def residual_memory(
    fitted: Fitted, panel: Panel, first: int = 0, last: int | None = None, *, resume: bool | None = None
) -> npt.NDArray[np.float32]:
    """Residual memory that the rows ``first:last`` were predicted with: (n, E * M), member by member."""
    last = len(panel) if last is None else last
    memory = np.empty((last - first, fitted.n_members * fitted.architecture.memory_size), np.float32)
    joined, own = begun(fitted, fitted.matched(panel), resume)
    numbers = np.where(own, np.cumsum(own) - 1, -1)  # of the panel's own rows
    rows = fitted.pipeline.in_chunks(joined, most=_HIDDEN_ROWS_AT_ONCE, context=fitted.rows_before)
    scorer = Scorer(fitted, keep_memory=True)
    for chunk, _ in rows:
        states = scorer(chunk).memory  # (E, n, M)
        here = numbers[chunk.rows]
        wanted = (here >= first) & (here < last)
        if wanted.any():
            memory[here[wanted] - first] = np.concatenate(list(states[:, wanted]), axis=1)
    return memory


class _Network:
    """The network and the experts on one chunk after the other."""

    def __init__(self, fitted: Fitted, *, keep_hidden: bool) -> None:
        self.fitted = fitted
        self.keep_hidden = keep_hidden or fitted.experts is not None
        self.experts: LiveExperts | None = None
        self._scorer = Scorer(fitted, keep_hidden=self.keep_hidden)

    @property
    def most(self) -> int:
        """Rows at a time."""
        return _HIDDEN_ROWS_AT_ONCE if self.keep_hidden else ROWS_AT_ONCE

    def __call__(
        self, chunk: Chunk, linear: LinearRows, learnt: slice | BoolArray
    ) -> tuple[IntArray, Any, PredictedChunk]:
        """Starts of the series, hidden layers (E, n, K), and the rows predicted."""
        fitted, context, panel = self.fitted, chunk.context, chunk.panel
        outputs, _, hidden = self._scorer(chunk)
        starts = (panel.starts - context).clip(0)
        correction = fitted.pipeline.scaling.restore(outputs.mean(axis=0, dtype=np.float64))
        if fitted.experts is None:
            prediction = linear.predictions + fitted.shrinkage * correction + linear.doubt
            followed = None
        else:
            if self.experts is None or not chunk.continues:
                self.experts = LiveExperts(fitted.experts, fitted.pipeline.scaling, panel.n_series)
            targets = _where(learnt, panel.target[context:])
            known = linear._replace(residuals=_where(learnt, linear.residuals))
            followed = self.experts.follow(known, hidden, outputs, panel.inputs[context:], targets, starts)
            prediction = followed.predictions
        found = PredictedChunk(
            chunk.rows, starts, linear.predictions, correction, prediction, hidden, followed
        )
        return starts, hidden, found
