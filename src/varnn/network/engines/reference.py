"""The training loss as the paper writes it, with autograd: slow, short, and the truth.

A window of length w makes w - 1 teacher-forced steps, then predicts its last row without an
update; the loss is the squared error of that last row, or (`loss_rows`) the mean of the last few. A cell that
looks ahead adds the mean squared error of what its loss rows say of the rows after them.
"""

import torch
from torch import Tensor

from varnn.network import cell
from varnn.network.cell import Architecture
from varnn.network.engines.engine import unpack


class ReferenceEngine:
    """Loss and gradient of a batch of windows through autograd; of several members at once, if asked.

    On a GPU, where a small product costs no less than a large one, members together take the time of one.

    Parameters
    ----------
    architecture
        The cell.
    inputs, target
        All rows, (N, D) and (N,), scaled; NaN in the target is a missing label.
    window
        Rows in a window.
    loss_rows
        Rows at the end of a window whose errors make the loss; those without a label are left out.
    ahead
        Targets of the rows after each row, (N, H - 1), for a cell that looks ahead; NaN where unknown.
    """

    def __init__(
        self,
        architecture: Architecture,
        inputs: Tensor,
        target: Tensor,
        window: int,
        loss_rows: int = 1,
        ahead: Tensor | None = None,
    ) -> None:
        self.architecture = architecture
        self.inputs = inputs
        self.target, self.ahead = target, ahead
        self.window, self.loss_rows = window, loss_rows
        self.any_missing = bool(target.isnan().any())

    def loss_and_gradient(self, flat: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
        """Give the mean squared error of the windows ending at rows ``ends``, and its gradient."""
        parameters = flat.detach().requires_grad_()
        loss = self.loss(parameters, ends)
        (gradient,) = torch.autograd.grad(loss.sum(), parameters)  # a member's loss is its own weights' alone
        return loss.detach(), gradient

    def loss(self, flat: Tensor, ends: Tensor) -> Tensor:
        """Give the mean squared error of the windows' loss rows, differentiable in ``flat``."""
        weights = unpack(self.architecture, flat)
        loss_rows, later = [], []
        state = None
        for back in range(self.window - 1, -1, -1):
            rows = ends - back
            projected = cell.project(self.architecture, weights, self.inputs[rows])  # ([E,] B, K)
            if state is None:
                state = cell.initial_state(self.architecture, like=projected)
            y_hat, u = cell.predict(self.architecture, weights, projected, state)  # ([E,] B, 1 and K)
            error = self.target[rows].unsqueeze(-1) - y_hat
            if back < self.loss_rows:
                loss_rows.append(error)
                if self.ahead is not None:
                    later.append(self.ahead[rows] - cell.look_ahead(weights, u))  # ([E,] B, H - 1)
            if back > 0:
                missing = error.isnan() if self.any_missing else None
                state = cell.update(self.architecture, weights, error, u, state, missing)
        loss = _mean_square(torch.cat(loss_rows, dim=-1))  # of ([E,] B, loss rows)
        return loss + _mean_square(torch.cat(later, dim=-1)) if later else loss


def _mean_square(errors: Tensor) -> Tensor:
    """Average what is known of the errors ([E,] B, any) of each member."""
    known = (~errors.isnan()).sum((-2, -1)).clamp(min=1)
    return errors.nan_to_num(0).square().sum((-2, -1)) / known
