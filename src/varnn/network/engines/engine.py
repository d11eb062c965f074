"""Training engines: what they are given, what they give, and what they say of themselves.

An engine gives the loss of a batch of windows and its gradient as one flat vector, so that the optimiser
is a few operations on one buffer, whatever the variant. ``reference`` is written to be read and is the
truth the others are tested against.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from varnn.errors import ConfigError, require
from varnn.network.cell import Architecture, Array, Weights
from varnn.network.handled import HandledCells

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, eq=False)
class Task:
    """What an engine computes: the loss of a cell on windows of some rows.

    Parameters
    ----------
    architecture : Architecture
        The cell.
    inputs, target : Tensor
        All rows, (N, D) and (N,), scaled, on the device to compute on; NaN in the target is a missing label.
    window : int
        Rows in a window.
    loss_rows : int, default 1
        Rows at the end of a window whose errors make the loss; the paper takes the last one.
    ahead : Tensor or None, default None
        Targets of the rows after each row, (N, H - 1), for a cell that looks ahead; NaN where unknown.
    members : int, default 1
        Networks that are trained in every step, each on windows of its own.
    weights : Tensor or None, default None
        How much the error of each row counts, (N,); None: all alike. The loss is the sum of weighted squares
        over the number of rows that count at all. Not with targets ahead.
    """

    architecture: Architecture
    inputs: "Tensor"
    target: "Tensor"
    window: int
    loss_rows: int = 1
    ahead: "Tensor | None" = None
    members: int = 1
    weights: "Tensor | None" = None

    def __post_init__(self) -> None:
        if self.weights is not None and self.ahead is not None:
            raise ConfigError("rows are weighed for the next row only: give weights, or targets ahead.")


class Optimiser(Protocol):
    """A rule that moves the weights ``flat`` against gradients, in place."""

    flat: "Tensor"
    learning_rate: float  # which a schedule changes between steps

    def step(self, gradient: "Tensor") -> None:
        """Move the weights against a gradient."""
        ...


class Engine(ABC):
    """A way to compute the loss of a batch of windows and its gradient.

    A class of its own says what it handles: `cells` of the cell, `limits` of the rest of a task, `packages`
    of what must be installed. Made for anything else it raises; it never computes what it is not right for.

    Parameters
    ----------
    task : Task
        What to compute.
    """

    name: ClassVar[str]
    cells: ClassVar[HandledCells]
    batches_members: ClassVar[bool] = False  # takes weights (E, P) and windows (E, B), gives losses (E,)
    packages: ClassVar[Mapping[str, str]] = {}  # optional ones that it needs: the extra that brings each

    def __init__(self, task: Task) -> None:
        refusal = self.refusal(task)
        if refusal is not None:
            raise refusal
        self.architecture = task.architecture

    @classmethod
    def handles(cls, architecture: Architecture) -> bool:
        """Tell whether loss and gradient of a cell are right here, judged by all of its fields."""
        return architecture in cls.cells

    @classmethod
    def refusal(cls, task: Task) -> ConfigError | ImportError | None:
        """Explain, as an error to raise, why a task cannot be done here; None where it can."""
        reasons = [*cls.cells.unhandled(task.architecture), *cls.limits(task)]
        if task.members > 1 and not cls.batches_members:
            reasons.append(f"{task.members} members at once (only one)")
        if reasons:
            return ConfigError(
                f"engine={cls.name!r} does not handle {', '.join(reasons)}. "
                "Use Details(engine='auto'), or 'reference', which handles everything."
            )
        try:
            for package, extra in cls.packages.items():
                require(package, extra=extra, purpose=f"engine={cls.name!r}")
        except ImportError as error:  # it is not installed, or is one that refuses this version of NumPy
            return error
        return None

    @classmethod
    @abstractmethod
    def limits(cls, task: Task) -> list[str]:
        """List what of a task, beside cell and members, is not handled, in words that say what would be."""

    @abstractmethod
    def loss_and_gradient(self, flat: "Tensor", ends: "Tensor") -> "tuple[Tensor, Tensor]":
        """Mean squared error of the windows ending at rows ``ends``, (B,), and its gradient, (P,).

        An engine that takes several members at once has weights (E, P), windows (E, B) and losses (E,).
        The gradient may be a buffer that the next call overwrites.
        """

    @abstractmethod
    def optimiser(self, flat: "Tensor", learning_rate: float) -> Optimiser:
        """Adam for the weights ``flat``, in the way that is fastest beside this engine."""


def pack(weights: Weights) -> npt.NDArray[np.float32]:
    """Flat vector of a cell's weights, all matrices end to end."""
    return np.concatenate([matrix.ravel() for matrix in weights.as_dict().values()])


def unpack(architecture: Architecture, flat: Array) -> Weights:
    """Matrices of a cell as views of one flat vector (NumPy or torch); nothing is copied.

    Vectors of several members, (E, P), give matrices with a leading axis of members.

    Parameters
    ----------
    architecture : Architecture
        The cell.
    flat : array or Tensor
        The vector, ([E,] P).

    Examples
    --------
    >>> from varnn.network.cell import initial_weights
    >>> cell = Architecture.of("ARM", n_inputs=2, hidden_size=3)
    >>> unpack(cell, pack(initial_weights(cell, seed=0))).carry.shape
    (2, 2)
    """
    views, begin = {}, 0
    for name, (rows, columns) in architecture.shapes.items():
        views[name] = flat[..., begin : begin + rows * columns].reshape(*flat.shape[:-1], rows, columns)
        begin += rows * columns
    return Weights(**views)
