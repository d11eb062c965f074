"""Panel + settings -> Fitted: what is left to be chosen, the members, and how much of them to use.

Everything that is chosen here is chosen on the validation rows: the form of the linear part
(`varnn.linear`), the cycles of the clock, the epoch each member is kept at, and the share of the
network's correction that is added to the linear part.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from varnn.adaptation import FORGETTING, Adaptation, Adapter, corrections
from varnn.cell import Architecture, MemoryActivation, Residual, Variant, Weights
from varnn.clock import Cycle, offered_cycles
from varnn.fitted import Fitted, tails_of
from varnn.intervals import Spread
from varnn.linear import LABEL_LAGS, last_labels
from varnn.panel import Panel
from varnn.preparation import Fill, Scale
from varnn.recipe import Recipe
from varnn.training import Epoch, Member, Schedule, TrainConfig, Trained, train_members

logger = logging.getLogger(__name__)

LONGEST_WINDOW = 24
STEPS = 2500  # of Adam, that a member takes at least
EPOCHS = 20  # that a member takes at least
LATEST = 20_000  # training rows that adaptation and the spread of errors learn from
JUDGED = 100_000  # validation rows that they are judged on
BATCHES = range(8, 65)  # windows of several graded rows in a batch: few, as they hold many rows


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How to fit, in the words of :class:`varnn.VARNNRegressor`; None is chosen here."""

    variant: Variant
    window: int | None
    graded: int | None
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
    averaging: float
    ensemble: int
    linear: bool
    calendar: Literal["auto"] | tuple[Cycle, ...] | None
    peers: bool
    adapt: Literal["rls"] | None
    forgetting: float | Literal["auto"]
    intervals: bool
    scale: Scale
    fill: Fill
    device: str
    engine: Any

    def config(self, training: Panel) -> TrainConfig:
        """Settle what the rows decide: window, graded rows, batch and epochs.

        Short series have short windows, so that there is something to learn from. A batch is small
        enough for a hundred steps an epoch, and epochs are enough for some thousand steps.

        Examples
        --------
        >>> from varnn.regressor import VARNNRegressor
        >>> settings = VARNNRegressor().settings()
        >>> rows = Panel.from_arrays(None, np.zeros(12_000))
        >>> config = settings.config(rows)
        >>> config.window, config.graded, config.batch_size, config.epochs
        (24, 12, 9, 22)
        """
        shortest = int(training.lengths.min()) if training.n_series else 0
        window = _chosen(self.window, min(LONGEST_WINDOW, max(1, shortest // 3)))
        graded = _chosen(self.graded, max(1, window // 2))
        rows = np.maximum(training.lengths - window + 1, 0).sum()
        windows = max(1, int(rows) // max(1, graded))
        batch = _chosen(self.batch_size, int(np.clip(windows // 100, BATCHES[0], BATCHES[-1])))
        steps = max(1, windows // max(1, batch))
        return TrainConfig(
            window=window,
            graded=graded,
            epochs=_chosen(self.epochs, max(EPOCHS, min(10 * EPOCHS, STEPS // steps))),
            batch_size=batch,
            learning_rate=float(self.learning_rate),
            schedule=self.schedule,
            patience=self.patience,
            gradient_clip=self.gradient_clip,
            averaging=self.averaging,
            # These products are so small that a GPU spends its time starting them: an H200 took 2.5 times
            # as long as the CPU beside it.
            device="cpu" if self.device == "auto" else self.device,
            engine=self.engine,
        )

    def clocks(self, training: Panel, judged: bool) -> list[tuple[Cycle, ...]]:
        """List the choices of clock inputs, the fewest first."""
        if self.calendar != "auto":
            return [self.calendar or ()]
        offered = offered_cycles(training.time) if judged else ()
        return [offered[:count] for count in range(len(offered) + 1)]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A recipe, the cell that fits it, and the rows it makes."""

    recipe: Recipe
    architecture: Architecture
    training: Panel
    validation: Panel | None

    def __str__(self) -> str:
        """Name what the network sees."""
        seen = [*([] if self.recipe.blind else ["inputs"]), *self.recipe.clock]
        return " and ".join(seen) or "labels alone"

    def member(self, seed: int) -> Member:
        """Give what a member of an ensemble is trained from."""
        return Member(self.architecture, self.training, self.validation, seed)

    def error(self, trained: Trained) -> float:
        """Give the validation error in the target's units, which candidates with other scalings share."""
        return trained.validation_loss * self.recipe.scaling.target_scale**2


def fit(
    settings: Settings,
    training: Panel,
    validation: Panel | None,
    *,
    rows: Panel,
    seed: int,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> Fitted:
    """Train a model.

    Parameters
    ----------
    settings
        How.
    training, validation
        Rows to learn from, and to choose on (None: nothing is chosen).
    rows
        All rows given, whose ends a closed-loop forecast goes on from.
    seed
        The first member's; the others have the following ones.
    on_epoch
        Called after each epoch with its line of the history, and ``progress``, the share of all done.
    """
    config = settings.config(training)
    choices = candidates(settings, training, validation)
    progress = Progress((len(choices) + settings.ensemble - 1) * config.epochs, on_epoch)
    firsts = train_members([one.member(seed) for one in choices], config, progress)
    errors = [one.error(trained) for one, trained in zip(choices, firsts, strict=True)]
    best = int(np.argmin(errors))
    chosen, members = choices[best], [firsts[best]]
    if settings.ensemble > 1:
        others = [chosen.member(seed + index) for index in range(1, settings.ensemble)]
        members += train_members(others, config, progress)
    fitted = Fitted(
        architecture=chosen.architecture,
        weights=stacked(members),
        recipe=chosen.recipe,
        window=config.window,
        input_names=training.input_names,
        target_name=training.target_name,
        tails=tails_of(rows, chosen.recipe, config.window + max(LABEL_LAGS) + 1),
        summary={
            "rows": len(training),
            "series": training.n_series,
            "epochs": [len(one.history) for one in members],
            "best_epoch": [one.best_epoch for one in members],
            "history": [
                {**line, "member": index} if len(members) > 1 else line
                for index, one in enumerate(members)
                for line in one.history
            ],
        },
    )
    if len(choices) > 1:
        fitted.summary["inputs"] = {str(one): error for one, error in zip(choices, errors, strict=True)}
    if settings.adapt is not None:
        fitted = replace(fitted, adaptation=_adaptation(settings, fitted, chosen))
    if validation is None:
        return fitted
    if chosen.recipe.linear is not None:
        fitted = replace(fitted, share=_share(fitted, validation))
    if settings.intervals:
        fitted = replace(fitted, spread=_spread(fitted, training, validation))
    fitted.summary["validation"] = _beside_simple_models(fitted, validation)
    return fitted


def _adaptation(settings: Settings, fitted: Fitted, chosen: Candidate) -> Adaptation:
    """Learn how to adapt from the latest training rows; the forgetting factor from validation rows."""
    rows = latest(chosen.training, LATEST)
    hidden = fitted.hidden(rows).hidden
    judged = rows if chosen.validation is None else latest(chosen.validation, JUDGED)
    scores = fitted.hidden(judged)
    errors = judged.target - scores.predictions.mean(axis=0, dtype=np.float64)
    known = ~np.isnan(errors)
    first = FORGETTING[1] if settings.forgetting == "auto" else settings.forgetting
    adaptation = Adaptation.of(hidden, errors[known], float(first))
    if settings.forgetting != "auto" or chosen.validation is None:
        return adaptation

    def error(how: Adaptation) -> float:
        adapter = Adapter(how, judged.n_series)
        added = corrections(adapter, scores.hidden, scores.predictions, judged.target, judged.starts)
        return float(np.mean(np.square(errors - added)[known]))

    return min((replace(adaptation, forgetting=one) for one in FORGETTING), key=error)


def latest(panel: Panel, rows: int) -> Panel:
    """Keep the last rows of each series, about so many in all: their hidden layers are held in memory."""
    firsts = np.maximum(panel.starts[1:] - max(1, rows // panel.n_series), panel.starts[:-1])
    return panel.ranges(firsts, panel.starts[1:])


def _spread(fitted: Fitted, training: Panel, validation: Panel) -> Spread:
    """Learn how large errors are: their scale from the latest training rows, quantiles from validation."""
    return Spread.of(*seen_by_spread(fitted, training), *seen_by_spread(fitted, validation, JUDGED))


def seen_by_spread(fitted: Fitted, panel: Panel, most: int = LATEST) -> tuple[Any, Any, Any]:
    """Give hidden layers (N, K), errors (N,) and starts of a panel's latest rows."""
    rows = latest(panel, most)
    hidden = fitted.hidden(fitted.prepared(rows).panel).hidden[0]
    return hidden, rows.target - fitted.predict(rows), rows.starts


def _chosen(given: Any, automatic: int) -> Any:
    """Take what was given; NumPy's integers as Python's, so that a file can hold them."""
    if given is None:
        return automatic
    return int(given) if isinstance(given, np.integer) else given


class Progress:
    """Hands epochs on, with the share of all epochs that is done."""

    def __init__(self, total: int, on_epoch: Callable[[Epoch], None] | None) -> None:
        self.total = total
        self.done = 0
        self.on_epoch = on_epoch

    def __call__(self, member: int, line: Epoch) -> None:
        """Take in an epoch of a member."""
        self.done += 1
        if self.on_epoch is not None:
            self.on_epoch({**line, "member": member, "progress": self.done / self.total})


def candidates(settings: Settings, training: Panel, validation: Panel | None) -> list[Candidate]:
    """List what the network may see: the clock or not; no inputs too, where the linear part wants none."""
    clocks = settings.clocks(training, judged=validation is not None)
    listed = [_candidate(settings, training, validation, clock) for clock in clocks]
    linear = listed[0].recipe.linear
    if validation is not None and training.n_inputs and linear is not None and not len(linear.of_inputs):
        listed += [_candidate(settings, training, validation, clock, blind=True) for clock in clocks]
    return listed


def _candidate(
    settings: Settings,
    training: Panel,
    validation: Panel | None,
    clock: tuple[Cycle, ...],
    *,
    blind: bool = False,
) -> Candidate:
    recipe = Recipe.of(
        training,
        validation,
        scale=settings.scale,
        fill=settings.fill,
        blind=blind,
        clock=clock,
        linear=settings.linear,
        peers=settings.peers,
    )
    prepared = recipe(training).panel
    architecture = Architecture.of(
        settings.variant,
        n_inputs=prepared.n_inputs,
        hidden_size=settings.hidden_size,
        memory_size=settings.memory_size,
        residual=settings.residual,
        memory_activation=settings.memory_activation,
    )
    judged = None if validation is None else recipe(validation).panel
    return Candidate(recipe, architecture, prepared, judged)


def stacked(members: list[Trained]) -> Weights:
    """Give the weights of members as matrices with a leading axis of members."""
    stacks: list[Mapping[str, Any]] = [one.weights.as_dict() for one in members]
    return Weights(**{name: np.stack([one[name] for one in stacks]) for name in stacks[0]})


def _share(fitted: Fitted, validation: Panel) -> float:
    """Fit the share of the network's correction on validation rows, between none and all of it."""
    anchors = fitted.prepared(validation).anchors
    correction, rest = fitted.predict(validation) - anchors, validation.target - anchors
    known = ~np.isnan(rest)
    size = float(correction[known] @ correction[known])
    return float(np.clip(correction[known] @ rest[known] / size, 0, 1)) if size else 1.0


def _beside_simple_models(fitted: Fitted, validation: Panel) -> dict[str, float]:
    """Give mean squared errors on validation rows: of the model, persistence and the linear part.

    Says so in one line where the model is not the best of them.
    """
    last, _, known = last_labels(validation, 0.0)
    scored = known & ~np.isnan(validation.target)
    predictions = {"model": fitted.predict(validation), "persistence": last}
    if fitted.recipe.linear is not None:
        predictions["linear part"] = fitted.prepared(validation).anchors
    with np.errstate(over="ignore"):
        errors = {
            name: float(np.mean(np.square(validation.target - one)[scored])) if scored.any() else 0.0
            for name, one in predictions.items()
        }
    errors = {name: min(error, np.finfo(np.float64).max) for name, error in errors.items()}
    best = min(errors, key=lambda name: errors[name])
    if errors[best] < errors["model"]:
        logger.warning(
            "on the validation rows %s is better than the model: mean squared error %.4g against %.4g.",
            best,
            errors[best],
            errors["model"],
        )
    return errors
