"""What a network may see of the rows, and what several trainings have in common."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from varnn.data.context import own_rows, preceded
from varnn.data.panel import Panel
from varnn.fitting.settings import Settings
from varnn.model.calendar import Cycle
from varnn.model.pipeline import FeaturePipeline
from varnn.network.cell import Architecture, Weights
from varnn.network.training import Member, Trained, error_on_rows


@dataclass(frozen=True, eq=False)
class Candidate:
    """A pipeline, the cell that fits it, and the rows it makes."""

    pipeline: FeaturePipeline
    architecture: Architecture
    training: Panel
    validation: Panel | None

    def __str__(self) -> str:
        """Name what the network sees."""
        seen = [*(["inputs"] if self.pipeline.use_inputs else []), *self.pipeline.calendar]
        return " and ".join(seen) or "labels alone"

    def member(self, seed: int) -> Member:
        """What a member of an ensemble is trained from."""
        return Member(self.architecture, self.training, self.validation, seed)

    def error(self, trained: Trained, window: int) -> float:
        """Validation error in the target's units, which candidates with other scalings share."""
        if not trained.history or self.validation is None:  # it was not got to
            return math.inf
        scaled = error_on_rows(self.architecture, trained.weights, self.validation, window)
        return scaled * self.pipeline.scaling.target_scale**2


def candidates(settings: Settings, training: Panel, validation: Panel | None) -> list[Candidate]:
    """List what the network may see: the calendar or not; no inputs too, where the linear part wants none."""
    calendars = settings.calendars(training, to_choose=validation is not None)
    listed = [_candidate(settings, training, validation, calendar) for calendar in calendars]
    linear = listed[0].pipeline.linear
    if validation is not None and training.n_inputs and linear is not None and not len(linear.of_inputs):
        listed += [
            _candidate(settings, training, validation, calendar, use_inputs=False) for calendar in calendars
        ]
    return listed


def _candidate(
    settings: Settings,
    training: Panel,
    validation: Panel | None,
    calendar: tuple[Cycle, ...],
    *,
    use_inputs: bool = True,
) -> Candidate:
    pipeline = FeaturePipeline.fit(
        training,
        validation,
        scale=settings.scale,
        fill=settings.fill,
        use_inputs=use_inputs,
        calendar=calendar,
        linear=settings.linear,
        peers=settings.peers,
    )
    prepared = pipeline.rows(training)
    architecture = Architecture.of(
        settings.variant,
        n_inputs=prepared.n_inputs,
        hidden_size=settings.hidden_size,
        memory_size=settings.memory_size,
        residual=settings.residual,
        memory_activation=settings.memory_activation,
    )
    validated = None
    if validation is not None:  # lags of validation rows reach back into the training rows
        joined, own = preceded(validation, training, pipeline.reach)
        validated = own_rows(pipeline.rows(joined), own)
    return Candidate(pipeline, architecture, prepared, validated)


def stacked(members: list[Trained]) -> Weights:
    """Weights of members as matrices with a leading axis of members."""
    stacks: list[Mapping[str, Any]] = [one.weights.as_dict() for one in members]
    return Weights(**{name: np.stack([one[name] for one in stacks]) for name in stacks[0]})
