"""Panel -> History: inputs filled and scaled, and at each row the last label known there.

Every baseline starts here, so all of them see the same numbers and none can look ahead.
"""

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from varnn._types import FloatArray
from varnn.data.panel import Panel
from varnn.data.preparation import LIMIT, Scaling, fill_gaps
from varnn.errors import DataError, NotFittedError

Precision = type[np.float32] | type[np.float64]
T = TypeVar("T")


@dataclass(frozen=True, eq=False, kw_only=True)
class History:
    """Rows as a baseline sees them.

    Parameters
    ----------
    panel : Panel
        The rows in scaled units: inputs without gaps, labels NaN where missing.
    known : array
        The last label at each row or before it in its series; ``unknown`` where there is none.
    unknown : float
        Training mean of the target: stands in for a label nobody has seen yet.
    """

    panel: Panel
    known: FloatArray  # (N,)
    unknown: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Preparation:
    """How rows become a History; every statistic comes from the rows given to :meth:`of`.

    Examples
    --------
    >>> panel = Panel.from_arrays([[0.0], [None], [10.0]], [1.0, None, 3.0])
    >>> history = Preparation.of(panel, np.float64)(panel)
    >>> history.panel.inputs[:, 0].tolist(), history.known.tolist()
    ([0.0, 0.0, 1.0], [0.0, 0.0, 1.0])
    """

    scaling: Scaling
    target_mean: float
    input_names: tuple[str, ...]
    precision: Precision

    @classmethod
    def of(cls, panel: Panel, precision: Precision) -> "Preparation":
        """Measure the training rows."""
        return cls(
            scaling=Scaling.fit(panel, "minmax"),
            target_mean=float(np.nanmean(panel.target, dtype=np.float64)),
            input_names=panel.input_names,
            precision=precision,
        )

    def __call__(self, panel: Panel) -> History:
        """Fill and scale a panel; its columns must be those of the training rows."""
        if panel.input_names != self.input_names:
            raise DataError(
                f"the inputs must be those the model was fitted on, {list(self.input_names)[:10]}; "
                f"got {list(panel.input_names)[:10]}. Make the panel with the same `inputs`."
            )
        scaling = self.scaling
        filled = fill_gaps(panel, "forward", scaling.initial_inputs)
        unknown = self._scaled(np.array([self.target_mean]), scaling.target_offset, scaling.target_scale)
        scaled = replace(
            panel,
            inputs=self._scaled(filled.inputs, scaling.input_offset, scaling.input_scale),
            target=self._scaled(panel.target, scaling.target_offset, scaling.target_scale),
        )
        # Labels are carried forward by the rule for inputs: as a panel whose one input they are.
        labels = replace(scaled, inputs=scaled.target[:, None], input_names=(panel.target_name,))
        known = fill_gaps(labels, "forward", unknown).inputs[:, 0]
        return History(panel=scaled, known=known, unknown=float(unknown[0]))

    def restore(self, scaled: FloatArray) -> FloatArray:
        """Bring predictions back into the target's own units, in float64."""
        return np.asarray(self.scaling.restore(scaled))

    def _scaled(
        self, values: FloatArray, offset: FloatArray | float, scale: FloatArray | float
    ) -> npt.NDArray[Any]:
        # Scaling.apply ends in float32, which would cost linear models their last digits.
        scaled = np.subtract(values, offset, dtype=np.float64)
        scaled /= scale
        return np.clip(scaled, -LIMIT, LIMIT, out=scaled).astype(self.precision, copy=False)


def fitted(value: T | None, model: object) -> T:
    """Fitted state of a model; NotFittedError where there is none."""
    if value is None:
        raise NotFittedError(f"this {type(model).__name__} is not fitted yet. Call fit(panel) first.")
    return value
