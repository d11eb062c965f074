"""All of a fit, stage after stage: the next row, again on all rows, the next H rows; or cut short.

Ctrl-C, or an event that is set, epochs the stage under way and skips those after it. What was finished, or is
fit for use, is kept, and the training record says under ``interrupted`` where it was cut.
"""

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from threading import Event
from typing import Literal, overload

from varnn.data.panel import Panel
from varnn.errors import ConfigError
from varnn.fitting._procedure import Stage, fit_task, refit_task
from varnn.fitting._time_left import StageKey, TimeLeft
from varnn.fitting.horizon import Horizon
from varnn.fitting.one_step import OneStep
from varnn.fitting.settings import Settings
from varnn.jobs import cores
from varnn.model.fitted import Fitted, last_rows_of
from varnn.model.floor import is_never_negative
from varnn.model.forecast import Forecaster
from varnn.model.peers import refuse_alone
from varnn.model.training_record import TrainingRecord
from varnn.network.training import Epoch, OwnEvent, Trained, Trainer, one_thread, train_members

logger = logging.getLogger(__name__)

OnEpoch = Callable[[Epoch], None]


@overload
def fit(
    settings: Settings,
    training: Panel,
    validation: Panel | None = ...,
    *,
    rows: Panel | None = ...,
    refit: bool = ...,
    horizon: int = ...,
    known_inputs: Sequence[str] = ...,
    one_step: Literal[True] = ...,
    seed: int = ...,
    on_epoch: OnEpoch | None = ...,
    stop: Event | None = ...,
    trainer: Trainer | None = ...,
) -> tuple[Fitted, Forecaster | None]: ...


@overload
def fit(
    settings: Settings,
    training: Panel,
    validation: Panel | None = ...,
    *,
    rows: Panel | None = ...,
    refit: bool = ...,
    horizon: int,
    known_inputs: Sequence[str] = ...,
    one_step: Literal[False],
    seed: int = ...,
    on_epoch: OnEpoch | None = ...,
    stop: Event | None = ...,
    trainer: Trainer | None = ...,
) -> tuple[None, Forecaster]: ...


@one_thread()
def fit(
    settings: Settings,
    training: Panel,
    validation: Panel | None = None,
    *,
    rows: Panel | None = None,
    refit: bool = False,
    horizon: int = 1,
    known_inputs: Sequence[str] = (),
    one_step: bool = True,
    seed: int = 0,
    on_epoch: OnEpoch | None = None,
    stop: Event | None = None,
    trainer: Trainer | None = None,
) -> tuple[Fitted | None, Forecaster | None]:
    """Fit a model of the next row, and one of the next H rows where the horizon is above 1.

    Parameters
    ----------
    settings : Settings
        How.
    training, validation : Panel
        Rows to learn from, and to choose on (None: nothing is chosen).
    rows : Panel, optional
        All rows given; None are the training rows.
    refit : bool, default=False
        Whether to train again on these once everything is chosen.
    horizon : int, default=1
        Rows ahead.
    known_inputs : sequence of str, default=()
        Inputs that are known so far ahead.
    one_step : bool, default=True
        Whether the model of the next row is wanted; a backtest of forecasts needs none.
    seed : int, default=0
        The first member's; the others have the following ones.
    on_epoch : callable, optional
        Called after each epoch with its line of the history, ``member``, ``stage`` (:class:`Stage`),
        ``horizon``, how far the network in training looks ahead, ``progress``, the share of all epochs that
        is done, and ``seconds_left``, a guess by the pace so far; ``members`` and ``epochs`` are how many
        the stage has, and the member at most.
    stop : Event, optional
        Cuts the fit short once it is set. If nothing is trained by then, KeyboardInterrupt is raised.
    trainer : callable, optional
        What trains members in place of `train_members`; it may train those of many fits at once.

    Returns
    -------
    one_step, forecaster
        The two models; None is what was not asked for, or was not got to.

    Examples
    --------
    >>> from varnn import VARNNRegressor, datasets
    >>> panel = datasets.load("synthetic", rows=200)
    >>> fitted, forecaster = fit(VARNNRegressor(epochs=1, hidden_size=4).settings(), panel)
    >>> fitted.training.rows, forecaster
    (200, None)
    """
    if not one_step and horizon < 2:
        raise ConfigError(f"without a one-step model horizon must be at least 2; got {horizon}.")
    if settings.peers:
        refuse_alone(training)
    everything = training if rows is None else rows
    positive = is_never_negative(everything.target) if settings.positive == "auto" else settings.positive
    settings = replace(settings, positive=bool(positive))
    horizons = [*([1] if one_step else []), *([horizon] if horizon > 1 else [])]
    left = _time_left(settings, horizons, refit=refit, growth=len(everything) / max(1, len(training)))
    stages = _Stages(
        on_epoch, stop, trainer or train_members, total=len(horizons) * (1 + refit), time_left=left
    )
    fitted, forecaster = None, None
    if one_step:
        fitted = stages.one_step(settings, training, validation, everything, refit=refit, seed=seed)
    if horizon > 1:
        task = Horizon(settings, training, validation, horizon=horizon, known=known_inputs)
        try:
            forecaster = stages.forecaster(task, everything, refit=refit, seed=seed)
        except KeyboardInterrupt:
            if fitted is None:
                raise
            stages.stop.set()
            stages.left_out.append("looks one row ahead only")
    if fitted is not None:
        if forecaster is not None:
            # Where inputs are missing from a series' first row on, both have the same in their place, as a
            # stream fills them once.
            pipeline = replace(forecaster.network.pipeline, initial_inputs=fitted.pipeline.initial_inputs)
            forecaster = replace(forecaster, network=replace(forecaster.network, pipeline=pipeline))
            kept = max(fitted.reach, forecaster.rows_kept)
            fitted = replace(fitted, last_rows=last_rows_of(everything, fitted.pipeline, kept))
        fitted = stages.recorded(fitted)
    return fitted, forecaster


class _Stages:
    """The stages of one fit: what they report, and what was left out when they were cut short."""

    def __init__(
        self,
        on_epoch: OnEpoch | None,
        stop: Event | None,
        trainer: Trainer,
        *,
        total: int,
        time_left: TimeLeft,
    ) -> None:
        self.trainer, self.time_left = trainer, time_left
        self.on_epoch, self.total, self.done = on_epoch, total, 0
        self.announce, self.stop = stop is None, OwnEvent(stop)  # whoever gave one says what is kept
        self.left_out: list[str] = []

    def next_report(self, horizon: int = 1) -> OnEpoch | None:
        """What the next part of the work, of a model that looks so far ahead, reports its epochs to."""
        part, self.done = self.done, self.done + 1
        on_epoch = self.on_epoch
        if on_epoch is None:
            return None

        def report(line: Epoch) -> None:
            line = {**line, "horizon": horizon, "progress": (part + line["progress"]) / self.total}
            on_epoch({**line, "seconds_left": self.time_left.add(line)})

        return report

    def one_step(
        self,
        settings: Settings,
        training: Panel,
        validation: Panel | None,
        rows: Panel,
        *,
        refit: bool,
        seed: int,
    ) -> Fitted:
        """The model of the next row."""
        began, task = time.perf_counter(), OneStep(settings, training, validation, rows, seed)
        fitted, members, errors = fit_task(
            task,
            ensemble=settings.ensemble,
            seed=seed,
            on_epoch=self.next_report(),
            stop=self.stop,
            trainer=self.trainer,
        )
        record = replace(
            fitted.training,
            rows=len(training),
            series=training.n_series,
            epochs=[len(one.history) for one in members],
            best_epoch=[one.best_epoch for one in members],
            history=_history(members),
            candidates=errors,
        )
        if self.stop.is_set():
            record = replace(record, interrupted=_where(record, task.config.epochs, settings.ensemble))
        fitted = replace(fitted, training=record)
        began = _tell("the model of the next row was chosen and trained", began)
        if refit:
            try:
                again = self.next_report()
                refitted = refit_task(
                    task,
                    fitted,
                    rows,
                    members=members,
                    seed=seed,
                    on_epoch=again,
                    stop=self.stop,
                    trainer=self.trainer,
                )
                fitted = replace(
                    refitted,
                    training=replace(record, refitted_on=len(rows)),
                    before_refit=replace(fitted, last_rows={}),
                )
                _tell(f"it was trained again on all {len(rows):,} rows", began)
            except KeyboardInterrupt:
                self.stop.set()
                self.left_out.append("not trained again on all rows")
        return fitted

    def forecaster(self, task: Horizon, rows: Panel, *, refit: bool, seed: int) -> Forecaster:
        """The model of the next H rows; KeyboardInterrupt where it was not finished."""
        if self.stop.is_set():
            raise KeyboardInterrupt
        began = time.perf_counter()
        forecaster, members, _ = fit_task(
            task,
            ensemble=task.settings.ensemble,
            seed=seed,
            on_epoch=self.next_report(task.horizon),
            stop=self.stop,
            in_part=False,
            trainer=self.trainer,
        )
        began = _tell(f"the model of the next {task.horizon} rows was chosen and trained", began)
        if refit:
            with suppress(KeyboardInterrupt):
                again = self.next_report(task.horizon)
                refitted = refit_task(
                    task,
                    forecaster,
                    rows,
                    members=members,
                    seed=seed,
                    on_epoch=again,
                    stop=self.stop,
                    trainer=self.trainer,
                )
                _tell(f"it was trained again on {len(rows):,} rows", began)
                return refitted
            self.stop.set()
            self.left_out.append("what looks ahead not trained again on all rows")
        return forecaster

    def recorded(self, fitted: Fitted) -> Fitted:
        """Note in the model's record where its fit was cut short, if it was."""
        cut = fitted.training.interrupted
        if not self.stop.is_set() or (cut is None and not self.left_out):
            return fitted
        words = "; ".join([cut or "after its members were trained", *self.left_out])
        if self.announce:
            logger.warning("training was cut short %s.", words)
        return replace(fitted, training=replace(fitted.training, interrupted=words))


def _tell(what: str, began: float) -> float:
    """Log what is done and how long it took; give the time by now."""
    now = time.perf_counter()
    logger.info("%s, in %.1f s", what, now - began)
    return now


def _time_left(settings: Settings, horizons: Sequence[int], *, refit: bool, growth: float) -> TimeLeft:
    """What tells how long a fit will still take."""
    kept = {Stage.CHOOSING: True, Stage.MEMBERS: settings.ensemble > 1, Stage.REFIT: refit}
    stages = [StageKey(horizon, stage) for horizon in horizons for stage in Stage if kept[stage]]
    return TimeLeft(
        stages,
        ensemble=settings.ensemble,
        patience=settings.patience,
        growth=growth,
        side_by_side=cores.usable(),
    )


def _history(members: Sequence[Trained]) -> list[Epoch]:
    """All epochs of all members, with the member's number where there are several."""
    return [
        {**line, "member": index} if len(members) > 1 else line
        for index, one in enumerate(members)
        for line in one.history
    ]


def _where(record: TrainingRecord, epochs: int, ensemble: int) -> str:
    """Say in words how far the members had come."""
    longest, members = max(record.epochs), len(record.epochs)
    return f"after {longest} of {epochs} epochs, with {members} of {ensemble} members"
