"""All of one step of the default model in two calls of compiled code; needs numba (``varnn[fast]``).

``predict_rows`` takes one row of each of some series, ``observe_rows`` their labels. The parts are those of
the compiled modules of `varnn.network` and `varnn.model`; here they are put together, as
`varnn.streaming._numpy_step` puts together what they are the compiled form of.
"""

from typing import Any

import numpy as np

from varnn._types import DoubleArray, FloatArray, IntArray
from varnn.data.finite import LARGEST
from varnn.data.preparation import LIMIT
from varnn.model.aggregation import RATES
from varnn.model.compiled_adaptation import correct, learn, whiten
from varnn.model.compiled_aggregation import believe, combine, weigh
from varnn.model.compiled_linear import observe_linear, predict_linear
from varnn.model.compiled_outliers import doubt_of, judged
from varnn.model.experts import FARTHEST
from varnn.model.intervals.compiled_error_scale import expected_scale, told_by, track
from varnn.network.compiled_carried import BEFORE, advance, remember
from varnn.network.jit import Scalar, kernel
from varnn.streaming import _compiled_layout as lay

_RATES = len(RATES)
_LAST = 2  # place of the last label in the state of the linear part


@kernel
def _part(numbers: FloatArray, at: IntArray, which: int) -> Any:
    """One of the parts that lie one after the other, of either precision."""
    return numbers[at[which] : at[which + 1]]


@kernel
def predict_rows(
    x: DoubleArray,
    calendar: DoubleArray,
    levels: IntArray,
    shares: DoubleArray,
    sizes: IntArray,
    at: IntArray,
    numbers: DoubleArray,
    weights: FloatArray,
    carried_at: IntArray,
    open_at: IntArray,
    carried: DoubleArray,
    rows: FloatArray,
    hidden: FloatArray,
    opened: DoubleArray,
    found: DoubleArray,
) -> bool:
    """Predict one row of each of n series; tell whether all inputs could be used.

    Parameters
    ----------
    x, calendar : arrays of shape (n, D) and (columns,)
        Inputs, and what the calendar says of the row.
    levels, shares : arrays of shape (2 L,)
        Quantiles that bounds lie between, lower ones first (`varnn.model.intervals.levels`).
    sizes, at, numbers, weights, carried_at, open_at
        Those of `varnn.streaming._compiled_layout.Layout`.
    carried, rows, hidden, opened : arrays of shape (n, any), (n, E, any), (n, E, K) and (n, any)
        What the series carry, and what their open rows leave for their labels.
    found : array of shape (n, 1 + 2 L)
        Predictions and bounds, to be filled in.
    """
    fill = sizes[lay.FILL]
    for series in range(len(x)):
        known = _part(carried[series], carried_at, lay.KNOWN)
        filled = _part(opened[series], open_at, lay.FILLED)
        for place in range(len(known)):
            value = x[series, place]
            if not abs(value) <= LARGEST:
                if value == value or fill == 2:
                    return False
                value = known[place] if fill == 0 else 0.0
            filled[place] = value
    for series in range(len(x)):
        _predict(
            calendar,
            sizes,
            at,
            numbers,
            weights,
            carried_at,
            open_at,
            carried[series],
            rows[series],
            hidden[series],
            opened[series],
        )
        _bounds(
            levels,
            shares,
            sizes,
            _part(carried[series], carried_at, lay.TRACKER),
            carried[series, carried_at[lay.LIFTED]],
            _part(opened[series], open_at, lay.NOW),
            found[series],
        )
    return True


@kernel
def _predict(
    calendar: DoubleArray,
    sizes: IntArray,
    at: IntArray,
    numbers: DoubleArray,
    weights: FloatArray,
    carried_at: IntArray,
    open_at: IntArray,
    carried: DoubleArray,
    rows: FloatArray,
    hidden: FloatArray,
    opened: DoubleArray,
) -> None:
    """Predict the row of one series whose inputs are there, gaps filled."""
    given, columns, members, count = (
        sizes[lay.GIVEN],
        sizes[lay.COLUMNS],
        sizes[lay.MEMBERS],
        sizes[lay.REGRESSORS],
    )
    enriched = columns - 2
    linear, now = _part(carried, carried_at, lay.LINEAR_STATE), _part(opened, open_at, lay.NOW)
    regressors, standard = _part(opened, open_at, lay.REGRESSED), _part(opened, open_at, lay.STANDARD)
    seen = np.empty(columns)
    seen[:given] = opened[:given]
    seen[given:enriched] = calendar
    now[0] = predict_linear(
        seen[:enriched],
        linear,
        sizes[lay.CHANGES : lay.OWN],
        sizes[lay.PERIODS :],
        _part(numbers, at, lay.LINEAR),
        _part(numbers, at, lay.LINEAR_WEIGHTS),
        _part(numbers, at, lay.LINEAR_BOUNDS).reshape(2, -1),
        regressors,
    )
    last = linear[_LAST]
    seen[enriched], seen[enriched + 1] = last, now[0] - last
    scaling = _part(numbers, at, lay.SCALING)
    limit, target_offset, target_scale = scaling[0], scaling[1], scaling[2]
    offset, scale = _part(numbers, at, lay.INPUT_OFFSET), _part(numbers, at, lay.INPUT_SCALE)
    for column in range(columns):
        seen[column] = min(max((seen[column] - offset[column]) / scale[column], -limit), limit)
    unit = numbers[at[lay.EXPERTS]]
    _standardise(regressors, _part(numbers, at, lay.CENTRE), _part(numbers, at, lay.DEVIATION), standard)
    # The linear part, learning.
    white, change = _part(opened, open_at, lay.LINEAR_WHITE), _part(carried, carried_at, lay.LINEAR_CHANGE)
    phi = np.empty(max(1 + count, open_at[lay.PHI + 1] - open_at[lay.PHI]))
    factor = _part(weights, at, lay.LINEAR_WHITENING).reshape(1 + count, 1 + count)
    whiten(hidden[0, :0], standard, factor, 1 + count, phi[: 1 + count], white, white)
    correct(white, change.reshape(1, -1), now[4:5])
    # The members of the network, and their readouts, learning.
    if unit != 0:
        for place in range(count):
            standard[place] *= unit
    joined = standard if unit != 0 else standard[:0]
    size, row_width = sizes[lay.HIDDEN], rows.shape[1] - 1
    to_hidden = _part(weights, at, lay.TO_HIDDEN).reshape(members, size, row_width)
    readout = _part(weights, at, lay.READOUT).reshape(members, size)
    bias = _part(weights, at, lay.READOUT_BIAS)
    features = size + len(joined) + 1
    whitening = _part(weights, at, lay.WHITENING).reshape(members, features, features)
    whites = _part(opened, open_at, lay.WHITE).reshape(members, features)
    outputs, rates = _part(opened, open_at, lay.OUTPUTS), sizes[lay.RATES_OF_READOUT]
    changes = _part(carried, carried_at, lay.CHANGE).reshape(members, rates, features)
    corrections = _part(opened, open_at, lay.CORRECTIONS).reshape(members, rates)
    for member in range(members):
        row = rows[member]
        for column in range(columns):
            row[row_width + 1 - columns + column] = seen[column]
        outputs[member] = advance(row, to_hidden[member], readout[member], bias[member], hidden[member])
        own = sizes[lay.OWN] if member else features
        whiten(hidden[member], joined, whitening[member], own, phi[:features], whites[0], whites[member])
        correct(whites[member], changes[member], corrections[member])
    # What each expert says, and all of them together.
    said, believed = _part(opened, open_at, lay.SAID), _part(opened, open_at, lay.BELIEVED)
    said[0] = last - now[0]
    place, season = 1, sizes[lay.SEASON]
    if season >= 0:
        said[1] = said[0] + regressors[season]
        place = 2
    said[place] = 0.0
    said[place + 1] = target_scale * now[4]
    mean = 0.0
    for member in range(members):
        mean += outputs[member]
    mean /= members
    said[place + 2] = mean * target_scale + target_offset
    for rate in range(rates):
        learnt = 0.0
        for member in range(members):
            learnt += corrections[member, rate]
        said[place + 3 + rate] = (mean + learnt / members) * target_scale + target_offset
    weigh(_part(carried, carried_at, lay.SCORES).reshape(-1, _RATES), _part(numbers, at, lay.PRIOR), believed)
    now[2] = combine(said, believed)
    doubt = doubt_of(_part(carried, carried_at, lay.OUTLIERS)) if sizes[lay.FILTERED] else 0.0
    now[1] = now[0] + now[2] + doubt
    if sizes[lay.POSITIVE] and carried[carried_at[lay.LIFTED]] == 0:
        now[1] = max(now[1], 0.0)
    if sizes[lay.TRACKED]:
        spread, tracker = _part(numbers, at, lay.SPREAD), _part(carried, carried_at, lay.TRACKER)
        usual = numbers[at[lay.SPREAD_NUMBERS]]
        now[3] = expected_scale(told_by(hidden[0], spread), tracker, spread, usual)


@kernel
def _standardise(
    regressors: DoubleArray, centre: DoubleArray, deviation: DoubleArray, standard: DoubleArray
) -> None:
    for place in range(len(standard)):
        found = (regressors[place] - centre[place]) / deviation[place]
        standard[place] = min(max(found, -FARTHEST), FARTHEST)


@kernel
def _bounds(
    levels: IntArray,
    shares: DoubleArray,
    sizes: IntArray,
    tracker: DoubleArray,
    lifted: Scalar,
    now: DoubleArray,
    found: DoubleArray,
) -> None:
    """Fill in a prediction and its bounds."""
    found[0] = now[1]
    half = len(levels) // 2
    for place in range(len(levels)):
        left, right = tracker[levels[place] - 1], tracker[levels[place]]
        reach = (left + shares[place] * (right - left)) * (now[3] * tracker[-1])
        # The median may lie off the prediction; an interval never leaves its own prediction out.
        bound = now[1] + (min(reach, 0.0) if place < half else max(reach, 0.0))
        if place < half and sizes[lay.POSITIVE] and lifted == 0:
            bound = max(bound, 0.0)
        found[1 + place] = bound


@kernel
def observe_rows(
    taught: bool,
    labels: DoubleArray,
    sizes: IntArray,
    at: IntArray,
    numbers: DoubleArray,
    weights: FloatArray,
    carried_at: IntArray,
    open_at: IntArray,
    carried: DoubleArray,
    rows: FloatArray,
    hidden: FloatArray,
    opened: DoubleArray,
) -> None:
    """Take in the labels (n,) of the rows predicted last; without ``taught`` they are only looked back on.

    Others are as those of :func:`predict_rows`.
    """
    for series in range(len(labels)):
        _observe(
            labels[series],
            taught,
            sizes,
            at,
            numbers,
            weights,
            carried_at,
            open_at,
            carried[series],
            rows[series],
            hidden[series],
            opened[series],
        )


@kernel
def _observe(
    label: Scalar,
    taught: bool,
    sizes: IntArray,
    at: IntArray,
    numbers: DoubleArray,
    weights: FloatArray,
    carried_at: IntArray,
    open_at: IntArray,
    carried: DoubleArray,
    rows: FloatArray,
    hidden: FloatArray,
    opened: DoubleArray,
) -> None:
    now = _part(opened, open_at, lay.NOW)
    if sizes[lay.TRACKED] and taught:
        spread = _part(numbers, at, lay.SPREAD_NUMBERS)
        track(label - now[1], now[3], spread[0], spread[1], _part(carried, carried_at, lay.TRACKER))
    below = label < 0
    if sizes[lay.FILTERED]:
        rule = _part(numbers, at, lay.FILTER)
        label = judged(label, rule[0], rule[1], rule[2], _part(carried, carried_at, lay.OUTLIERS))
    residual = label - now[0]
    carried[carried_at[lay.RESIDUAL]] = residual
    part = _part(numbers, at, lay.LINEAR)
    observe_linear(
        label,
        _part(carried, carried_at, lay.LINEAR_STATE),
        sizes[lay.CHANGES : lay.OWN],
        part,
        _part(opened, open_at, lay.REGRESSED),
    )
    if sizes[lay.POSITIVE] and below and residual == residual:  # one that is not plausible does not count
        carried[carried_at[lay.LIFTED]] = 1.0
    scaling = _part(numbers, at, lay.SCALING)
    target = np.nan
    if abs(residual) <= part[3]:  # those larger than any change could be are missing
        target = min(max((residual - scaling[1]) / scaling[2], -LIMIT), LIMIT)
    members, width = sizes[lay.MEMBERS], sizes[lay.MEMORY]
    outputs = _part(opened, open_at, lay.OUTPUTS)
    if taught:
        how = _part(numbers, at, lay.EXPERTS)
        nothing, least, bound, linear_bound = how[1], how[2], how[3], how[4]
        steps = _part(numbers, at, lay.STEPS)
        changes = _part(carried, carried_at, lay.CHANGE).reshape(members, len(steps), -1)
        whites = _part(opened, open_at, lay.WHITE).reshape(members, -1)
        corrections = _part(opened, open_at, lay.CORRECTIONS).reshape(members, -1)
        for member in range(members):
            left = target - outputs[member]
            learn(left, whites[member], corrections[member], steps, bound, changes[member])
        learn(
            target - nothing,
            _part(opened, open_at, lay.LINEAR_WHITE),
            now[4:5],
            _part(numbers, at, lay.LINEAR_STEPS),
            linear_bound,
            _part(carried, carried_at, lay.LINEAR_CHANGE).reshape(1, -1),
        )
        believe(
            residual - now[2],
            _part(opened, open_at, lay.SAID),
            _part(opened, open_at, lay.BELIEVED),
            least,
            _part(carried, carried_at, lay.SCORES).reshape(-1, _RATES),
            _part(carried, carried_at, lay.SCALE),
        )
    state = rows.shape[1] - BEFORE - sizes[lay.COLUMNS]
    to_memory = _part(weights, at, lay.TO_MEMORY).reshape(members, width, -1)
    news, most = np.empty(width, weights.dtype), weights.dtype.type(scaling[3])
    for member in range(members):
        error = weights.dtype.type(target - outputs[member])
        remember(target == target, error, hidden[member], rows[member], state, to_memory[member], most, news)
    known = _part(carried, carried_at, lay.KNOWN)
    known[:] = opened[: len(known)]


@kernel
def weigh_rows(scores: DoubleArray, prior: DoubleArray, weights: DoubleArray) -> None:
    """Fill in the weights (n, K) that the experts of n series have, by their scores (n, K J)."""
    for series in range(len(weights)):
        weigh(scores[series].reshape(-1, _RATES), prior, weights[series])
