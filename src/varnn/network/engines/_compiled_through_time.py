"""Backpropagation through time of a batch of windows in compiled code, forwards and backwards (numba).

Equations and names are those of `varnn.network.engines.fused`. Matrices that lie end to end in the flat
vector are read as one, so that a step forwards is two products and nothing is left to be added to them::

    z_t = F_t [W; b]         F_t = [x_t, h_t, u_t-1, 1]
    a_t = R_t [w_e; b_e; C]  R_t = [e_t, 1, h_t]

Products are those of BLAS, which ``np.dot`` calls without Python's lock.
"""

from typing import NamedTuple

import numpy as np

from varnn._types import BoolArray, FloatArray
from varnn.network.engines._jit import Scalar, kernel
from varnn.network.engines._piecewise import Integers
from varnn.network.engines.engine import Task


class Buffers(NamedTuple):
    """Work space for w steps of B windows."""

    fused: FloatArray  # (w + 1, B, D + M + K + 1): F, with its ones; the last u lies behind the window
    recalled: FloatArray  # (w, B, 2 [+ M]): R, with its ones
    z: FloatArray  # (w, B, K): z, and then d(z)
    u: FloatArray  # (w, B, K)
    a: FloatArray  # (w, B, M): a, and then d(a); that of the last step is not used
    g: FloatArray  # (w, B)
    missing: BoolArray  # (w, B): rows without a label
    d_state: FloatArray  # (B, M + K): d(h) and d(u), as the step after sees them
    d_carried: FloatArray  # (B, M): what else is in d(h): d(a) C', or d(h) itself where it was held
    d_u: FloatArray  # (w, B, K): what else is in d(u): G V' of loss rows, in a cell that looks ahead
    beyond: FloatArray  # (loss rows, B, H - 1): G

    @classmethod
    def of(cls, task: Task, batch: int) -> "Buffers":
        """Work space of a task."""
        cell, steps, kind = task.architecture, task.window, task.inputs.numpy().dtype
        hidden, memory = cell.hidden_size, cell.memory_size

        def zeros(*shape: int) -> FloatArray:
            return np.zeros(shape, kind)

        fused = zeros(steps + 1, batch, cell.n_inputs + memory + hidden + 1)
        recalled = zeros(steps, batch, 2 + memory * cell.accumulate)
        fused[:, :, -1] = recalled[:, :, 1] = 1
        return cls(
            fused,
            recalled,
            zeros(steps, batch, hidden),
            zeros(steps, batch, hidden),
            zeros(steps, batch, memory),
            zeros(steps, batch),
            np.zeros((steps, batch), np.bool_),
            zeros(batch, memory + hidden),
            zeros(batch, memory),
            zeros(steps, batch, hidden),
            zeros(task.loss_rows, batch, cell.horizon - 1),
        )


# Loops over units are functions of their own for the reason given in `varnn.network.engines._piecewise`.
@kernel
def _copy(values: FloatArray, out: FloatArray) -> None:
    for k in range(len(values)):
        out[k] = values[k]


@kernel
def _fill(out: FloatArray, value: Scalar) -> None:
    for k in range(len(out)):
        out[k] = value


@kernel
def _add(values: FloatArray, out: FloatArray) -> None:
    for k in range(len(values)):
        out[k] += values[k]


@kernel
def _activate(z: FloatArray, readout: FloatArray, u: FloatArray) -> Scalar:
    """Write u, and give u w_o."""
    zero = z.dtype.type(0)
    y_hat = zero
    for k in range(len(z)):
        value = zero if z[k] <= zero else z[k]  # a NaN is not off: it has to reach the loss
        u[k] = value
        y_hat += readout[k] * value
    return y_hat


@kernel
def _remember(a: FloatArray, is_relu: bool, h: FloatArray) -> None:
    """Write h = rho(a)."""
    zero = a.dtype.type(0)
    if is_relu:
        for j in range(len(a)):
            h[j] = zero if a[j] <= zero else a[j]
    else:
        for j in range(len(a)):
            h[j] = np.tanh(a[j])


@kernel
def _hidden_slope(
    u: FloatArray, g: Scalar, readout: FloatArray, of_state: FloatArray, of_ahead: FloatArray,
    d_z: FloatArray, d_readout: FloatArray,
) -> None:  # fmt: skip
    """Write d(z), and add to d(w_o)."""
    zero = u.dtype.type(0)
    for k in range(len(u)):
        d_readout[k] += g * u[k]
        d_z[k] = zero if u[k] <= zero else g * readout[k] + of_state[k] + of_ahead[k]


@kernel
def _memory_slope(
    h: FloatArray, d_h: FloatArray, error: FloatArray, is_relu: bool, d_a: FloatArray
) -> Scalar:
    """Write d(a), and give d(a) w_e'."""
    zero, one = h.dtype.type(0), h.dtype.type(1)
    total = zero
    if is_relu:
        for j in range(len(h)):
            value = zero if h[j] <= zero else d_h[j]
            d_a[j] = value
            total += value * error[j]
    else:
        for j in range(len(h)):
            value = d_h[j] * (one - h[j] * h[j])
            d_a[j] = value
            total += value * error[j]
    return total


class Matrices(NamedTuple):
    """Views of a flat vector of weights, or of their gradient."""

    fusion: FloatArray  # (D + M + K + 1, K): [W; b]
    readout: FloatArray  # (K,)
    readout_bias: FloatArray  # (1,)
    recall: FloatArray  # (2 [+ M], M): [w_e; b_e; C]
    ahead: FloatArray  # (K, H - 1): V
    ahead_bias: FloatArray  # (H - 1,)


@kernel
def _matrices(flat: FloatArray, work: Buffers) -> Matrices:
    hidden, memory, later = work.z.shape[2], work.a.shape[2], work.beyond.shape[2]
    n_fused, n_recalled = work.fused.shape[2], work.recalled.shape[2]
    readout = n_fused * hidden
    recall = readout + hidden + 1
    ahead = recall + n_recalled * memory
    ahead_bias = ahead + hidden * later
    return Matrices(
        flat[:readout].reshape(n_fused, hidden),
        flat[readout : recall - 1],
        flat[recall - 1 : recall],
        flat[recall:ahead].reshape(n_recalled, memory),
        flat[ahead:ahead_bias].reshape(hidden, later),
        flat[ahead_bias:],
    )


@kernel
def forward(
    inputs: FloatArray, target: FloatArray, ends: Integers, flat: FloatArray, is_relu: bool, work: Buffers
) -> float:
    """Go through the windows that end at rows ``ends``, (B,); write e_t into R_t and s_t into g_t.

    Gives the loss of the windows' own rows. The error of a row without a label is zero.
    """
    weights = _matrices(flat, work)
    fused, recalled, missing = work.fused, work.recalled, work.missing
    steps, batch = missing.shape
    loss_rows = len(work.beyond)
    n_inputs = inputs.shape[1]
    state = n_inputs + work.a.shape[2]
    for t in range(steps):
        for b in range(batch):
            _copy(inputs[ends[b] - (steps - 1) + t], fused[t, b, :n_inputs])
        np.dot(fused[t], weights.fusion, work.z[t])
        for b in range(batch):
            label = target[ends[b] - (steps - 1) + t]
            y_hat = weights.readout_bias[0] + _activate(work.z[t, b], weights.readout, work.u[t, b])
            _copy(work.u[t, b], fused[t + 1, b, state:-1])
            missing[t, b] = np.isnan(label)
            recalled[t, b, 0] = 0 if missing[t, b] else label - y_hat
        if t + 1 < steps:
            np.dot(recalled[t], weights.recall, work.a[t])
            for b in range(batch):
                h = fused[t + 1, b, n_inputs:state]
                if missing[t, b]:
                    _copy(fused[t, b, n_inputs:state], h)
                else:
                    _remember(work.a[t, b], is_relu, h)
                if recalled.shape[2] > 2:
                    _copy(h, recalled[t + 1, b, 2:])
    squares, known = 0.0, 0
    for t in range(steps - loss_rows, steps):
        for b in range(batch):
            squares += recalled[t, b, 0] * recalled[t, b, 0]
            known += not missing[t, b]
    known = max(known, 1)
    for t in range(steps):
        for b in range(batch):
            work.g[t, b] = -2 / known * recalled[t, b, 0] if t >= steps - loss_rows else 0
    return float(squares / known)


@kernel
def look_ahead(
    later: FloatArray, ends: Integers, flat: FloatArray, gradient: FloatArray, work: Buffers
) -> float:
    """Go on from the loss rows to those after them, whose targets are ``later`` (N, H - 1); give their loss.

    Writes G_t V', and the gradients of V and b_v.
    """
    weights, slopes = _matrices(flat, work), _matrices(gradient, work)
    loss_rows, batch, ahead = work.beyond.shape
    hidden, steps = work.u.shape[2], len(work.u)
    rows = loss_rows * batch
    u = work.u[steps - loss_rows :].reshape(rows, hidden)
    errors = work.beyond.reshape(rows, ahead)
    np.dot(u, weights.ahead, errors)
    squares, known = 0.0, 0
    for row in range(rows):
        here = ends[row % batch] - (loss_rows - 1) + row // batch
        for k in range(ahead):
            if np.isnan(later[here, k]):
                errors[row, k] = 0
            else:
                errors[row, k] += weights.ahead_bias[k] - later[here, k]
                squares += errors[row, k] * errors[row, k]
                known += 1
    known = max(known, 1)
    _fill(slopes.ahead_bias, flat.dtype.type(0))
    for row in range(rows):
        for k in range(ahead):
            errors[row, k] *= 2 / known
        _add(errors[row], slopes.ahead_bias)
    np.dot(errors, weights.ahead.T, work.d_u[steps - loss_rows :].reshape(rows, hidden))
    np.dot(u.T, errors, slopes.ahead)
    return float(squares / known)


@kernel
def backward(flat: FloatArray, gradient: FloatArray, is_relu: bool, work: Buffers) -> None:
    """Go back through the windows, and write all other gradients; z becomes d(z) and a becomes d(a)."""
    weights, slopes = _matrices(flat, work), _matrices(gradient, work)
    g, a, z, missing, d_state, d_carried = (
        work.g, work.a, work.z, work.missing, work.d_state, work.d_carried
    )  # fmt: skip
    steps, batch, hidden = z.shape
    memory, n_recalled, n_fused = a.shape[2], work.recalled.shape[2], work.fused.shape[2]
    n_inputs = n_fused - 1 - hidden - memory
    of_state = weights.fusion[n_inputs:-1]
    accumulates = n_recalled > 2
    zero = flat.dtype.type(0)
    _fill(d_state.reshape(-1), zero)
    _fill(d_carried.reshape(-1), zero)
    _fill(slopes.readout, zero)
    for t in range(steps - 1, -1, -1):
        for b in range(batch):
            _hidden_slope(
                work.u[t, b], g[t, b], weights.readout, d_state[b, memory:], work.d_u[t, b],
                z[t, b], slopes.readout,
            )  # fmt: skip
        if t == 0:
            break
        np.dot(z[t], of_state.T, d_state)
        for b in range(batch):
            d_h = d_state[b, :memory]
            _add(d_carried[b], d_h)
            if missing[t - 1, b]:
                _fill(a[t - 1, b], zero)
            else:
                h = work.fused[t, b, n_inputs : n_inputs + memory]
                g[t - 1, b] -= _memory_slope(h, d_h, weights.recall[0], is_relu, a[t - 1, b])
        if accumulates:
            np.dot(a[t - 1], weights.recall[2:].T, d_carried)
        for b in range(batch):
            if missing[t - 1, b]:
                _copy(d_state[b, :memory], d_carried[b])
            elif not accumulates:
                _fill(d_carried[b], zero)
    rows = steps * batch
    np.dot(work.fused[:steps].reshape(rows, n_fused).T, z.reshape(rows, hidden), slopes.fusion)
    _fill(slopes.readout_bias, flat.dtype.type(np.sum(g)))
    _fill(slopes.recall.reshape(-1), zero)
    if steps > 1:
        earlier = rows - batch
        recalled = work.recalled[: steps - 1].reshape(earlier, n_recalled)
        np.dot(recalled.T, a[: steps - 1].reshape(earlier, memory), slopes.recall)
