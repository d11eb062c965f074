"""The training loss and its gradient by hand: no autograd graph, few and large operations.

One row of a batch at step t, with F_t = [x_t, h_t, u_t-1, 1] and W = [W_x; W_m; W_a; b] as the flat
vector lays them out (``_m`` multiplies the residual memory, ``_a`` the activation memory; h_0 and
u_-1 are zero; parts that a variant does not have fall away)::

    z_t = F_t W                  u_t   = relu(z_t)
    e_t = y_t - u_t w_o - b_o    h_t+1 = rho(a_t),    a_t = e_t w_e + b_e + h_t C
    loss = mean of e_t squared over the batch and the loss rows, the last ones of a window,
           and of a cell that looks ahead the same mean of y_t+k - (u_t V + b_v)_k over all k too

Backwards, with d(.) for the derivative of the loss and g_t = d(y_hat_t). The error of a loss row puts
s_t = -2 e_t / (errors counted) into g_t; elsewhere s_t is zero::

    d(z_t) = [z_t > 0] * (g_t w_o + d(z_t+1) W_a')
    d(h_t) = d(z_t) W_m' + d(a_t) C'      and + d(h_t+1) for a row with no label at t: h was held
    d(a_t-1) = rho'(h_t) * d(h_t)         zero for a row with no label at t - 1
    g_t-1  = s_t-1 - d(a_t-1) w_e'

    d(W) = sum of F_t' d(z_t)      d(w_o) = sum of u_t' g_t      d(b_o) = sum of g_t
    d(w_e) = sum of e_t d(a_t)     d(b_e) = sum of d(a_t)        d(C) = sum of h_t' d(a_t)

Looking ahead (with activation memory only), G_t being the derivative of what u_t V + b_v predicts, adds
G_t V' to g_t w_o in d(z_t), and d(V) = sum of u_t' G_t, d(b_v) = sum of G_t.

Sums over rows and steps are one product each, of buffers that hold all steps; so is x_t W_x. Without
activation memory d(z_t) = g_t [z_t > 0] * w_o, where only g_t is not known after the forward pass: then
d(z_t) W_m' is one product over all steps too, and in RM with all labels nothing but g is left to a loop.
There the buffer of u becomes [z > 0] and then g * [z > 0], and with R = sum of F_t' (g_t [z_t > 0]) ::

    d(W) = R * w_o      d(w_o) = sum over the rows of R * W
"""

from functools import lru_cache

import torch
from torch import Tensor

from varnn.network.engines._workspace import FusedWeights, Workspace, count_weights
from varnn.network.engines.adam import FlatAdam
from varnn.network.engines.engine import Engine, Task
from varnn.network.handled import ANY, HandledCells

# gradient * [value > 0] and gradient * (1 - value^2), each in one pass
_relu_slope = torch.ops.aten.threshold_backward.grad_input
_tanh_slope = torch.ops.aten.tanh_backward.grad_input


class FusedEngine(Engine):
    """Loss and gradient of a batch of windows by backpropagation through time, written out as above.

    It runs on the CPU and on a GPU.

    Parameters
    ----------
    task : Task
        What to compute.

    Notes
    -----
    The gradient is a buffer that the next call overwrites. Work space is kept for the two batch
    sizes used last: an epoch has full batches and a remainder.

    References
    ----------
    P. J. Werbos, "Backpropagation through time: what it does and how to do it", Proceedings of the IEEE
    78 (1990).

    Examples
    --------
    >>> from varnn.network.cell import Architecture, initial_weights
    >>> from varnn.network.engines.engine import pack
    >>> cell = Architecture.of("ARM+AM", n_inputs=2, hidden_size=4)
    >>> engine = FusedEngine(Task(cell, torch.ones(9, 2), torch.arange(9.0), window=3))
    >>> flat = torch.tensor(pack(initial_weights(cell, seed=0)))
    >>> loss, gradient = engine.loss_and_gradient(flat, torch.tensor([2, 5, 8]))
    >>> loss.shape, gradient.shape == flat.shape
    (torch.Size([]), True)
    """

    name = "fused"
    cells = HandledCells(
        {
            "n_inputs": ANY,
            "hidden_size": ANY,
            "memory_size": ANY,
            "accumulate": (False, True),
            "activation_memory": (False, True),
            "residual": ("projected", "scalar", "none"),
            "memory_activation": ("relu", "tanh"),
            "horizon": ANY,
        }
    )

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        architecture, inputs, target = task.architecture, task.inputs, task.target
        window, loss_rows = task.window, task.loss_rows
        self.inputs = inputs
        self.target = target
        self.ahead, self.weights = task.ahead, task.weights
        self.any_missing = bool(target.isnan().any())
        self.links_scalars = not (
            architecture.accumulate or architecture.activation_memory or self.any_missing
        )
        # With no memory of any kind the loss rows alone decide.
        steps = (
            loss_rows if architecture.residual == "none" and not architecture.activation_memory else window
        )
        self.steps, self.loss_rows = steps, loss_rows
        self._offsets = torch.arange(1 - steps, 1, device=target.device)[:, None]  # (w, 1)
        self._weights: FusedWeights | None = None
        self._gradient = FusedWeights(architecture, inputs.new_zeros(count_weights(architecture)))
        self._workspace = lru_cache(maxsize=2)(
            lambda batch: Workspace(architecture, steps, loss_rows, batch, inputs)
        )

    @classmethod
    def limits(cls, task: Task) -> list[str]:
        """List what is not handled: targets ahead without activation memory."""
        if task.ahead is not None and not task.architecture.activation_memory:
            return ["targets ahead without activation memory (only variants with +AM)"]
        return []

    def optimiser(self, flat: Tensor, learning_rate: float) -> FlatAdam:
        """Adam in one operation of torch."""
        return FlatAdam(flat, learning_rate)

    @torch.inference_mode()
    def loss_and_gradient(self, flat: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
        """Mean squared error of the windows ending at rows ``ends``, and its gradient."""
        if self._weights is None or self._weights.flat is not flat:
            self._weights = FusedWeights(self.architecture, flat)
        weights, work = self._weights, self._workspace(len(ends))
        self._gather(work, ends)
        self._forward(work, weights)
        loss = self._loss(work)
        if self.ahead is not None:
            loss += self._loss_ahead(work, weights, self.ahead)
        if self.architecture.activation_memory:
            self._backward_with_activation(work, weights)
        else:
            self._backward(work, weights)
        self._sum_over_steps(work, weights, self._gradient)
        return loss, self._gradient.flat

    def _loss(self, work: Workspace) -> Tensor:
        """Compute the loss, and write s_t into g_t."""
        if self.weights is not None:
            return self._weighted_loss(work, self.weights)
        share: float | Tensor = 1 / work.loss_error.numel()  # of each error in the mean
        if self.any_missing:
            known = 1 - work.loss_missing
            work.loss_error.mul_(known)
            share = 1 / known.sum()
        torch.mul(work.loss_error, -2 * share, out=work.loss_g)
        return torch.dot(work.loss_error_flat, work.loss_error_flat).mul_(share)

    def _weighted_loss(self, work: Workspace, weights: Tensor) -> Tensor:
        """Compute the loss where errors count by weight: s_t is that of a plain one times the weight."""
        weight = torch.take(weights, work.rows[-self.loss_rows :])
        if self.any_missing:
            known = 1 - work.loss_missing
            work.loss_error.mul_(known)
            weight.mul_(known)
        share = weight / (weight > 0).sum().clamp(min=1)
        torch.mul(work.loss_error, -2 * share, out=work.loss_g)
        return (work.loss_error.square() * share).sum()

    def _loss_ahead(self, work: Workspace, weights: FusedWeights, targets: Tensor) -> Tensor:
        """Compute the loss of looking ahead, and write G_t."""
        target = torch.index_select(targets, 0, work.loss_rows_flat, out=work.ahead_target)
        error = torch.addmm(weights.ahead_bias, work.loss_u, weights.ahead, out=work.ahead_g)
        unknown = torch.ne(target, target, out=work.ahead_unknown)  # NaN
        error.sub_(target).masked_fill_(unknown, 0)
        counted = (unknown.numel() - unknown.sum(dtype=error.dtype)).clamp_(min=1)
        loss = torch.dot(error.view(-1), error.view(-1)).div_(counted)
        error.mul_(2 / counted)
        return loss

    def _gather(self, work: Workspace, ends: Tensor) -> None:
        """Copy the windows' inputs and labels, all steps at once."""
        torch.add(self._offsets, ends, out=work.rows)
        torch.index_select(self.inputs, 0, work.rows_flat, out=work.x_flat)
        torch.take(self.target, work.rows, out=work.error_all)  # y, which each step turns into e
        if self.any_missing:
            missing = work.error_all.isnan()
            work.missing_all.copy_(missing[:, :, None])
            work.error_all.masked_fill_(missing, 0)  # any number will do: nothing is learnt from it

    def _forward(self, work: Workspace, weights: FusedWeights) -> None:
        torch.addmm(weights.fusion_bias, work.x_flat, weights.of_inputs, out=work.z_flat)
        work.error_all.sub_(weights.readout_bias)
        for t in range(self.steps):
            if t > 0:
                self._remember(work, weights, t)
                work.z[t].addmm_(work.state[t], weights.of_state)
            torch.clamp_min(work.z[t], 0, out=work.u[t])
            work.error[t].addmv_(work.u[t], weights.readout, alpha=-1)

    def _remember(self, work: Workspace, weights: FusedWeights, t: int) -> None:
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

    def _backward(self, work: Workspace, weights: FusedWeights) -> None:
        _relu_slope(work.one, work.z_all, 0, grad_input=work.z_all)  # [z > 0]
        if self.steps > 1 and self.architecture.residual != "none":
            torch.mul(weights.of_state, weights.readout, out=work.of_state)
            torch.mm(work.z_later, work.of_state_t, out=work.dstate_flat)  # d(z) W_m' / g
            if self.links_scalars:
                self._backward_scalars(work, weights)
            else:
                work.other_g.zero_()
                for t in range(self.steps - 1, 0, -1):
                    self._backward_memory(work, weights, t, work.dh[t - 1].mul_(work.g_column[t]))
        else:
            work.other_g.zero_()
        work.z_all.mul_(work.g_all_column)

    def _backward_scalars(self, work: Workspace, weights: FusedWeights) -> None:
        """RM with all labels: what links g_t-1 to g_t is known for all steps at once."""
        if self.architecture.residual == "scalar":
            torch.neg(work.dh_all[:, :, 0], out=work.link_all)
        else:
            self._memory_slope(work.dh_all, work.h_later, out=work.da_all)
            torch.addmv(work.link_flat, work.da_flat, weights.error, beta=0, alpha=-1, out=work.link_flat)
        for t in range(self.steps - 1, 0, -1):
            if t > self.steps - self.loss_rows:
                work.g[t - 1].addcmul_(work.g[t], work.link[t - 1])
            else:
                torch.mul(work.g[t], work.link[t - 1], out=work.g[t - 1])

    def _backward_with_activation(self, work: Workspace, weights: FusedWeights) -> None:
        work.other_g.zero_()
        work.of_state.copy_(weights.of_state)
        torch.mul(work.g_column[-1], weights.readout, out=work.du)
        self._backward_ahead(work, weights, self.steps - 1)
        for t in range(self.steps - 1, -1, -1):
            _relu_slope(work.du, work.z[t], 0, grad_input=work.z[t])  # d(z) takes the place of z
            if t > 0:
                torch.mm(work.z[t], work.of_state_t, out=work.dstate)
                self._backward_memory(work, weights, t, work.dh_now)
                work.du.addcmul_(work.g_column[t - 1], weights.readout)
                self._backward_ahead(work, weights, t - 1)

    def _backward_ahead(self, work: Workspace, weights: FusedWeights, t: int) -> None:
        if self.ahead is not None and t >= self.steps - self.loss_rows:
            work.du.addmm_(work.ahead_g_of_step[t - self.steps + self.loss_rows], weights.ahead_t)

    def _backward_memory(self, work: Workspace, weights: FusedWeights, t: int, dh: Tensor) -> None:
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
            work.g[t - 1].sub_(dh[:, 0])
        else:
            da = self._memory_slope(dh, work.h[t], out=work.da[t - 1])
            work.g[t - 1].addmv_(da, weights.error, alpha=-1)

    def _memory_slope(self, dh: Tensor, h: Tensor, out: Tensor) -> Tensor:
        if self.architecture.memory_activation == "relu":
            _relu_slope(dh, h, 0, grad_input=out)
        else:
            _tanh_slope(dh, h, grad_input=out)
        return out

    def _sum_over_steps(self, work: Workspace, weights: FusedWeights, gradient: FusedWeights) -> None:
        torch.mm(work.fused_t, work.z_flat, out=gradient.of_fused)  # z holds d(z), or g * [z > 0]
        if self.architecture.activation_memory:
            torch.mv(work.u_t, work.g_flat, out=gradient.readout)
        else:
            torch.mul(gradient.of_fused, weights.of_fused, out=work.products)
            torch.sum(work.products, 0, out=gradient.readout)
            gradient.of_fused.mul_(weights.readout)
        torch.dot(work.g_flat, work.ones, out=gradient.readout_bias)
        if self.architecture.residual == "projected" and self.steps > 1:
            factors = work.error_and_one_earlier
            if self.links_scalars:  # which leaves d(a) without its g
                factors = torch.mul(factors, work.g_later_flat, out=work.factors)
            torch.mm(factors, work.da_flat, out=gradient.of_error)
            if self.architecture.accumulate:
                torch.mm(work.h_earlier_t, work.da_flat, out=gradient.carry)
        if self.ahead is not None:
            torch.mm(work.loss_u.t(), work.ahead_g, out=gradient.ahead)
            torch.sum(work.ahead_g, 0, out=gradient.ahead_bias)
