"""Rows -> what a fitted model made of them: its errors, its memory, whom it believed, what is left over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from varnn._types import FloatArray
from varnn.data.panel import Panel
from varnn.estimator.input import RowSeries, RowTime, in_order
from varnn.model.expert_weights import ExpertWeights, expert_weights
from varnn.model.fitted import Fitted
from varnn.model.prediction import predict, residual_memory

if TYPE_CHECKING:
    from varnn.monitoring import Diagnosis


class Looking:
    """Ways to look into a fitted estimator; all take rows as ``predict`` does."""

    fitted_: Fitted

    def innovations(
        self,
        X: Any,
        y: Any = None,
        *,
        series: RowSeries = None,
        time: RowTime = None,
        resume: bool | None = None,
    ) -> FloatArray:
        """Label minus one-step prediction of every row, NaN where the label is missing; as ``predict``."""
        panel = self._panel(X, y, series, time)
        return in_order(X, panel, np.asarray(panel.target - predict(self.fitted_, panel, resume=resume)))

    def memory(
        self, X: Any, y: Any = None, *, series: RowSeries = None, time: RowTime = None
    ) -> npt.NDArray[np.float32]:
        """Residual memory that each row was predicted with, (n_rows, ensemble * memory_size)."""
        panel = self._panel(X, y, series, time)
        return in_order(X, panel, residual_memory(self.fitted_, panel))

    def expert_weights(
        self,
        X: Any,
        y: Any = None,
        *,
        series: RowSeries = None,
        time: RowTime = None,
        resume: bool | None = None,
    ) -> ExpertWeights:
        """How much each expert counted in each prediction; rows and `resume` are as those of ``predict``."""
        panel = self._panel(X, y, series, time)
        names, weights = expert_weights(self.fitted_, panel, resume=resume)
        return ExpertWeights(names, in_order(X, panel, weights))

    def diagnose(
        self,
        X: Any,
        y: Any = None,
        *,
        series: RowSeries = None,
        time: RowTime = None,
        resume: bool | None = None,
    ) -> Diagnosis:
        """Say what the innovations still hold, where they changed, and whether intervals covered."""
        from varnn.monitoring.diagnostics import PredictionTrace, diagnose_trace

        return diagnose_trace(
            PredictionTrace.of(self.fitted_, self._panel(X, y, series, time), resume=resume)
        )

    def _panel(self, X: Any, y: Any, series: RowSeries, time: RowTime) -> Panel:
        """The rows to look at, of a model that is fitted."""
        raise NotImplementedError
