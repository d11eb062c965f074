"""How to fit, and what the rows decide where nothing is said."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from varnn.data.panel import Panel
from varnn.data.preparation import Fill, Scale
from varnn.model.calendar import Cycle, offered_cycles
from varnn.network.cell import MemoryActivation, Residual, Variant
from varnn.network.training import Schedule, TrainConfig

LONGEST_WINDOW = 24  # rows that are chosen
STEPS = 2500  # fewest steps of Adam of a member
EPOCHS = 20  # fewest epochs of a member, where rows are few enough:
ROW_BUDGET = 20_000_000  # rows that a member learns from, all epochs together
FEWEST_EPOCHS = 2  # of however many rows
SMALLEST_BATCH, LARGEST_BATCH = 8, 64  # windows in a batch: few, as each holds several loss rows


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How to fit, in the words of :class:`varnn.VARNNRegressor`; None is chosen here."""

    variant: Variant
    window: int | None
    loss_rows: int | None
    hidden_size: int
    memory_size: int | None
    memory_activation: MemoryActivation
    residual: Residual
    epochs: int | None
    batch_size: int | None
    learning_rate: float
    schedule: Schedule
    patience: int | None
    gradient_clip: float | None
    weight_ema: float
    ensemble: int
    linear: bool
    calendar: Literal["auto"] | tuple[Cycle, ...] | None
    peers: bool
    adapt: Literal["constant-gain"] | None
    experts: Sequence[str]
    context: Literal["auto", "series", "window"]
    forgetting: float | Literal["auto"]
    positive: bool | Literal["auto"]
    intervals: bool | str
    scale: Scale
    fill: Fill
    device: str
    engine: Any

    def config(self, training: Panel) -> TrainConfig:
        """Settle what the rows decide: window, loss rows, batch and epochs.

        Short series have short windows, so that there is something to learn from. A batch is small
        enough for a hundred steps an epoch, and epochs are enough for some thousand steps. Of rows by the
        million fewer epochs do: a member learns from 20 million rows in all, but takes 2 epochs at least.

        Examples
        --------
        >>> from varnn.estimator.regressor import VARNNRegressor
        >>> settings = VARNNRegressor().settings()
        >>> rows = Panel.from_arrays(None, np.zeros(12_000))
        >>> config = settings.config(rows)
        >>> config.window, config.loss_rows, config.batch_size, config.epochs
        (24, 12, 9, 22)
        >>> [settings.config(Panel.from_arrays(None, np.zeros(rows))).epochs for rows in (10**6, 4 * 10**6)]
        [20, 5]
        """
        shortest = int(training.lengths.min()) if training.n_series else 0
        window = _chosen(self.window, min(LONGEST_WINDOW, max(1, shortest // 3)))
        loss_rows = _chosen(self.loss_rows, max(1, window // 2))
        n_windows = int(np.maximum(training.lengths - window + 1, 0).sum())
        taken = max(1, n_windows // max(1, loss_rows))  # an epoch takes each loss row once
        batch = _chosen(self.batch_size, int(np.clip(taken // 100, SMALLEST_BATCH, LARGEST_BATCH)))
        steps = max(1, taken // max(1, batch))
        epochs = max(EPOCHS, min(10 * EPOCHS, STEPS // steps))
        enough = max(FEWEST_EPOCHS, ROW_BUDGET // max(1, n_windows))
        return TrainConfig(
            window=window,
            loss_rows=loss_rows,
            epochs=_chosen(self.epochs, min(epochs, enough)),
            batch_size=batch,
            learning_rate=float(self.learning_rate),
            schedule=self.schedule,
            patience=self.patience,
            gradient_clip=self.gradient_clip,
            weight_ema=self.weight_ema,
            device=self.device,
            engine=self.engine,
        )

    def calendars(self, training: Panel, to_choose: bool) -> list[tuple[Cycle, ...]]:
        """List the choices of calendar inputs, the fewest first."""
        if self.calendar != "auto":
            return [self.calendar or ()]
        offered = offered_cycles(training.time) if to_choose else ()
        return [offered[:count] for count in range(len(offered) + 1)]


def _chosen(given: Any, automatic: int) -> Any:
    """Take what was given; NumPy's integers as Python's, so that a file can hold them."""
    if given is None:
        return automatic
    return int(given) if isinstance(given, np.integer) else given
