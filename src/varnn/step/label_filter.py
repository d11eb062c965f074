"""Is this label plausible? A rate-of-change filter that leaves glitches out and follows shifts.

A label is a lag of the linear part for the next rows, it makes the memory, and teaches the readout: one that
a broken sensor sent would spoil all three. So it is compared with the last label that was accepted ::

    |y_t - accepted| / rows between  <=  2 x largest change per row of the training labels     plausible

Otherwise it counts as missing for later rows, but it is accepted if it comes after another rejected label, on
the same side and at least half as far off; and so is the third within `RECENT_ROWS`. So nothing of the
training rows is ever rejected, and a shift of the level is followed one row late, or two if it is too far off
to be pending (below). A confirmed shift shows that changes may be larger than they were: the bound rises to
twice that change, and halves every thousand rows until it is where it started. The first label of a series is
compared with the range of the training labels.

A rejected label may be a glitch, or the first of a shift. Until the next label arrives, predictions move part
of the way towards it: Laplace's rule of succession over the pending labels that the series has had. A half is
where it starts, as that loses least in the worse of the two cases. A label too far off to be anything but a
glitch does not move predictions.

This is the rate-of-change test of sensor quality control [1]_, with confirmation. A Hampel filter [2]_, [3]_
replaces a value that is far from the median of a window around it; here the last accepted label stands for
the median, as later labels are not known yet, and the largest change of the training labels for the
deviation.

References
----------
.. [1] U.S. Integrated Ocean Observing System, "Manual for Real-Time Quality Control of In-situ Temperature
   and Salinity Data", version 2.0, 2016.
.. [2] F. R. Hampel, "The influence curve and its role in robust estimation", Journal of the American
   Statistical Association 69, 1974.
.. [3] R. K. Pearson, "Outliers in process modeling and identification", IEEE Transactions on Control
   Systems Technology 10, 2002.
"""

import math

import numpy as np

from varnn._types import DoubleArray
from varnn.step.kernel import kernel, part
from varnn.step.layout import StepModel, StepState
from varnn.step.operations import are_close, copy

CHANGE_FACTOR = 2.0  # times the largest change of the training labels: what is beyond is not plausible
MAX_REJECTED = 2  # labels in a row, if no more than
RECENT_ROWS = 20  # rows lie between one and the next: a third one is accepted as it is
MIN_RELATIVE_DISTANCE = 0.5  # of the rejected label before it: one so far off, on its side, is accepted
MAX_PENDING_DISTANCE = 8.0  # bounds: a label farther off is never pending
HALVING_ROWS = 1000  # after which a raised bound is half as high


@part
def filter_labels(model: StepModel, state: StepState, labels: DoubleArray) -> None:
    """Write labels (n,) to the state, missing where they are not plausible."""
    copy(labels, state.label)
    if state.waiting[0] == 0 and are_close(labels, state.accepted, model.max_change):  # nearly always
        copy(labels, state.accepted)
    else:
        state.waiting[0] = 0.0
        for series in range(len(labels)):
            if not _is_accepted(model, state, series, labels[series]):
                state.label[series] = np.nan
            state.waiting[0] += state.waited[series] > 0


@kernel
def _is_accepted(model: StepModel, state: StepState, series: int, label: float) -> bool:
    """Judge the label of one series, and update what later ones are judged by."""
    if label != label:
        state.waited[series] += 1.0
        return True  # as missing as it came
    row, last, pending = state.rows[0], state.accepted[series], state.pending[series]
    has_begun, was_pending = last == last, pending == pending
    size = abs(label - last) / (1.0 + state.waited[series])
    halvings = (row - state.raised_at[series]) // HALVING_ROWS
    bound = max(model.max_change, state.raised_bound[series] * 0.5**halvings)
    plausible = size <= bound if has_begun else model.first_low <= label <= model.first_high
    recently = 0.0 if row - state.rejected_at[series] > RECENT_ROWS else state.n_rejected[series]
    same_side = (label - last) * math.copysign(1.0, pending - last)
    confirms = was_pending and recently > 0 and same_side >= MIN_RELATIVE_DISTANCE * abs(pending - last)
    if confirms and not plausible:
        state.n_shifts[series] += 1.0
    if plausible and was_pending:
        state.n_glitches[series] += 1.0
    accepted = plausible or confirms or recently >= MAX_REJECTED
    state.pending[series] = np.nan
    if accepted:
        if has_begun and not plausible:
            state.raised_bound[series], state.raised_at[series] = CHANGE_FACTOR * size, row
        state.n_rejected[series] = recently if plausible else 0.0
        state.accepted[series], state.waited[series] = label, 0.0
        return True
    if has_begun and size <= MAX_PENDING_DISTANCE * bound:
        state.pending[series] = label
    state.n_rejected[series], state.rejected_at[series] = recently + 1.0, row
    state.waited[series] += 1.0
    return False


@part
def move_towards_pending(state: StepState) -> None:
    """Move predictions towards labels that were rejected, but may be the first of a shift."""
    for series in range(len(state.pending)):
        if state.pending[series] == state.pending[series]:
            shifts, glitches = state.n_shifts[series], state.n_glitches[series]
            share = (1.0 + shifts) / (2.0 + shifts + glitches)
            state.prediction[series] += share * (state.pending[series] - state.accepted[series])
