"""All that has to do with the memory of RM, forwards and backwards, without a matrix product (numba).

The memory h = relu(e w + b) of RM depends on one number, the last error e. So what it adds to the
hidden layer, h W_m, is piecewise linear in e: unit j switches at the break point -b_j / w_j, the M
break points cut the line into M + 1 segments, and on segment s ::

    h W_m = e A_s + B_s      A_s = sum of w_j W_m[j]      B_s = sum of b_j W_m[j]    over j active in s

With a table of A and B a row needs no product with W_m: find its segment, add two vectors. Backwards,
E_s = sum of e d(z) and D_s = sum of d(z) over the rows whose memory is in segment s; then ::

    E = sum of E_s      D = sum of D_s      over the segments in which j is active
    d(W_m[j]) = w_j E + b_j D      d(w_j) = W_m[j] . E      d(b_j) = W_m[j] . D

From one step to the one before leads a scalar, g_t-1 = -g_t (w_o * [z_t > 0]) . A_s, known after the
forward pass. Names are those of `varnn.network.engines.fused`. Exactly at a break point, where the reference
takes a slope of zero, a unit that falls takes the slope of its left side.
"""

import numpy as np

from varnn._types import FloatArray, IntArray
from varnn.network.engines._jit import Scalar, kernel

Integers = IntArray


# Loops over the hidden units are functions of their own: written out inside the loops over rows they
# are no longer turned into vector instructions, and the whole takes four times as long.
@kernel
def _predict(
    row: FloatArray, error: Scalar, slope: FloatArray, intercept: FloatArray, readout: FloatArray
) -> tuple[Scalar, Scalar]:
    """Turn x W_x + b into u; give u w_o, and its derivative by the error behind the memory."""
    zero = row.dtype.type(0)
    y_hat, reach = zero, zero
    for k in range(len(row)):
        z = row[k] + error * slope[k] + intercept[k]
        off = z <= zero  # a NaN is not off: it has to reach the loss
        u = zero if off else z
        row[k] = u
        y_hat += readout[k] * u
        reach += zero if off else readout[k] * slope[k]
    return y_hat, reach


@kernel
def _learn(
    row: FloatArray,
    g: Scalar,
    error: Scalar,
    readout: FloatArray,
    d_readout: FloatArray,
    of_error: FloatArray,
    of_one: FloatArray,
) -> None:
    """Turn u into d(z), and add it to E and D of its segment."""
    zero = row.dtype.type(0)
    for k in range(len(row)):
        u = row[k]
        d_readout[k] += g * u
        dz = zero if u <= zero else g * readout[k]
        row[k] = dz
        of_error[k] += error * dz
        of_one[k] += dz


@kernel
def _add_scaled(out: FloatArray, factor: Scalar, vector: FloatArray) -> None:
    for k in range(len(out)):
        out[k] += factor * vector[k]


@kernel
def _dot(left: FloatArray, right: FloatArray) -> Scalar:
    total = left.dtype.type(0)
    for k in range(len(left)):
        total += left[k] * right[k]
    return total


@kernel
def segment_of(error: Scalar, breaks: FloatArray) -> int:
    """Count the break points below an error; a binary search has fewer steps, but mispredicts them."""
    below = 0
    for j in range(len(breaks)):
        below += breaks[j] < error
    return below


@kernel
def _rises(error: Scalar, error_bias: Scalar) -> bool:
    """Tell whether a unit is active above its break point; if not, it is active below."""
    return bool(error > 0 or (error == 0 and error_bias <= 0))


@kernel
def break_points(error: FloatArray, error_bias: FloatArray) -> FloatArray:
    """Error at which each unit switches; one that never does (w_j = 0), at infinity."""
    breaks = np.empty_like(error)
    for j in range(len(error)):
        breaks[j] = -error_bias[j] / error[j] if error[j] != 0 else np.inf
    return breaks


@kernel
def tabulate(
    memory: FloatArray, error: FloatArray, error_bias: FloatArray, order: Integers, table: FloatArray
) -> None:
    """Fill the table (M + 2, 2, K) of A and B; its last entry is zero, for no memory yet.

    ``order`` is that of the break points. Sums over the units that rise run upwards and over those that
    fall downwards: nothing is ever subtracted, so nothing cancels.
    """
    size, one = len(error), table.dtype.type(1)
    table[:] = 0
    for part, factors in enumerate((error, error_bias)):
        rising = np.zeros_like(table[0, 0])
        for rank in range(size):
            j = order[rank]
            if _rises(error[j], error_bias[j]):
                _add_scaled(rising, factors[j], memory[j])
            _add_scaled(table[rank + 1, part], one, rising)  # slices with = or += take seconds to compile
        falling = np.zeros_like(rising)
        for rank in range(size - 1, -1, -1):
            j = order[rank]
            if not _rises(error[j], error_bias[j]):
                _add_scaled(falling, factors[j], memory[j])
            _add_scaled(table[rank, part], one, falling)


@kernel
def _walk(
    z: FloatArray, labels: FloatArray, readout: FloatArray, readout_bias: Scalar,
    breaks: FloatArray, table: FloatArray, sums: FloatArray, d_readout: FloatArray,
) -> tuple[Scalar, Scalar]:  # fmt: skip
    """Take each window forwards and backwards; give the sums of e_w-1 squared and of g over the batch."""
    batch, steps, _ = z.shape
    zero = z.dtype.type(0)
    scale = z.dtype.type(-2 / batch)
    segments = np.empty(steps, np.int64)
    errors = np.empty(steps, z.dtype)
    reaches = np.empty(steps, z.dtype)
    squares: Scalar = 0.0
    slopes: Scalar = 0.0
    for b in range(batch):
        segment, error = len(table) - 1, zero  # no memory yet
        for t in range(steps):
            segments[t], errors[t] = segment, error
            y_hat, reaches[t] = _predict(z[b, t], error, table[segment, 0], table[segment, 1], readout)
            if not np.isnan(labels[b, t]):
                error = labels[b, t] - readout_bias - y_hat
                segment = segment_of(error, breaks)
        squares += error * error
        g = scale * error
        for t in range(steps - 1, -1, -1):
            if np.isnan(labels[b, t]):  # its prediction met no label; g waits for the step that did
                z[b, t] = 0
                continue
            slopes += g
            segment = segments[t]
            _learn(z[b, t], g, errors[t], readout, d_readout, sums[segment, 0], sums[segment, 1])
            g = -g * reaches[t]
    return squares, slopes


@kernel
def _spread(
    memory: FloatArray, error: FloatArray, error_bias: FloatArray, order: Integers, sums: FloatArray,
    d_memory: FloatArray, d_error: FloatArray, d_error_bias: FloatArray,
) -> None:  # fmt: skip
    """Hand E and D of the segments to the units active in them: from above to those that rise."""
    size = len(error)
    for rises in (True, False):
        active = np.zeros_like(sums[0])  # E and D
        for step in range(size):
            rank = size - 1 - step if rises else step
            active += sums[rank + 1] if rises else sums[rank]
            j = order[rank]
            if _rises(error[j], error_bias[j]) == rises:
                d_memory[j] = 0
                _add_scaled(d_memory[j], error[j], active[0])
                _add_scaled(d_memory[j], error_bias[j], active[1])
                d_error[j] = _dot(memory[j], active[0])
                d_error_bias[j] = _dot(memory[j], active[1])


@kernel
def memory_pass(
    z: FloatArray, labels: FloatArray, table: FloatArray, sums: FloatArray,
    memory: FloatArray, fusion_bias: FloatArray, readout: FloatArray, readout_bias: FloatArray,
    error: FloatArray, error_bias: FloatArray,
    d_memory: FloatArray, d_fusion_bias: FloatArray, d_readout: FloatArray, d_readout_bias: FloatArray,
    d_error: FloatArray, d_error_bias: FloatArray,
) -> float:  # fmt: skip
    """Compute the loss; turn x W_x + b in ``z`` into d(z); write all gradients but that of W_x.

    Parameters
    ----------
    z, labels : array
        (B, w, K) and (B, w); NaN is a missing label.
    table, sums : array
        Work space, (M + 2, 2, K) each.
    memory, fusion_bias, readout, readout_bias, error, error_bias : array
        W_m (M, K), b (K,), w_o (K,), b_o (1,), w and b (M,); after them the places for their gradients.
    """
    breaks = break_points(error, error_bias)
    order = np.argsort(breaks)
    tabulate(memory, error, error_bias, order, table)
    sums[:] = 0
    d_readout[:] = 0
    squares, slopes = _walk(z, labels, readout, readout_bias[0], breaks[order], table, sums, d_readout)
    _spread(memory, error, error_bias, order, sums, d_memory, d_error, d_error_bias)
    d_readout_bias[0] = slopes
    d_fusion_bias[:] = 0
    for segment in range(len(sums)):
        d_fusion_bias += sums[segment, 1]
    return float(squares / len(z))
