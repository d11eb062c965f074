"""A learner on a set of lags -> a one-step baseline."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from varnn._types import FloatArray
from varnn.baselines._history import Precision, Preparation, fitted
from varnn.baselines._lagged import Lags, last_labels
from varnn.data.panel import Panel
from varnn.errors import DataError

# A stretch of rows is gathered and predicted at a time, so that memory stays below 100 MB
# whatever the number of rows and lags.
MOST_ROWS = 400_000  # to learn from: their regressors lie side by side in memory, and solvers copy them
NUMBERS_AT_ONCE = 2**23

Examples = tuple[npt.NDArray[Any], npt.NDArray[Any]]  # regressors (B, ...) and labels (B,)


class Learner(Protocol):
    """A regression on given regressors, in scaled units; fitting again starts anew."""

    precision: ClassVar[Precision]  # type of the numbers it works in

    def fit(self, examples: Examples, validation: Examples | None) -> None:
        """Learn; the validation examples may decide when to stop, and nothing else."""
        ...

    def predict(self, regressors: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Predict (B,) labels."""
        ...


@dataclass(kw_only=True, eq=False)
class Regression:
    """One-step predictions by a learner on lags; see :func:`varnn.baselines.make`.

    Parameters
    ----------
    learner : Learner
        What maps regressors to the label.
    lags : Lags
        What a prediction sees.
    """

    learner: Learner
    lags: Lags
    preparation_: Preparation | None = field(default=None, init=False, repr=False)

    def fit(self, panel: Panel, *, validation: Panel | None = None) -> "Regression":
        """Learn from the rows that have all their lags and a label: of the latest 400,000 rows."""
        if self.lags.n_columns(panel.n_inputs) == 0:
            raise DataError(
                "this baseline predicts from the inputs alone, and the panel has none. "
                "Give it inputs, or use a baseline that sees past labels, such as 'arx-lr'."
            )
        panel = panel.latest(MOST_ROWS)
        preparation = Preparation.of(panel, self.learner.precision)
        self.learner.fit(
            self._examples(preparation, panel),
            None if validation is None else self._examples(preparation, validation.latest(MOST_ROWS)),
        )
        self.preparation_ = preparation
        return self

    def predict(self, panel: Panel) -> FloatArray:
        """Predict every row one step ahead, in panel order and the target's units."""
        preparation = fitted(self.preparation_, self)
        history = preparation(panel)
        stretch = max(1, NUMBERS_AT_ONCE // self.lags.n_columns(panel.n_inputs))
        rows = np.arange(len(panel))
        parts = [
            self.learner.predict(self.lags.regressors(history, rows[begin : begin + stretch]))
            for begin in range(0, len(panel), stretch)
        ]
        predictions = np.where(self.lags.is_early(panel), last_labels(history), np.concatenate(parts))
        return preparation.restore(predictions)

    def _examples(self, preparation: Preparation, panel: Panel) -> Examples:
        history = preparation(panel)
        rows = self.lags.training_rows(history)
        return self.lags.regressors(history, rows), history.panel.target[rows]


@dataclass(frozen=True)
class LaggedModel:
    """What a Regression is put together from; calling it takes the options of both parts by name.

    Examples
    --------
    >>> from varnn.baselines.linear import LeastSquares
    >>> LaggedModel(LeastSquares, Lags.of)(window=3).lags
    Lags(labels=(1, 2), inputs=(0, 1, 2), as_steps=False)
    """

    learner: Callable[..., Learner]
    lags: Callable[..., Lags]

    def __call__(self, **options: Any) -> Regression:
        """Make a fresh, unfitted baseline."""
        of_lags = {
            name: options.pop(name) for name in inspect.signature(self.lags).parameters if name in options
        }
        return Regression(learner=self.learner(**options), lags=self.lags(**of_lags))

    @property
    def __signature__(self) -> inspect.Signature:
        parts = (inspect.signature(part).parameters.values() for part in (self.lags, self.learner))
        return inspect.Signature([one.replace(kind=one.KEYWORD_ONLY) for part in parts for one in part])
