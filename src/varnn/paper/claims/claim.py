"""A claim, and the figures it is judged by."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from varnn._types import DoubleArray
from varnn.evaluation import ProtocolName
from varnn.paper.plan import ABLATION_RATE, Scope
from varnn.paper.published import DATASETS, TITLES, published
from varnn.paper.runner import Outcomes
from varnn.paper.tables import summarise

WIDTHS = {"appliances": 27, "bidmc": 375, "beijing": 9}  # inputs d, and so the default memory size m


@dataclass(frozen=True)
class Claim:
    """What the paper says, what we measured, and whether it holds.

    Parameters
    ----------
    place, words : str
        Where the paper says it, and in which words.
    measured : str
        Figures, the paper's own and ours.
    verdict : {"holds", "in part", "does not hold"}
        Of the facts the claim was split into: all hold, some do, none does.
    """

    place: str
    words: str
    measured: str
    verdict: str


def judge(*facts: bool) -> str:
    """Turn facts into a verdict.

    Examples
    --------
    >>> judge(True, True), judge(True, False), judge(False)
    ('holds', 'in part', 'does not hold')
    """
    if all(facts):
        return "holds"
    return "in part" if any(facts) else "does not hold"


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

    def best_size(self, dataset: str) -> tuple[int, float, float]:
        """Best memory size of the ablation, its test error, and that of the worst size."""
        inputs = WIDTHS[dataset]
        sizes = sorted({4, 8, 16, 32, 64, min(128, 2 * inputs), inputs})
        errors = [self.ablation(dataset, memory_size=size) for size in sizes]
        return sizes[int(np.argmin(errors))], min(errors), max(errors)


def printed(table: str, model: str, dataset: str, part: str = "test") -> float:
    """Give a printed figure."""
    return float(published()[table][model][dataset][("train", "test").index(part)])


def percent(value: float) -> str:
    """Write a fraction as a percentage.

    Examples
    --------
    >>> percent(0.354), percent(-0.021)
    ('35 %', '-2 %')
    """
    return f"{value:.0%}".replace("%", " %")


def each(words: dict[str, str]) -> str:
    """Write one phrase per data set.

    Examples
    --------
    >>> each({"bidmc": "4 %", "beijing": "5 %"})
    'BIDMC 4 %; Beijing 5 %'
    """
    return "; ".join(f"{TITLES[name]} {words[name]}" for name in DATASETS if name in words)
