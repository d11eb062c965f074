"""The training loss as the paper writes it, with autograd: slow, short, and the truth.

A window of length w makes w - 1 teacher-forced steps, then predicts its last row without an
update; the loss is the squared error of that last row, or (`loss_rows`) the mean of the last few. A cell that
looks ahead adds the mean squared error of what its loss rows say of the rows after them.
"""

import torch
from torch import Tensor

from varnn.network import cell
from varnn.network.engines.adam import FlatAdam
from varnn.network.engines.engine import Engine, Task, unpack
from varnn.network.handled import ANY, HandledCells


class ReferenceEngine(Engine):
    """Loss and gradient of a batch of windows through autograd; of several members at once, if asked.

    It calls the cell itself, so it handles every cell that there is. On a GPU, where a small product costs
    no less than a large one, members together take the time of one.

    Parameters
    ----------
    task : Task
        What to compute. Loss rows without a label are left out.

    Examples
    --------
    >>> from varnn.network.cell import Architecture, initial_weights
    >>> from varnn.network.engines.engine import pack
    >>> cell = Architecture.of("ARM+AM", n_inputs=2, hidden_size=4)
    >>> engine = ReferenceEngine(Task(cell, torch.ones(9, 2), torch.arange(9.0), window=3))
    >>> flat = torch.tensor(pack(initial_weights(cell, seed=0)))
    >>> loss, gradient = engine.loss_and_gradient(flat, torch.tensor([2, 5, 8]))
    >>> loss.shape, gradient.shape == flat.shape
    (torch.Size([]), True)
    """

    name = "reference"
    cells = HandledCells({}, others=ANY)
    batches_members = True

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.inputs = task.inputs
        self.target, self.ahead, self.weights = task.target, task.ahead, task.weights
        self.window, self.loss_rows = task.window, task.loss_rows
        self.any_missing = bool(task.target.isnan().any())

    @classmethod
    def limits(cls, task: Task) -> list[str]:
        """List nothing: all is handled."""
        return []

    def optimiser(self, flat: Tensor, learning_rate: float) -> FlatAdam:
        """Adam in one operation of torch."""
        return FlatAdam(flat, learning_rate)

    def loss_and_gradient(self, flat: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
        """Mean squared error of the windows ending at rows ``ends``, and its gradient."""
        parameters = flat.detach().requires_grad_()
        loss = self.loss(parameters, ends)
        (gradient,) = torch.autograd.grad(loss.sum(), parameters)  # a member's loss is its own weights' alone
        return loss.detach(), gradient

    def loss(self, flat: Tensor, ends: Tensor) -> Tensor:
        """Mean squared error of the windows' loss rows, differentiable in ``flat``."""
        weights = unpack(self.architecture, flat)
        loss_rows: list[tuple[Tensor, ...]] = []  # errors, labels and, if there are any, weights
        later: list[tuple[Tensor, ...]] = []
        state = None
        for back in range(self.window - 1, -1, -1):
            rows = ends - back
            projected = cell.project(self.architecture, weights, self.inputs[rows])  # ([E,] B, K)
            if state is None:
                state = cell.initial_state(self.architecture, like=projected)
            y_hat, u = cell.predict(self.architecture, weights, projected, state)  # ([E,] B, 1 and K)
            label = self.target[rows].unsqueeze(-1)
            error = label - y_hat
            if back < self.loss_rows:
                weighed = () if self.weights is None else (self.weights[rows].unsqueeze(-1),)
                loss_rows.append((error, label, *weighed))
                if self.ahead is not None:
                    ahead = self.ahead[rows]  # ([E,] B, H - 1)
                    later.append((ahead - cell.look_ahead(weights, u), ahead))
            if back > 0:
                missing = label.isnan() if self.any_missing else None
                state = cell.update(self.architecture, weights, error, u, state, missing)
        loss = _mean_square(loss_rows)
        return loss + _mean_square(later) if later else loss


def _mean_square(rows: list[tuple[Tensor, ...]]) -> Tensor:
    """Average the squared errors ([E,] B, any) of each member where there is a label, by weight if given.

    It is labels that say so: a prediction that is no number must reach the loss.
    """
    errors, labels, *weights = (torch.cat(each, dim=-1) for each in zip(*rows, strict=True))
    known = ~labels.isnan()
    if weights:
        known &= weights[0] > 0
    squares = errors.where(known, 0).square()
    if weights:
        squares = squares * weights[0]
    return squares.sum((-2, -1)) / known.sum((-2, -1)).clamp(min=1)
