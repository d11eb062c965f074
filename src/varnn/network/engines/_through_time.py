"""Backpropagation through time of a batch of windows, from rows to gradient in one compiled call (numba).

Equations and names are those of `varnn.network.engines.fused`. Matrices that lie end to end in the flat
vector are read as one, so that a step forwards is two products and nothing is left to be added to them::

    z_t = F_t [W; b]         F_t = [x_t, h_t, u_t-1, 1]
    a_t = R_t [w_e; b_e; C]  R_t = [e_t, 1, h_t]

Products are those of BLAS, which ``np.dot`` calls without Python's lock.
"""

from typing import NamedTuple

import numpy as np

from varnn._types import BoolArray, FloatArray
from varnn.network.cell import Architecture
from varnn.network.engines._piecewise import Integers, Scalar, kernel


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

    @classmethod
    def of(cls, cell: Architecture, steps: int, batch: int, kind: np.dtype[np.floating]) -> "Buffers":
        """Work space of a cell."""
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
    u: FloatArray, g: Scalar, readout: FloatArray, d_u: FloatArray, d_z: FloatArray, d_readout: FloatArray
) -> None:
    """Write d(z), and add to d(w_o)."""
    zero = u.dtype.type(0)
    for k in range(len(u)):
        d_readout[k] += g * u[k]
        d_z[k] = zero if u[k] <= zero else g * readout[k] + d_u[k]


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


@kernel
def _matrices(
    flat: FloatArray, n_fused: int, hidden: int, n_recalled: int, memory: int
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Views of a flat vector: [W; b], w_o, b_o and [w_e; b_e; C]."""
    readout = n_fused * hidden
    recall = readout + hidden + 1
    return (
        flat[:readout].reshape(n_fused, hidden),
        flat[readout : recall - 1],
        flat[recall - 1 : recall],
        flat[recall : recall + n_recalled * memory].reshape(n_recalled, memory),
    )


@kernel
def _forward(
    inputs: FloatArray, target: FloatArray, ends: Integers, is_relu: bool,
    fusion: FloatArray, readout: FloatArray, readout_bias: FloatArray, recall: FloatArray,
    fused: FloatArray, recalled: FloatArray, z: FloatArray, u: FloatArray, a: FloatArray, missing: BoolArray,
) -> None:  # fmt: skip
    """Go through the windows, and write e_t into R_t; that of a row without a label is zero."""
    steps, batch, _ = z.shape
    n_inputs, memory = inputs.shape[1], a.shape[2]
    state = n_inputs + memory
    accumulates = recalled.shape[2] > 2
    for t in range(steps):
        for b in range(batch):
            _copy(inputs[ends[b] - (steps - 1) + t], fused[t, b, :n_inputs])
        np.dot(fused[t], fusion, z[t])
        for b in range(batch):
            label = target[ends[b] - (steps - 1) + t]
            y_hat = readout_bias[0] + _activate(z[t, b], readout, u[t, b])
            _copy(u[t, b], fused[t + 1, b, state:-1])
            missing[t, b] = np.isnan(label)
            recalled[t, b, 0] = 0 if missing[t, b] else label - y_hat
        if t + 1 < steps:
            np.dot(recalled[t], recall, a[t])
            for b in range(batch):
                h = fused[t + 1, b, n_inputs:state]
                if missing[t, b]:
                    _copy(fused[t, b, n_inputs:state], h)
                else:
                    _remember(a[t, b], is_relu, h)
                if accumulates:
                    _copy(h, recalled[t + 1, b, 2:])


@kernel
def _backward(
    loss_rows: int, share: Scalar, is_relu: bool,
    of_state: FloatArray, readout: FloatArray, recall: FloatArray,
    fused: FloatArray, recalled: FloatArray, z: FloatArray, u: FloatArray, a: FloatArray, g: FloatArray,
    missing: BoolArray, d_state: FloatArray, d_carried: FloatArray, d_readout: FloatArray,
) -> None:  # fmt: skip
    """Go back through the windows; z becomes d(z) and a becomes d(a)."""
    steps, batch, _ = z.shape
    memory = a.shape[2]
    n_inputs = fused.shape[2] - 1 - of_state.shape[0]
    zero = z.dtype.type(0)
    accumulates = recalled.shape[2] > 2
    _fill(d_state.reshape(-1), zero)
    _fill(d_carried.reshape(-1), zero)
    _fill(g[steps - 1], zero)
    _fill(d_readout, zero)
    for t in range(steps - 1, -1, -1):
        for b in range(batch):
            if t >= steps - loss_rows:
                g[t, b] -= share * recalled[t, b, 0]
            _hidden_slope(u[t, b], g[t, b], readout, d_state[b, memory:], z[t, b], d_readout)
        if t == 0:
            break
        np.dot(z[t], of_state.T, d_state)
        for b in range(batch):
            d_h = d_state[b, :memory]
            _add(d_carried[b], d_h)
            if missing[t - 1, b]:
                g[t - 1, b] = 0
                _fill(a[t - 1, b], zero)
            else:
                h = fused[t, b, n_inputs : n_inputs + memory]
                g[t - 1, b] = -_memory_slope(h, d_h, recall[0], is_relu, a[t - 1, b])
        if accumulates:
            np.dot(a[t - 1], recall[2:].T, d_carried)
        for b in range(batch):
            if missing[t - 1, b]:
                _copy(d_state[b, :memory], d_carried[b])
            elif not accumulates:
                _fill(d_carried[b], zero)


@kernel
def loss_and_gradient(
    inputs: FloatArray, target: FloatArray, ends: Integers, loss_rows: int, is_relu: bool,
    flat: FloatArray, gradient: FloatArray,
    fused: FloatArray, recalled: FloatArray, z: FloatArray, u: FloatArray, a: FloatArray, g: FloatArray,
    missing: BoolArray, d_state: FloatArray, d_carried: FloatArray,
) -> float:  # fmt: skip
    """Compute the loss, and write all gradients into a flat vector.

    Parameters
    ----------
    inputs, target : array
        All rows, (N, D) and (N,); NaN is a missing label.
    ends : array
        The last row of each window, (B,).
    loss_rows : int
        Rows at the end of a window whose errors make the loss.
    is_relu : bool
        Whether rho is relu; if not, it is tanh.
    flat, gradient : array
        The weights, (P,), and the place for their gradient.
    fused, recalled, z, u, a, g, missing, d_state, d_carried : array
        `Buffers`.
    """
    steps, batch, hidden = z.shape
    memory, n_fused, n_recalled = a.shape[2], fused.shape[2], recalled.shape[2]
    fusion, readout, readout_bias, recall = _matrices(flat, n_fused, hidden, n_recalled, memory)
    _forward(
        inputs, target, ends, is_relu, fusion, readout, readout_bias, recall,
        fused, recalled, z, u, a, missing,
    )  # fmt: skip
    squares, known = 0.0, 0
    for t in range(steps - loss_rows, steps):
        for b in range(batch):
            squares += recalled[t, b, 0] * recalled[t, b, 0]
            known += not missing[t, b]
    known = max(known, 1)
    share = flat.dtype.type(2 / known)
    d_fusion, d_readout, d_readout_bias, d_recall = _matrices(gradient, n_fused, hidden, n_recalled, memory)
    _backward(
        loss_rows, share, is_relu, fusion[inputs.shape[1] : -1], readout, recall,
        fused, recalled, z, u, a, g, missing, d_state, d_carried, d_readout,
    )  # fmt: skip
    rows = steps * batch
    np.dot(fused[:steps].reshape(rows, n_fused).T, z.reshape(rows, hidden), d_fusion)
    _fill(d_readout_bias, flat.dtype.type(np.sum(g)))
    earlier = rows - batch
    if earlier:
        of_recalled = recalled[: steps - 1].reshape(earlier, n_recalled)
        np.dot(of_recalled.T, a[: steps - 1].reshape(earlier, memory), d_recall)
    else:
        _fill(d_recall.reshape(-1), flat.dtype.type(0))
    return float(squares / known)
