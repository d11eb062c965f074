"""Which trials are not worth going on with: those behind the others, by epoch and by origin.

A trial goes through its origins one after the other. At each tenth of a training the loss of its network on
the validation rows, and at the end of an origin its error on the scored rows, are divided by the default's
there, and averaged with the errors of the origins before: its standing. One that stands worse than most of
those that went through to the end is given up: than three of four within an origin, as losses of a network
say only something of the error of the whole model, and than half of them at its end (the median stopping
rule).

References
----------
D. Golovin, B. Solnik, S. Moitra, G. Kochanski, J. Karro and D. Sculley, "Google Vizier: a service for
black-box optimization", KDD 2017.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

TENTHS = 10  # steps of an origin; the last of them is its error
FIRST = 3  # tenth of a training before which nothing is given up
FEWEST = 4  # trials that must have been through to compare with
WITHIN, AT_THE_END = 0.75, 0.5  # quantiles of the others that a trial may not stand above

Curve = dict[int, float]  # step -> standing there


class NotWorthItError(Exception):
    """Ends a trial that stands too far behind."""


def limits(curves: Sequence[Curve]) -> Curve:
    """Where a trial may not stand above, by step, from curves of trials that went through.

    Examples
    --------
    >>> limits([{5: 1.0, 10: 1.0}, {5: 2.0, 10: 1.2}, {5: 1.0, 10: 1.1}, {5: 1.0, 10: 1.3}])
    {5: 1.25, 10: 1.15}
    """
    found: Curve = {}
    for step in sorted({step for one in curves for step in one}):
        values = [one[step] for one in curves if step in one]
        if len(values) >= FEWEST:
            found[step] = float(np.quantile(values, WITHIN if step % TENTHS else AT_THE_END))
    return found


@dataclass
class Standing:
    """How a trial stands beside the default, step by step.

    Parameters
    ----------
    errors, losses : sequence of float
        The default's errors and lowest validation losses, one of each origin.
    limits : mapping, default {}
        Where it may not stand above; :class:`NotWorthItError` is raised where it does.

    Examples
    --------
    >>> trial = Standing([2.0], [0.5], {5: 1.1})
    >>> trial.epoch(0, progress=0.3, loss=0.6)
    >>> trial.epoch(0, progress=0.5, loss=0.52)
    >>> trial.curve
    {3: 1.2, 5: 1.04}
    """

    errors: Sequence[float]
    losses: Sequence[float]
    limits: Mapping[int, float] = field(default_factory=dict)
    curve: Curve = field(default_factory=dict)
    ratios: list[float] = field(default_factory=list)  # of the origins that are done
    lowest: float = math.inf  # validation loss in this one

    def epoch(self, origin: int, *, progress: float, loss: float) -> None:
        """Take in the validation loss of an epoch."""
        self.lowest = min(self.lowest, loss)
        tenth = min(int(TENTHS * progress + 1e-9), TENTHS - 1)
        if tenth >= FIRST:
            self._stands(origin * TENTHS + tenth, ratio(self.lowest, self.losses[origin]))

    def origin(self, origin: int, error: float) -> None:
        """Take in the error on an origin's scored rows."""
        found = ratio(error, self.errors[origin])
        self._fill(origin)
        self._stands((origin + 1) * TENTHS, found)
        self.ratios.append(found)
        self.lowest = math.inf

    def _fill(self, origin: int) -> None:
        """Let a trial whose training ended early, or had few epochs, stand as it stood last."""
        for step in range(origin * TENTHS + FIRST + 1, (origin + 1) * TENTHS):
            if step not in self.curve and step - 1 in self.curve:
                self.curve[step] = self.curve[step - 1]

    def _stands(self, step: int, latest: float) -> None:
        self.curve[step] = float(np.mean([*self.ratios, latest]))
        if self.curve[step] > self.limits.get(step, math.inf):
            raise NotWorthItError


def ratio(error: float, default: float) -> float:
    """Divide an error by the default's; two that are nothing are alike.

    Examples
    --------
    >>> ratio(1.0, 2.0), ratio(0.0, 0.0), ratio(1.0, 0.0)
    (0.5, 1.0, 1000000000.0)
    """
    if error == default:
        return 1.0
    most = 1e9  # a study holds no infinity
    return min(most, error / default) if default > 0 else most


def mean_ratio(errors: Sequence[float], default: Sequence[float]) -> float:
    """Mean over origins of errors relative to the default's, so that each origin weighs alike.

    Examples
    --------
    >>> mean_ratio([1.0, 30.0], [2.0, 20.0])
    1.0
    """
    return float(np.mean([ratio(one, other) for one, other in zip(errors, default, strict=True)]))
