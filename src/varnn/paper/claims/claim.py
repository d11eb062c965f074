"""A claim, and the figures it is judged by."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from varnn._types import DoubleArray
from varnn.evaluation import ProtocolName
from varnn.paper.causes import READINGS
from varnn.paper.plan import ABLATION_RATE, Scope, ablation_settings
from varnn.paper.published import DATASETS, TITLES, published
from varnn.paper.runner import Outcomes
from varnn.paper.tables import summarise


@dataclass(frozen=True)
class Claim:
    """What the paper says, what we measured, and whether it holds.

    Parameters
    ----------
    place, words : str
        Where the paper says it, and in which words.
    measured : str
        Figures, the paper's own and ours.
    facts : dict
        What the claim comes to, fact by fact in words, and whether each is true.

    Examples
    --------
    >>> Claim("Results", "lowest", "1 and 2", {"Beijing": True, "BIDMC": False}).verdict
    'in part'
    """

    place: str
    words: str
    measured: str
    facts: dict[str, bool]

    @property
    def verdict(self) -> str:
        """Say whether all facts hold, some do, or none does; without facts it was not judged."""
        if not self.facts:
            return "not judged"
        if all(self.facts.values()):
            return "holds"
        return "in part" if any(self.facts.values()) else "does not hold"


class Figures:
    """Means over seeds and learning curves of a run; a figure that was not run is a LookupError."""

    def __init__(self, scope: Scope, outcomes: Outcomes) -> None:
        self.scope = scope
        self.outcomes = outcomes

    def error(
        self,
        dataset: str,
        model: str,
        part: str = "test",
        *,
        protocol: ProtocolName = "paper",
        **settings: Any,
    ) -> float:
        """Mean error over seeds."""
        jobs = self.scope.with_seeds(dataset, protocol, model, **settings)
        mean, _, seeds = summarise(jobs, self.outcomes, part)
        if not seeds:
            raise LookupError(str(jobs[0]))
        return mean

    def spread(self, dataset: str, model: str, part: str = "test", **settings: Any) -> float:
        """Standard deviation over seeds under the paper's protocol; 0 of one seed."""
        jobs = self.scope.with_seeds(dataset, "paper", model, **settings)
        return summarise(jobs, self.outcomes, part)[1]

    def readings(self, dataset: str, model: str, part: str = "test") -> list[float]:
        """Mean errors of a recurrent network in the four readings of the paper's words."""
        jobs = [
            self.scope.reading(dataset, model, current=current, activation=activation)
            for current, activation in READINGS
        ]
        found = [summarise(one, self.outcomes, part) for one in jobs]
        if not all(seeds for _, _, seeds in found):
            raise LookupError(str(jobs[0][0]))
        return [mean for mean, _, _ in found]

    def ablation(self, dataset: str, variant: str = "RM", **settings: Any) -> float:
        """Test error at the learning rate of the paper's ablations."""
        return self.error(dataset, variant, learning_rate=ABLATION_RATE, **settings)

    def curves(self, dataset: str, variant: str, **settings: Any) -> DoubleArray:
        """Errors by epoch, (seeds, epochs, 2): training, and the part that the epoch is picked on."""
        jobs = self.scope.with_seeds(dataset, "paper", variant, **settings)
        found = [self.outcomes[one].epochs for one in jobs if one in self.outcomes]
        if not found or not found[0]:
            raise LookupError(str(jobs[0]))
        return np.array(found)[:, :, 1:]

    def by_size(self, dataset: str) -> dict[int, float]:
        """Test error by memory size, over the sizes of the ablation."""
        sizes = [one["memory_size"] for one in ablation_settings(dataset) if "memory_size" in one]
        return {size: self.ablation(dataset, memory_size=size) for size in sizes}


def printed(table: str, model: str, dataset: str, part: str = "test") -> float:
    """Give a printed figure."""
    return float(published()[table][model][dataset][("train", "test").index(part)])


def beside(ratio: float) -> str:
    """Say how far one figure lies below or above another, of which it is `ratio` times.

    Examples
    --------
    >>> beside(0.65), beside(1.03), beside(1.001)
    ('35 % below', '3 % above', 'level with')
    """
    if abs(ratio - 1) < 0.005:
        return "level with"
    return f"{percent(abs(ratio - 1))} {'below' if ratio < 1 else 'above'}"


def percent(value: float, digits: int = 0) -> str:
    """Write a fraction as a percentage.

    Examples
    --------
    >>> percent(0.354), percent(-0.021), percent(0.0123, 1)
    ('35 %', '-2 %', '1.2 %')
    """
    return f"{value:.{digits}%}".replace("%", " %")


def each(words: dict[str, str]) -> str:
    """Write one phrase per data set.

    Examples
    --------
    >>> each({"bidmc": "4 %", "beijing": "5 %"})
    'BIDMC 4 %; Beijing 5 %'
    """
    return "; ".join(f"{TITLES[name]} {words[name]}" for name in DATASETS if name in words)
