"""Where the fused engine computes: the weights as its equations name them, and its buffers.

Names and layouts are those of `varnn.network.engines.fused`; nothing is computed here.
"""

import torch
from torch import Tensor

from varnn.network.cell import Architecture
from varnn.network.engines.engine import unpack


def count_weights(architecture: Architecture) -> int:
    """Length of the flat vector of a cell's weights.

    Examples
    --------
    >>> count_weights(Architecture.of("RM", n_inputs=2, hidden_size=4, memory_size=3))
    35
    """
    return sum(rows * columns for rows, columns in architecture.shapes.values())


class FusedWeights:
    """One flat vector as the matrices of the equations; all are views."""

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
        if architecture.horizon > 1:
            self.ahead, self.ahead_t, self.ahead_bias = named.ahead, named.ahead.t(), named.ahead_bias[0]


class Workspace:
    """Buffers of all steps for one batch size, and the views of them that the passes use.

    ``x_all`` is (w, B, ...), ``x`` the same as one tensor a step, ``x_flat`` (w B, ...), ``x_t`` that
    transposed; a view costs about as much to make as a small operation, so each is made once.
    """

    def __init__(
        self, architecture: Architecture, steps: int, loss_rows: int, batch: int, like: Tensor
    ) -> None:
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
        self.one = like.new_ones(()).expand_as(self.z_all)
        u_all = fused_all[1:, :, u_begin:fused] if architecture.activation_memory else self.z_all
        self.u, self.u_t = u_all.unbind(), u_all.flatten(0, 1).t()
        if architecture.horizon > 1:
            later = (loss_rows * batch, architecture.horizon - 1)
            self.loss_rows_flat = self.rows[-loss_rows:].view(-1)
            self.loss_u = u_all[-loss_rows:].flatten(0, 1)
            self.ahead_target = like.new_empty(later)
            self.ahead_unknown = torch.empty_like(self.ahead_target, dtype=torch.bool)
            self.ahead_g = like.new_empty(later)  # d(prediction)
            self.ahead_g_of_step = self.ahead_g.view(loss_rows, batch, -1).unbind()

        self.error_and_one = like.new_ones(2, steps * batch)
        self.ones = self.error_and_one[1]
        self.error_and_one_earlier = self.error_and_one[:, : (steps - 1) * batch]
        self.factors = torch.empty_like(self.error_and_one_earlier)
        self.error_all = self.error_and_one[0].view(steps, batch)
        self.error, self.error_column = self.error_all.unbind(), self.error_all[:, :, None].unbind()
        self.missing_all = like.new_zeros(steps, batch, 1)
        self.missing = self.missing_all.unbind()
        self.loss_error, self.loss_missing = (
            self.error_all[-loss_rows:],
            self.missing_all[-loss_rows:, :, 0],
        )
        self.loss_error_flat = self.loss_error.view(-1)

        self.g_all_column = like.new_zeros(steps, batch, 1)
        self.g, self.g_column = self.g_all_column[:, :, 0].unbind(), self.g_all_column.unbind()
        self.g_flat = self.g_all_column.view(-1)
        self.g_later_flat = self.g_flat[batch:]
        self.loss_g, self.other_g = self.g_all_column[-loss_rows:, :, 0], self.g_all_column[:-loss_rows]
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
            self.dstate = like.new_empty(batch, width)
            self.dh_now = self.dstate[:, : u_begin - state_begin]
            self.du = self.dstate[:, u_begin - state_begin : n_state]
        else:
            self.z_later = self.z_all[1:].flatten(0, 1)
            self.products = like.new_empty(fused + 1, hidden)
            dstate_all = like.new_empty(steps - 1, batch, width)
            self.dstate_flat = dstate_all.flatten(0, 1)
            self.dh_all = dstate_all[:, :, :n_state]
            self.dh = self.dh_all.unbind()


def _state_begin(architecture: Architecture) -> int:
    """First row of [W_m; W_a] in the fusion matrix; without residual memory it is [W_a] alone."""
    return architecture.n_inputs + architecture.memory_size * (architecture.residual == "none")
