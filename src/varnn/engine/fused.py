"""The training loss and its gradient by hand: no autograd graph, few and large operations.

One row of a batch at step t, with F_t = [x_t, h_t, u_t-1, 1] and W = [W_x; W_m; W_a; b] as the flat
vector lays them out (``_m`` multiplies the residual memory, ``_a`` the activation memory; h_0 and
u_-1 are zero; parts that a variant does not have fall away)::

    z_t = F_t W                  u_t   = relu(z_t)
    e_t = y_t - u_t w_o - b_o    h_t+1 = rho(a_t),    a_t = e_t w_e + b_e + h_t C
    loss = mean of e_w-1 squared over the batch

Backwards, with d(.) for the derivative of the loss and g_t = d(y_hat_t), from g_w-1 = -2 e_w-1 / B::

    d(z_t) = [z_t > 0] * (g_t w_o + d(z_t+1) W_a')
    d(h_t) = d(z_t) W_m' + d(a_t) C'      and + d(h_t+1) for a row with no label at t: h was held
    d(a_t-1) = rho'(h_t) * d(h_t)         zero for a row with no label at t - 1
    g_t-1  = -d(a_t-1) w_e'

    d(W) = sum of F_t' d(z_t)      d(w_o) = sum of u_t' g_t      d(b_o) = sum of g_t
    d(w_e) = sum of e_t d(a_t)     d(b_e) = sum of d(a_t)        d(C) = sum of h_t' d(a_t)

Sums over rows and steps are one product each, of buffers that hold all steps; so is x_t W_x. Without
activation memory d(z_t) is g_t times something known after the forward pass, so d(z_t) W_m' is one
product over all steps too; in RM with all labels d(a_t-1) is g_t times something known as well.
"""

from functools import lru_cache

import torch
from torch import Tensor

from varnn.cell import Architecture
from varnn.engine import unpack

# gradient * [value > 0] and gradient * (1 - value^2), each in one pass
_relu_slope = torch.ops.aten.threshold_backward.grad_input
_tanh_slope = torch.ops.aten.tanh_backward.grad_input


class FusedEngine:
    """Loss and gradient of a batch of windows by the equations above, on the CPU or a GPU.

    Parameters
    ----------
    architecture
        The cell.
    inputs, target
        All rows, (N, D) and (N,), scaled; NaN in the target is a missing label.
    window
        Rows in a window.

    Notes
    -----
    The gradient is a buffer that the next call overwrites. Work space is kept for the two batch
    sizes used last: an epoch has full batches and a remainder.

    Examples
    --------
    >>> from varnn.cell import initial_weights
    >>> from varnn.engine import pack
    >>> cell = Architecture.of("ARM+AM", n_inputs=2, hidden_size=4)
    >>> engine = FusedEngine(cell, torch.ones(9, 2), torch.arange(9.0), window=3)
    >>> flat = torch.tensor(pack(initial_weights(cell, seed=0)))
    >>> loss, gradient = engine.loss_and_gradient(flat, torch.tensor([2, 5, 8]))
    >>> loss.shape, gradient.shape == flat.shape
    (torch.Size([]), True)
    """

    def __init__(self, architecture: Architecture, inputs: Tensor, target: Tensor, window: int) -> None:
        self.architecture = architecture
        self.inputs = inputs
        self.target = target
        self.any_missing = bool(target.isnan().any())
        # With no memory of any kind the last row alone decides.
        self.steps = 1 if architecture.residual == "none" and not architecture.activation_memory else window
        self._offsets = torch.arange(1 - self.steps, 1, device=target.device)[:, None]  # (w, 1)
        self._weights: _Matrices | None = None
        self._gradient = _Matrices(architecture, inputs.new_zeros(count_weights(architecture)))
        self._workspace = lru_cache(maxsize=2)(
            lambda batch: _Workspace(architecture, self.steps, batch, like=inputs)
        )

    @torch.inference_mode()
    def loss_and_gradient(self, flat: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
        """Give the mean squared error of the windows ending at rows ``ends``, and its gradient."""
        if self._weights is None or self._weights.flat is not flat:
            self._weights = _Matrices(self.architecture, flat)
        weights, work = self._weights, self._workspace(len(ends))
        self._gather(work, ends)
        self._forward(work, weights)
        torch.mul(work.error[-1], -2 / len(ends), out=work.g[-1])
        loss = torch.dot(work.error[-1], work.g[-1]).mul_(-0.5)
        if self.architecture.activation_memory:
            self._backward_with_activation(work, weights)
        else:
            self._backward(work, weights)
        self._sum_over_steps(work, self._gradient)
        return loss, self._gradient.flat

    def _gather(self, work: "_Workspace", ends: Tensor) -> None:
        """Copy the windows' inputs and labels, all steps at once."""
        torch.add(self._offsets, ends, out=work.rows)
        torch.index_select(self.inputs, 0, work.rows_flat, out=work.x_flat)
        torch.take(self.target, work.rows, out=work.error_all)  # y, which each step turns into e
        if self.any_missing:
            missing = work.error_all.isnan()
            work.missing_all.copy_(missing[:, :, None])
            work.error_all.masked_fill_(missing, 0)  # any number will do: nothing is learnt from it

    def _forward(self, work: "_Workspace", weights: "_Matrices") -> None:
        torch.addmm(weights.fusion_bias, work.x_flat, weights.of_inputs, out=work.z_flat)
        work.error_all.sub_(weights.readout_bias)
        for t in range(self.steps):
            if t > 0:
                self._remember(work, weights, t)
                work.z[t].addmm_(work.state[t], weights.of_state)
            torch.clamp_min(work.z[t], 0, out=work.u[t])
            work.error[t].addmv_(work.u[t], weights.readout, alpha=-1)

    def _remember(self, work: "_Workspace", weights: "_Matrices", t: int) -> None:
        """Write h_t, from the error and the memory of the step before."""
        if self.architecture.residual == "none":
            return
        h, error = work.h[t], work.error_column[t - 1]
        if self.architecture.residual == "scalar":
            h.copy_(error)
        else:
            torch.addcmul(weights.error_bias, error, weights.error, out=h)
            if self.architecture.accumulate and t > 1:
                h.addmm_(work.h[t - 1], weights.carry)
            if self.architecture.memory_activation == "relu":
                h.relu_()
            else:
                h.tanh_()
        if self.any_missing:
            h.lerp_(work.h[t - 1], work.missing[t - 1])  # weights of 0 and 1: new, or held

    def _backward(self, work: "_Workspace", weights: "_Matrices") -> None:
        _relu_slope(weights.readout.expand_as(work.z_all), work.z_all, 0, grad_input=work.dz_all)  # d(z) / g
        if self.steps > 1:
            work.pad_state(weights)
            torch.mm(work.dz_later, work.of_state_t, out=work.dstate_flat)  # d(z) W_m' / g
            if self.architecture.accumulate or self.any_missing:
                for t in range(self.steps - 1, 0, -1):
                    self._backward_memory(work, weights, t, work.dh[t - 1].mul_(work.g_column[t]))
            else:
                self._backward_scalars(work, weights)
        work.dz_all.mul_(work.g_all_column)

    def _backward_scalars(self, work: "_Workspace", weights: "_Matrices") -> None:
        """RM with all labels: what links g_t-1 to g_t is known for all steps at once."""
        if self.architecture.residual == "scalar":
            torch.neg(work.dh_all[:, :, 0], out=work.link_all)
        else:
            self._memory_slope(work.dh_all, work.h_later, out=work.da_all)
            torch.addmv(work.link_flat, work.da_flat, weights.error, beta=0, alpha=-1, out=work.link_flat)
        for t in range(self.steps - 1, 0, -1):
            torch.mul(work.g[t], work.link[t - 1], out=work.g[t - 1])
        work.da_all.mul_(work.g_all_column[1:])

    def _backward_with_activation(self, work: "_Workspace", weights: "_Matrices") -> None:
        work.pad_state(weights)
        torch.mul(work.g_column[-1], weights.readout, out=work.du)
        for t in range(self.steps - 1, -1, -1):
            _relu_slope(work.du, work.z[t], 0, grad_input=work.z[t])  # d(z) takes the place of z
            if t > 0:
                torch.mm(work.z[t], work.of_state_t, out=work.dstate)
                self._backward_memory(work, weights, t, work.dh_now)
                work.du.addcmul_(work.g_column[t - 1], weights.readout)

    def _backward_memory(self, work: "_Workspace", weights: "_Matrices", t: int, dh: Tensor) -> None:
        """Turn ``dh``, which comes as d(z_t) W_m', into d(a_t-1) and g_t-1."""
        if self.architecture.residual == "none":
            return
        has_later = t + 1 < self.steps
        if self.architecture.accumulate and has_later:
            dh.addmm_(work.da[t], weights.carry_t)
        if self.any_missing:
            if has_later:
                dh.add_(work.dh_held)
            torch.mul(dh, work.missing[t - 1], out=work.dh_held)
            dh.sub_(work.dh_held)
        if self.architecture.residual == "scalar":
            torch.neg(dh[:, 0], out=work.g[t - 1])
        else:
            da = self._memory_slope(dh, work.h[t], out=work.da[t - 1])
            torch.addmv(work.g[t - 1], da, weights.error, beta=0, alpha=-1, out=work.g[t - 1])

    def _memory_slope(self, dh: Tensor, h: Tensor, out: Tensor) -> Tensor:
        if self.architecture.memory_activation == "relu":
            _relu_slope(dh, h, 0, grad_input=out)
        else:
            _tanh_slope(dh, h, grad_input=out)
        return out

    def _sum_over_steps(self, work: "_Workspace", gradient: "_Matrices") -> None:
        torch.mm(work.fused_t, work.dz_flat, out=gradient.of_fused)
        torch.mv(work.u_t, work.g_flat, out=gradient.readout)
        torch.dot(work.g_flat, work.error_and_one[1], out=gradient.readout_bias)
        if self.architecture.residual == "projected" and self.steps > 1:
            torch.mm(work.error_and_one_earlier, work.da_flat, out=gradient.of_error)
            if self.architecture.accumulate:
                torch.mm(work.h_earlier_t, work.da_flat, out=gradient.carry)


def count_weights(architecture: Architecture) -> int:
    """Give the length of the flat vector of a cell.

    Examples
    --------
    >>> count_weights(Architecture.of("RM", n_inputs=2, hidden_size=4, memory_size=3))
    35
    """
    return sum(rows * columns for rows, columns in architecture.shapes.values())


class _Matrices:
    """One flat vector as the matrices of the equations above; all are views."""

    def __init__(self, architecture: Architecture, flat: Tensor) -> None:
        self.flat = flat
        named = unpack(architecture, flat)
        fused, hidden = architecture.shapes["fusion"]
        self.of_fused = flat[: (fused + 1) * hidden].view(fused + 1, hidden)  # [W_x; W_m; W_a; b]
        self.of_inputs = named.fusion[: architecture.n_inputs]
        self.of_state = named.fusion[_state_begin(architecture) :]
        self.fusion_bias = named.fusion_bias[0]
        self.readout = named.readout[:, 0]
        self.readout_bias = named.readout_bias[0, 0]
        if architecture.residual == "projected":
            begin = (fused + 2) * hidden + 1
            self.of_error = flat[begin : begin + 2 * architecture.memory_size].view(2, -1)  # [w_e; b_e]
            self.error, self.error_bias = self.of_error
        if architecture.accumulate:
            self.carry, self.carry_t = named.carry, named.carry.t()


class _Workspace:
    """Buffers of all steps for one batch size, and the views of them that the passes use.

    ``x_all`` is (w, B, ...), ``x`` the same as one tensor a step, ``x_flat`` (w B, ...), ``x_t`` that
    transposed; a view costs about as much to make as a small operation, so each is made once.
    """

    def __init__(self, architecture: Architecture, steps: int, batch: int, like: Tensor) -> None:
        hidden = architecture.hidden_size
        fused, _ = architecture.shapes["fusion"]
        h_begin, u_begin = architecture.n_inputs, architecture.n_inputs + architecture.memory_size
        state_begin = _state_begin(architecture)

        # F with its ones; h_0 and u_-1 stay zero. One step more than the window, where the last u goes.
        fused_all = like.new_zeros(steps + 1, batch, fused + 1)
        fused_all[:, :, -1] = 1
        self.fused_t = fused_all[:-1].flatten(0, 1).t()
        self.x_flat = fused_all[:-1, :, :h_begin].flatten(0, 1)
        self.h = fused_all[:, :, h_begin:u_begin].unbind()
        self.h_later = fused_all[1:-1, :, h_begin:u_begin]
        self.h_earlier_t = fused_all[: steps - 1, :, h_begin:u_begin].flatten(0, 1).t()
        self.state = fused_all[:, :, state_begin:fused].unbind()
        self.rows = torch.empty(steps, batch, dtype=torch.int64, device=like.device)
        self.rows_flat = self.rows.view(-1)

        self.z_all = like.new_empty(steps, batch, hidden)
        self.z, self.z_flat = self.z_all.unbind(), self.z_all.flatten(0, 1)
        u_all = fused_all[1:, :, u_begin:fused] if architecture.activation_memory else self.z_all
        self.u, self.u_t = u_all.unbind(), u_all.flatten(0, 1).t()

        self.error_and_one = like.new_ones(2, steps * batch)
        self.error_and_one_earlier = self.error_and_one[:, : (steps - 1) * batch]
        self.error_all = self.error_and_one[0].view(steps, batch)
        self.error, self.error_column = self.error_all.unbind(), self.error_all[:, :, None].unbind()
        self.missing_all = like.new_zeros(steps, batch, 1)
        self.missing = self.missing_all.unbind()

        self.g_all_column = like.new_zeros(steps, batch, 1)
        self.g, self.g_column = self.g_all_column[:, :, 0].unbind(), self.g_all_column.unbind()
        self.g_flat = self.g_all_column.view(-1)
        self.link_all = like.new_empty(steps - 1, batch)
        self.link, self.link_flat = self.link_all.unbind(), self.link_all.view(-1)
        self.da_all = like.new_zeros(steps - 1, batch, architecture.memory_size)
        self.da, self.da_flat = self.da_all.unbind(), self.da_all.flatten(0, 1)
        self.dh_held = like.new_empty(batch, architecture.memory_size)

        # BLAS is up to twice as fast at widths that are a multiple of 16: [W_m; W_a] gets rows of zeros.
        n_state = fused - state_begin
        width = -(-n_state // 16) * 16
        of_state = like.new_zeros(width, hidden)
        self.of_state, self.of_state_t = of_state[:n_state], of_state.t()
        if architecture.activation_memory:
            self.dz_flat = self.z_flat
            self.dstate = like.new_empty(batch, width)
            self.dh_now = self.dstate[:, : u_begin - state_begin]
            self.du = self.dstate[:, u_begin - state_begin : n_state]
        else:
            self.dz_all = like.new_empty(steps, batch, hidden)
            self.dz_flat, self.dz_later = self.dz_all.flatten(0, 1), self.dz_all[1:].flatten(0, 1)
            dstate_all = like.new_empty(steps - 1, batch, width)
            self.dstate_flat = dstate_all.flatten(0, 1)
            self.dh_all = dstate_all[:, :, :n_state]
            self.dh = self.dh_all.unbind()

    def pad_state(self, weights: _Matrices) -> None:
        """Take over the weights of the state."""
        self.of_state.copy_(weights.of_state)


def _state_begin(architecture: Architecture) -> int:
    """Give the first row of [W_m; W_a] in the fusion matrix; without residual memory it is [W_a] alone."""
    return architecture.n_inputs + architecture.memory_size * (architecture.residual == "none")
