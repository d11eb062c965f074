"""A learner on a set of lags -> a one-step baseline."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from varnn._types import FloatArray
from varnn.baselines._history import History, Precision, Preparation, fitted
from varnn.baselines._lagged import Lags, last_labels
from varnn.data.panel import Panel
from varnn.data.windows import Rows
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


class LagRule(Protocol):
    """What decides which lags a model of some training rows sees."""

    def on(self, panel: Panel) -> Lags:
        """Name the lags."""
        ...


@dataclass(kw_only=True, eq=False)
class Regression:
    """One-step predictions by a learner on lags; see :func:`varnn.baselines.make`.

    Parameters
    ----------
    learner : Learner
        What maps regressors to the label.
    lags : LagRule
        What a prediction sees: lags as they are, or a rule that training rows decide by.
    """

    learner: Learner
    lags: LagRule
    lags_: Lags = field(init=False, repr=False)
    preparation_: Preparation | None = field(default=None, init=False, repr=False)

    def fit(self, panel: Panel, *, validation: Panel | None = None) -> "Regression":
        """Learn from the rows that have all their lags and a label: of the latest 400,000 rows."""
        panel = panel.latest(MOST_ROWS)
        lags = self.lags.on(panel)
        if lags.n_columns(panel.n_inputs) == 0:
            raise DataError(
                "this baseline predicts from the inputs alone, and the panel has none. "
                "Give it inputs, or use a baseline that sees past labels, such as 'arx-lr'."
            )
        preparation = Preparation.of(panel, self.learner.precision)
        examples = _examples(preparation(panel), lags, lags.training_rows)
        judges = None
        if validation is not None:
            judges = _examples(preparation(validation.latest(MOST_ROWS)), lags, lags.validation_rows)
        self.learner.fit(examples, judges if judges is not None and len(judges[1]) else None)
        self.preparation_, self.lags_ = preparation, lags
        return self

    def check_packages(self) -> None:
        """Say what the learner needs and is not installed, if anything."""
        getattr(self.learner, "check_packages", lambda: None)()

    def predict(self, panel: Panel) -> FloatArray:
        """Predict every row one step ahead, in panel order and the target's units."""
        preparation = fitted(self.preparation_, self)
        history, lags = preparation(panel), self.lags_
        stretch = max(1, NUMBERS_AT_ONCE // lags.n_columns(panel.n_inputs))
        rows = np.arange(len(panel))
        parts = [
            self.learner.predict(lags.regressors(history, rows[begin : begin + stretch]))
            for begin in range(0, len(panel), stretch)
        ]
        predictions = np.where(lags.is_early(panel), last_labels(history), np.concatenate(parts))
        return preparation.restore(predictions)


def _examples(history: History, lags: Lags, list_rows: Callable[[History], Rows]) -> Examples:
    rows = list_rows(history)
    return lags.regressors(history, rows), history.panel.target[rows]


@dataclass(frozen=True)
class LaggedModel:
    """What a Regression is put together from; calling it takes the options of both parts by name.

    Examples
    --------
    >>> from varnn.baselines.linear import LeastSquares
    >>> LaggedModel(LeastSquares, Lags.of)(window=3).lags
    Lags(labels=(1, 2), inputs=(0, 1, 2), seasonal=(), cycles=(), as_steps=False)
    """

    learner: Callable[..., Learner]
    lags: Callable[..., LagRule]

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
