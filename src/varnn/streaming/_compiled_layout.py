"""Where the numbers of a model and of its series lie in few flat arrays, for compiled steps.

A call of compiled code pays for every array it is handed. So what a model has learnt is one array of doubles
and one of single precision, and so is what a series carries; lists of places say where each part begins.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from varnn._types import DoubleArray, IntArray
from varnn.model.aggregation import LEAST, RATES
from varnn.model.compiled_linear import LinearNumbers
from varnn.model.fitted import Fitted
from varnn.model.intervals.error_scale import ErrorScale
from varnn.network.compiled_carried import BEFORE, LARGEST, StepMatrices

Float32 = npt.NDArray[np.float32]

# Parts of the doubles that a model has learnt, in their order.
(
    INPUT_OFFSET,
    INPUT_SCALE,
    SCALING,  # limit of inputs, offset and scale of the target, limit of states
    LINEAR,
    LINEAR_WEIGHTS,
    LINEAR_BOUNDS,
    FILTER,  # change, low, high
    CENTRE,
    DEVIATION,
    EXPERTS,  # unit of regressors, what says nothing, least scale, bounds of errors: readout's, linear part's
    PRIOR,
    STEPS,
    LINEAR_STEPS,
    SPREAD,
    SPREAD_NUMBERS,  # unit and largest
) = range(15)

# Parts of its numbers in single precision, which are listed after those.
TO_HIDDEN, READOUT, READOUT_BIAS, TO_MEMORY, LINEAR_WHITENING, WHITENING = range(16, 22)

# Whole numbers that say how large things are, and which are there.
(
    GIVEN,
    COLUMNS,
    HIDDEN,
    MEMORY,
    STATE,
    MEMBERS,
    REGRESSORS,
    RATES_OF_READOUT,
    EXPERTS_COUNT,
    SEASON,  # column of the regressors, or -1
    FILTERED,
    POSITIVE,
    TRACKED,
    FILL,  # 0: forward, 1: with zero, 2: not at all
    CHANGES,
    LAGS,
    LINEAR_INPUTS,
    LABELS_KEPT,
    OWN,  # features that each member whitens by itself
    PERIODS,  # these come last
) = range(20)

# Parts of what a series carries from row to row, in the order of a snapshot.
(
    RESIDUAL,
    OUTLIERS,
    LINEAR_STATE,
    SCORES,
    SCALE,
    CHANGE,
    LINEAR_CHANGE,
    TRACKER,
    LIFTED,
    KNOWN,
) = range(10)

# Parts of what the open row of a series leaves for its label.
(
    FILLED,
    NOW,  # linear prediction, prediction, combined, expected scale, followed by the linear part
    REGRESSED,
    STANDARD,
    PHI,
    WHITE,
    LINEAR_WHITE,
    OUTPUTS,
    CORRECTIONS,
    SAID,
    BELIEVED,
) = range(11)


class Layout(NamedTuple):
    """A model as compiled code takes it."""

    sizes: IntArray
    at: IntArray  # where the parts of ``numbers`` and of ``weights`` begin
    numbers: DoubleArray
    weights: Float32
    carried_at: IntArray  # where the parts of what a series carries begin
    open_at: IntArray  # and those of its open row
    fresh: DoubleArray  # what a series carries before its first row

    @property
    def row_width(self) -> int:
        """Numbers in single precision that each member has for a series."""
        sizes = self.sizes
        return int(BEFORE + sizes[STATE] + sizes[COLUMNS])


def layout_of(model: Fitted) -> Layout:
    """Lay out a model that `varnn.streaming._compiled_step` handles."""
    pipeline, experts, cell = model.pipeline, model.experts, model.architecture
    linear = pipeline.linear
    if experts is None or experts.linear is None or linear is None:
        raise TypeError("compiled steps are for models with a linear part and experts")
    scaling, part, calibrator = pipeline.scaling, LinearNumbers.of(linear), model.calibrator
    label_filter = pipeline.label_filter
    tracked = isinstance(calibrator, ErrorScale)
    width = cell.memory_size + cell.activation_memory * cell.hidden_size
    given = len(model.input_names) if pipeline.use_inputs else 0
    regressors, rates, count = linear.form.width, len(experts.readout.forgetting), len(experts.prior)
    members, features = experts.readout.gain.shape[:2]
    sizes = np.array(
        [
            given,
            cell.n_inputs,
            cell.hidden_size,
            cell.memory_size,
            width,
            members,
            regressors,
            rates,
            count,
            -1 if experts.season is None else experts.season,
            label_filter is not None,
            model.positive,
            tracked,
            {"forward": 0, "zero": 1}.get(pipeline.fill, 2),
            *part.sizes,
            experts.readout.own,
            *part.periods,
        ],
        np.int64,
    )
    nothing = -scaling.target_offset / scaling.target_scale
    bounds = (experts.readout.bound, experts.linear.bound)
    limit = min(model.state_limit, LARGEST)
    spread = calibrator if isinstance(calibrator, ErrorScale) else None
    at, numbers = _joined(
        [
            scaling.input_offset,
            scaling.input_scale,
            [scaling.input_limit, scaling.target_offset, scaling.target_scale, limit],
            part.numbers,
            part.weights,
            part.bounds,
            [] if label_filter is None else [label_filter.change, label_filter.low, label_filter.high],
            experts.centre,
            experts.deviation,
            [experts.unit, nothing, LEAST * experts.noise, *bounds],
            experts.prior,
            1 - np.array(experts.readout.forgetting),
            1 - np.array(experts.linear.forgetting),
            [] if spread is None else spread.weights,
            [] if spread is None else [spread.unit, spread.largest],
        ]
    )
    factors = (experts.linear.whitening.swapaxes(1, 2), experts.readout.whitening.swapaxes(1, 2))
    weights_at, weights = _joined([*StepMatrices.of(cell, model.weights), *factors])
    judged = [np.nan, 0.0, 0.0, 0.0, 0.0, 0.0, np.nan, 0.0, 0.0]
    labels = np.full(part.sizes[3], linear.mean)
    lags = max(int(part.sizes[1]), 0) * int(part.sizes[2])
    carried_at, fresh = _joined(
        [
            [np.nan],
            [] if label_filter is None else judged,
            np.concatenate([[0.0, 0.0, linear.mean, 0.0], np.zeros(part.sizes[0]), np.zeros(lags), labels]),
            np.zeros(count * len(RATES)),
            [experts.noise],
            np.zeros(rates * members * features),
            np.zeros(1 + regressors),
            [] if spread is None else _tracker(spread),
            [0.0],
            pipeline.initial_inputs,
        ]
    )
    open_at, _ = _joined(
        [
            np.zeros(size)
            for size in (
                len(model.input_names),
                5,
                regressors,
                regressors,
                features,
                members * features,
                1 + regressors,
                members,
                members * rates,
                count,
                count,
            )
        ]
    )
    at = np.concatenate([at, weights_at])
    return Layout(sizes, at, numbers, weights.astype(np.float32), carried_at, open_at, fresh)


def _tracker(spread: ErrorScale) -> DoubleArray:
    """What a tracker begins with."""
    return np.asarray(spread.tracker(1).state()[0])


def _joined(parts: list[Any]) -> tuple[IntArray, DoubleArray]:
    """Put arrays one after the other; say where each begins, and where the last ends."""
    flat = [np.asarray(part).ravel() for part in parts]
    return np.cumsum([0, *(len(part) for part in flat)]), np.concatenate(flat)
