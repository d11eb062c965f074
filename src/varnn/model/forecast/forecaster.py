"""Fitted direct forecaster: from the last label of each series to its next H rows, with bands."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from varnn._types import BoolArray, DoubleArray
from varnn.data.chunks import chunks
from varnn.data.panel import Panel
from varnn.data.preparation import fill_gaps
from varnn.data.rules import optional, whole
from varnn.errors import ConfigError, DataError
from varnn.model.fitted import Fitted, labels_up_to
from varnn.model.floor import floored, lifted, lifted_at_end
from varnn.model.forecast.direct import CHANGES, DirectPart, HorizonFeatures
from varnn.model.forecast.forecast import Forecast
from varnn.model.forecast.rows import (
    coming_inputs,
    coming_times,
    extended,
    inputs_known_before,
    series_ends,
    targets_ahead,
)
from varnn.model.intervals import Calibrator, check_levels, follow
from varnn.network.cell import look_ahead
from varnn.network.scoring import score

_SCORED_ROWS = 1 << 13  # at a time, as their hidden layers are large
_LATELY = 256  # rows whose outcomes tell whether intervals are wide enough


class ForecastParts(NamedTuple):
    """Forecasts from before each row, with the network's part apart: for N rows and H steps."""

    linear_predictions: DoubleArray  # (N, H): the linear part
    added: DoubleArray  # (N, H): by the network
    movement: DoubleArray  # (N,): how much labels had moved

    def rows(self, some: BoolArray) -> "ForecastParts":
        """Keep some rows: (N,)."""
        return ForecastParts(*(one[some] for one in self))

    def forecasts(self, shrinkage: DoubleArray) -> DoubleArray:
        """Add shrinkage (H,) of the network's part: (N, H)."""
        return self.linear_predictions + shrinkage * self.added


@dataclass(frozen=True, eq=False, kw_only=True)
class Forecaster:
    """A trained direct forecaster: linear part, network and bands for each step of the horizon.

    Parameters
    ----------
    network : Fitted
        Sees rows as `varnn.model.forecast.rows.inputs_known_before` shows them; predicts each, and the rows
        after it.
    known : tuple of str
        Names of the inputs that are known in the future.
    direct : DirectPart
        What its heads' outputs are added to.
    shrinkage : array of shape (H,)
        How much of each head's output is added, from 0 to 1.
    calibrator : Calibrator or None, default None
        How far off it was on validation rows; None without any.
    """

    network: Fitted
    known: tuple[str, ...]
    direct: DirectPart
    shrinkage: DoubleArray
    calibrator: Calibrator | None = None

    @property
    def horizon(self) -> int:
        """Rows ahead."""
        return self.network.architecture.horizon

    @property
    def rows_kept(self) -> int:
        """Rows before a forecast whose labels it is made from: what it depends on, and how it lately did."""
        return self.reach + _LATELY

    @property
    def rows_followed(self) -> int:
        """Rows before a forecast whose inputs it is made from, and whose outcomes its intervals."""
        return self.network.window + CHANGES + 1 + _LATELY

    @property
    def reach(self) -> int:
        """Rows before a forecast that its predictions need, if the first has the last label known."""
        return self.network.window + max(CHANGES + 1, self.network.pipeline.reach)

    def forecast(
        self,
        panel: Panel,
        *,
        horizon: int | None = None,
        inputs: Any = None,
        interval: float | Sequence[float] | None = None,
        free: BoolArray | None = None,
    ) -> Forecast:
        """Forecast the rows after the end of each series.

        Parameters
        ----------
        panel : Panel
            The rows so far, labels in its target.
        horizon : int or None, default None
            Rows ahead, at most the horizon it was trained for, which None is.
        inputs : Panel, array or None, default None
            The inputs known in the future, for these rows: a Panel with the same series, or an array
            (H, inputs) for one series, (S, H, inputs) for several.
        interval : float, sequence of float or None, default None
            Level, or levels, of intervals.
        free : array of shape (S,) or None, default None
            Series whose forecasts may be below zero, of a target that cannot; None are those of the rows so
            far with such a label.

        Returns
        -------
        Forecast
        """
        if wrong := optional(whole(1)).broken("horizon", horizon):
            raise ConfigError(wrong)
        steps = self.horizon if horizon is None else horizon
        if not 1 <= steps <= self.horizon:
            raise ConfigError(
                f"horizon must be from 1 to {self.horizon}, which the model was trained for; got {steps}. "
                "Fit with a longer `horizon`, or use method='iterate'."
            )
        free = lifted_at_end(self.network.pipeline.plausible(panel)) if free is None else free
        recent = self._recent(panel)
        future = self._future(recent, inputs, steps)
        rows = extended(recent, self.horizon, future, self.known)
        first = rows.starts[1:] - self.horizon  # row T + 1 of each series
        time = None if panel.time is None else coming_times(recent, steps)
        if interval is None:
            prediction = self.historical_forecasts(rows, free=free)[first, :steps]
            return Forecast.after(panel, prediction, time)
        levels = check_levels(interval)
        followed = self.historical_intervals(
            rows, levels, latest=self.rows_followed + self.horizon, free=free
        )
        prediction, lower, upper = (one[first, :steps] for one in followed)
        if not isinstance(interval, Sequence | np.ndarray):
            lower, upper = lower[:, :, 0], upper[:, :, 0]
        return Forecast.after(panel, prediction, time, lower, upper, levels=levels.tolist())

    def linear_alone(self) -> "Forecaster":
        """Leave the network out."""
        return replace(self, shrinkage=np.zeros(self.horizon))

    def historical_forecasts(self, panel: Panel, *, free: BoolArray | None = None) -> DoubleArray:
        """Forecast from before each row, as if it and all later ones had not come yet: (N, H).

        Column k is about row t + k. Inputs known in the future are taken from the rows themselves. Of a
        target that cannot be negative no forecast is below zero, but for series that are ``free``: (S,).
        """
        return self.floored(self.parts(panel).forecasts(self.shrinkage), panel, free)

    def floored(self, values: DoubleArray, panel: Panel, free: BoolArray | None = None) -> DoubleArray:
        """Stop forecasts from before each row, (N, H, ...), at zero, where the target cannot be negative."""
        if not self.network.positive:
            return values
        rows = lifted(self.network.pipeline.plausible(panel))
        if free is not None:
            rows |= np.repeat(free, panel.lengths)
        return floored(values, rows.reshape(-1, *[1] * (values.ndim - 1)))

    def historical_intervals(
        self,
        panel: Panel,
        levels: DoubleArray,
        *,
        latest: int | None = None,
        free: BoolArray | None = None,
    ) -> tuple[DoubleArray, DoubleArray, DoubleArray]:
        """Forecast from before each row, with bounds from outcomes before it.

        Parameters
        ----------
        panel : Panel
        levels : array of shape (L,)
        latest : int or None, default None
            Rows at the end of each series whose outcomes count; None is all.
        free : array of shape (S,) or None, default None
            As that of :meth:`historical_forecasts`.

        Returns
        -------
        predictions, lower, upper : arrays of shape (N, H), (N, H, L) and (N, H, L)
        """
        if self.calibrator is None:
            raise ConfigError(
                "this model does not know how large its errors are: intervals need validation rows and "
                "intervals=True when fitting."
            )
        parts = self.parts(panel)
        predictions = self.floored(parts.forecasts(self.shrinkage), panel, free)
        errors = np.column_stack([panel.target, targets_ahead(panel, self.horizon)])
        errors -= predictions
        if latest is not None:
            errors[np.arange(len(panel)) <= series_ends(panel) - latest] = np.nan
        lower, upper = follow(self.calibrator, parts.movement[:, None], errors, panel.starts, levels)
        lower += predictions[:, :, None]
        upper += predictions[:, :, None]
        return predictions, self.floored(lower, panel, free), upper

    def parts(self, panel: Panel) -> "ForecastParts":
        """Look ahead from before each row, with the linear part and the network apart."""
        rows, network, direct = inputs_known_before(panel, self.known), self.network, self.direct
        prepared = network.prepared(rows)
        plausible = network.pipeline.plausible(rows)  # as the rows prepared are
        features = HorizonFeatures.of(
            plausible, prepared.panel, self.known, network.pipeline, mean=direct.mean
        )
        linear_predictions, added = np.empty((len(panel), self.horizon)), np.empty((len(panel), self.horizon))
        linear_predictions[:, 0] = prepared.linear_predictions
        for some in features.chunks(np.arange(len(panel))):
            linear_predictions[some, 1:] = direct.linear_predictions(features, some)
        for chunk in chunks(prepared.panel, most=_SCORED_ROWS, context=network.window - 1):
            rows, context = chunk.panel, chunk.context
            scores = score(
                network.architecture,
                network.weights,
                rows.inputs,
                rows.target,
                rows.first_rows,
                network.window,
                keep_hidden=True,
            )
            output = scores.predictions[:, context:].mean(axis=0, dtype=np.float64)
            added[chunk.rows, 0] = network.pipeline.scaling.restore(output)
            later = look_ahead(network.weights, scores.hidden[:, context:]).mean(axis=0, dtype=np.float64)
            added[chunk.rows, 1:] = direct.scales * later
        return ForecastParts(linear_predictions, added, features.movement)

    def _recent(self, panel: Panel) -> Panel:
        """Keep the end of each series, as a stream does (`varnn.model.forecast.recent`).

        Its first row gets the last label known, if it has none of its own. Inputs are kept of fewer rows
        than labels, which seasons look further back on: before them they are as in the first of these rows.
        """
        if not len(panel):
            raise DataError("a forecast needs rows to start from; there are none.")
        pipeline = self.network.pipeline
        panel = fill_gaps(panel, pipeline.fill, pipeline.initial_inputs)
        first = np.maximum(panel.starts[1:] - self.rows_kept, panel.starts[:-1])
        recent = panel.ranges(first, panel.starts[1:])
        target = recent.target.copy()
        target[recent.starts[:-1]] = labels_up_to(panel, first)
        rows = np.maximum(series_ends(recent) + 1 - self.rows_followed, np.arange(len(recent)))
        return replace(recent, target=target, inputs=recent.inputs[rows])

    def _future(self, panel: Panel, inputs: Any, steps: int) -> DoubleArray | None:
        """Read the inputs known in the future, (S, H, inputs); beyond the rows asked for the last is held."""
        if not self.known:
            if inputs is not None:
                raise DataError(
                    "no input of this model was declared as known in the future, so it takes no future "
                    "inputs. Fit with known_inputs=[...]."
                )
            return None
        if inputs is None:
            raise DataError(
                f"inputs {list(self.known)} were declared as known in the future: give their next {steps} "
                "values as `inputs`."
            )
        values = coming_inputs(inputs, panel.ids, self.known, steps)
        if not np.isfinite(values).all():
            raise DataError(f"future inputs must be finite numbers; some of {list(self.known)} are missing.")
        missing = self.horizon - steps
        return np.concatenate([values, np.repeat(values[:, -1:], missing, axis=1)], axis=1)
