"""The rate-of-change filter of labels, compiled; needs numba (``varnn[fast]``).

What `varnn.model.outliers.FilterStream` does, one series and one label at a time. The state of a series is
that of a filter's snapshot: label taken last, rows since, labels left out lately, raised bound, rows since
the last was left out, rows since it was raised, label in doubt, doubts that stayed, doubts that went. What is
left out must be what a batch leaves out, to the last digit of a bound.
"""

import math

import numpy as np

from varnn._types import DoubleArray
from varnn.model.outliers import AS_FAR, FARTHEST, HALVING, LATELY, PATIENCE, TIMES
from varnn.network.jit import Scalar, exact_kernel

_TAKEN, _WAITED, _LEFT, _GROWN, _OUT, _SINCE, _DOUBTED, _STAYED, _GONE = range(9)


@exact_kernel
def doubt_of(state: DoubleArray) -> Scalar:
    """How far the next prediction goes towards a label that is in doubt."""
    offset = state[_DOUBTED] - state[_TAKEN]
    share = (1.0 + state[_STAYED]) / (2.0 + state[_STAYED] + state[_GONE])
    return share * offset if offset == offset else 0.0


@exact_kernel
def judged(label: Scalar, change: Scalar, low: Scalar, high: Scalar, state: DoubleArray) -> Scalar:
    """Take in a label; give it back, or NaN where it is not plausible."""
    state[_OUT] += 1.0
    state[_SINCE] += 1.0
    if label != label:
        state[_WAITED] += 1.0
        return label
    begun = state[_TAKEN] == state[_TAKEN]
    size = abs(label - state[_TAKEN]) / (1.0 + state[_WAITED])
    bound = max(change, math.ldexp(state[_GROWN], -int(state[_SINCE] // HALVING)))
    fine = size <= bound if begun else low <= label <= high
    left = 0.0 if state[_OUT] > LATELY else state[_LEFT]
    way, before = label - state[_TAKEN], state[_DOUBTED] - state[_TAKEN]
    again = begun and left > 0 and way * np.sign(before) >= AS_FAR * abs(before)
    if again and not fine:
        state[_STAYED] += 1.0
    if fine and state[_DOUBTED] == state[_DOUBTED]:
        state[_GONE] += 1.0
    taken = fine or left >= PATIENCE or again
    state[_DOUBTED] = np.nan if taken or not (begun and size <= FARTHEST * bound) else label
    if taken:
        if begun and not fine:
            state[_GROWN], state[_SINCE] = TIMES * size, 0.0
        state[_LEFT] = left if fine else 0.0
        state[_TAKEN], state[_WAITED] = label, 0.0
        return label
    state[_LEFT], state[_OUT], state[_WAITED] = left + 1.0, 0.0, state[_WAITED] + 1.0
    return np.nan
