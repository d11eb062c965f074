"""One step of n series: x in, a prediction out, a label in; what a stream asks of who does the arithmetic."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from varnn._types import BoolArray, DoubleArray, FloatArray
from varnn.data.preparation import Scaling
from varnn.model.fitted import Fitted
from varnn.model.intervals import Interval

Levels = tuple[float, ...]


class Step(ABC):
    """The step under way, and all that carries over to the next one.

    Parameters
    ----------
    model : Fitted
        The model.
    n_series : int or None
        None for one series: x is (D,), y a number. Otherwise n series in step: (n, D) and (n,).
    """

    x: FloatArray  # of the open step, gaps filled
    answer: Any  # its prediction: a float, or (n,)

    def __init__(self, model: Fitted, n_series: int | None) -> None:
        self.model, self.n_series = model, n_series
        self.width = 1 if n_series is None else n_series
        self.shape = (len(model.input_names),) if n_series is None else (n_series, len(model.input_names))

    @property
    def scaling(self) -> Scaling:
        """What the network's numbers are scaled by."""
        return self.model.pipeline.scaling

    @abstractmethod
    def advance(self, given: FloatArray, time: Any, levels: Levels = ()) -> None:
        """Predict the rows with these inputs, (D,) or (n, D), and put bounds of some levels around them.

        May be called any number of times. A row that cannot be used raises DataError; another one has to
        take its place before a label comes.
        """

    @abstractmethod
    def bounds(self, levels: Levels) -> tuple[DoubleArray, DoubleArray]:
        """Lower and upper bounds of the open step, of levels it was advanced with: (n, L) each."""

    def interval(self, levels: Levels, *, several: bool) -> Interval:
        """Give the answer with its bounds: one level loses its axis, unless it is one of several."""
        lower, upper = self.bounds(levels)
        if not several:
            lower, upper = lower[:, 0], upper[:, 0]
        if self.n_series is None:
            return Interval(self.answer, lower[0], upper[0])
        return Interval(self.answer.copy(), lower, upper)

    @abstractmethod
    def covered(self, level: float, innovation: Any) -> Any:
        """Whether the interval of a level holds the label that differs so from the prediction: (n,).

        NaN where there is none. Of one series it may be a number.
        """

    @abstractmethod
    def observe(self, labels: Any, *, learn: bool = True) -> None:
        """Close the step with its label, or labels (n,); NaN is missing. Without ``learn``, only look on."""

    @property
    @abstractmethod
    def weights(self) -> DoubleArray:
        """Weights of the experts in the next prediction: (n, K); of a model without experts (n, 0)."""

    @property
    @abstractmethod
    def lifted(self) -> BoolArray:
        """Whether a label of each series was below zero: (n,)."""

    @abstractmethod
    def states(self) -> dict[str, npt.NDArray[Any]]:
        """All that later steps depend on, as arrays of a snapshot."""

    @abstractmethod
    def restore(self, tensors: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over what :meth:`states` gave."""

    def kept(self) -> Any:
        """All that is needed to go back to here within this process, in arrays of its own."""
        return {name: array.copy() for name, array in self.states().items()}

    def go_back(self, kept: Any, given: FloatArray | None, time: Any) -> None:
        """Take over what :meth:`kept` gave, and open the step that was open then: None where none was."""
        self.restore({name: array.copy() for name, array in kept.items()})
        if given is not None:
            self.advance(given, time)


def missing_where(errors: DoubleArray, held: BoolArray) -> DoubleArray:
    """Say 1 or 0 of intervals that held or did not, and NaN where no label came."""
    return np.where(np.isnan(errors), np.nan, held)
