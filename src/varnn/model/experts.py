"""The experts whose predictions a default prediction is made of, and who of them goes on learning.

::

    persistence              the last label
    seasonal persistence     the label a season ago, where the linear part has seasons
    linear part              as trained
    linear part, learning    its coefficients follow the labels
    network                  linear part + the network's correction, as trained
    network, learning        linear part + a readout that follows the labels: once slowly, once fast
    boosting                 where it was asked for (`varnn.model.boosting`)

What learns does so as `varnn.model.adaptation` says, each series by itself. The readout that follows reads
the hidden layer and the regressors of the linear part together, so that both may change at once. What is
predicted is a convex combination, whose weights follow as `varnn.model.aggregation` says: never much worse
than the best of them lately.

All of it is relative to the linear part as trained: its predictions, and what they leave of the labels.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from varnn._types import DoubleArray
from varnn.model.adaptation import Adaptation
from varnn.model.boosting import Trees
from varnn.step.adaptation import MAX_DEVIATIONS
from varnn.step.operations import standardize

FORGETTING = (0.9999, 0.999)  # of the readout: slowly and fast
LINEAR_FORGETTING = (0.999,)
MOST_JOINED = 160  # regressors that the readout sees beside the hidden layer: more would take long
NEVER = 1e60  # deviation of a regressor that did not change in training: it stays at zero

PERSISTENCE, SEASONAL_PERSISTENCE = "persistence", "seasonal persistence"
LINEAR, LINEAR_LEARNING = "linear part", "linear part, learning"
NETWORK, BOOSTING = "network", "boosting"


@dataclass(frozen=True, eq=False, kw_only=True)
class Experts:
    """What experts go on learning with, and how much each is believed at the start.

    Parameters
    ----------
    readout : Adaptation
        Of the network's readout.
    linear : Adaptation or None
        Of the linear part; None where there is none.
    centre, deviation : array of shape (F,)
        Mean and standard deviation of the linear part's regressors; huge where one never changes.
    unit : float
        What a regressor of one deviation counts beside the hidden layer: the root mean square of that. 0
        where the readout sees the hidden layer alone.
    season : int or None
        Column of the regressors that says how far off the label a season ago is; None without seasons.
    noise : float
        Mean square of what predictions leave, in the target's units.
    prior : array of shape (K,)
        Weights at the start of a series, in the order of ``names``.
    trees : Trees or None, default=None
        The boosting expert, where it was asked for.
    """

    readout: Adaptation
    linear: Adaptation | None
    centre: DoubleArray
    deviation: DoubleArray
    unit: float
    season: int | None
    noise: float
    prior: DoubleArray
    trees: Trees | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the experts, in the order of their weights."""
        return names_of(
            self.readout.forgetting,
            linear=self.linear is not None,
            season=self.season is not None,
            boosting=self.trees is not None,
        )

    def standardized(self, regressors: DoubleArray) -> DoubleArray:
        """Bring regressors of the linear part (N, F) to deviations from their means, as a step does."""
        found = np.empty(regressors.shape)
        standardize(regressors, self.centre, self.deviation, MAX_DEVIATIONS, found)
        return found

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All numbers by name, as arrays for a file."""
        season = -1 if self.season is None else self.season
        found: dict[str, npt.NDArray[Any]] = {
            "readout.gain": self.readout.gain,
            "forgetting": np.array(self.readout.forgetting),
            "numbers": np.array([self.readout.noise, self.noise, self.unit, season], np.float64),
            "prior": self.prior,
        }
        if self.linear is not None:
            found |= {"linear.gain": self.linear.gain, "centre": self.centre, "deviation": self.deviation}
        if self.trees is not None:
            found |= {f"{BOOSTING}.{name}": array for name, array in self.trees.arrays().items()}
        return found

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> "Experts":
        """Undo :meth:`arrays`; KeyError where something is missing."""
        scaled_noise, noise, unit, season = arrays["numbers"].tolist()
        readout = Adaptation(
            forgetting=tuple(arrays["forgetting"].tolist()),
            gain=arrays["readout.gain"],
            noise=scaled_noise,
        )
        linear = None
        if "linear.gain" in arrays:
            linear = Adaptation(forgetting=LINEAR_FORGETTING, gain=arrays["linear.gain"], noise=scaled_noise)
        grown = {
            name.removeprefix(f"{BOOSTING}."): array
            for name, array in arrays.items()
            if name.startswith(f"{BOOSTING}.")
        }
        return cls(
            readout=readout,
            linear=linear,
            centre=arrays.get("centre", np.empty(0)),
            deviation=arrays.get("deviation", np.empty(0)),
            unit=unit,
            season=None if season < 0 else int(season),
            noise=noise,
            prior=arrays["prior"],
            trees=Trees.from_arrays(grown) if grown else None,
        )


def names_of(
    forgetting: tuple[float, ...], *, linear: bool, season: bool, boosting: bool = False
) -> tuple[str, ...]:
    """Name the experts of a model.

    Examples
    --------
    >>> names_of((0.999,), linear=False, season=False)
    ('network', 'network, learning')
    """
    learning: tuple[str, ...] = (f"{NETWORK}, learning",)
    if len(forgetting) > 1:
        learning = (f"{NETWORK}, learning slowly", f"{NETWORK}, learning fast")
    simple = (PERSISTENCE, *([SEASONAL_PERSISTENCE] if season else []), LINEAR, LINEAR_LEARNING)
    return (*(simple if linear else ()), NETWORK, *learning, *([BOOSTING] if boosting else []))


def read_by_readout(hidden: npt.NDArray[Any], standard: DoubleArray, unit: float) -> npt.NDArray[Any]:
    """Join hidden layers (E, ..., K) and regressors (..., F) in a unit; without one, hidden layers alone."""
    if not unit:
        return hidden
    shape = (len(hidden), *standard.shape)
    return np.concatenate([hidden, np.broadcast_to(unit * standard, shape)], axis=-1)
