"""Whether a tuned model is better than the default on rows that no choice has seen, in numbers and in words.

Both are fitted anew, from several seeds, on all rows before the test rows, and predict these once. Their
squared errors are compared row by row and seed by seed by the two tests of `varnn.evaluation.significance`,
which count the spread between trainings as chance, too, where there is more than one seed. The tuned settings
are taken where both tests put chance below 5 % and the error is lower; else the default is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from varnn import baselines
from varnn._types import DoubleArray
from varnn.data.in_words import beside as relative
from varnn.data.in_words import change
from varnn.evaluation.comparison import predict_scored_rows
from varnn.evaluation.protocols import Parts
from varnn.evaluation.significance import Difference, difference

BESIDE = {"persistence": "persistence", "arx-lr": "linear ARX"}  # simple models that are shown beside both


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What tuning came to.

    Parameters
    ----------
    settings : mapping
        What the tuned model has otherwise than the default; empty where no trial was better.
    validation_ratio : float
        Mean over origins of its error over the default's, on the rows that chose it: optimistic. 1 where the
        default itself was best.
    test : Difference or None
        Of the tuned model's squared error against the default's on the test rows; None where nothing was
        tuned.
    errors : mapping
        Mean squared error of the test rows of each model by name, one of each seed.
    rows : int
        Test rows with a label.
    trials : mapping
        How many trials went "through", were given up ("behind") and "failed".
    failed : str
        Why the last trial that failed did; empty where none did.

    Examples
    --------
    >>> found = Verdict(settings={}, validation_ratio=1.0, test=None, errors={"default": [4.0]}, rows=100,
    ...                 trials={"through": 5, "behind": 2, "failed": 0})
    >>> found.keeps_default, str(found)
    (True, 'The default is kept: none of 6 trials was better on the validation rows. ...')
    """

    settings: Mapping[str, Any]
    validation_ratio: float
    test: Difference | None
    errors: Mapping[str, Sequence[float]]
    rows: int
    trials: Mapping[str, int]
    failed: str = ""

    @property
    def keeps_default(self) -> bool:
        """Whether the default is as good as what was found, as far as the test rows can tell."""
        return self.test is None or not (self.test.change < 0 and self.test.significant)

    @property
    def test_ratio(self) -> float:
        """The tuned model's mean squared error over the default's, on the test rows."""
        return 1.0 if self.test is None else 1 + self.test.change

    def __str__(self) -> str:
        return f"{self._found()} {self._searched()}"

    def as_dict(self) -> dict[str, Any]:
        """All of it, as plain values."""
        return {
            "words": str(self),
            "kept_default": self.keeps_default,
            "settings": dict(self.settings),
            "validation_ratio": self.validation_ratio,
            "test_ratio": self.test_ratio,
            "test": None if self.test is None else asdict(self.test),
            "test_rows": self.rows,
            "test_mse": {name: list(one) for name, one in self.errors.items()},
            "trials": dict(self.trials),
        }

    def _found(self) -> str:
        others = sum(self.trials.values()) - 1
        if self.test is None:
            if not others:
                return "The default is kept: nothing else was tried."
            return f"The default is kept: none of {others} trials was better on the validation rows."
        found, seeds = self.test, len(self.errors["tuned"])
        numbers = (
            f"On {self.rows:,} test rows that no choice has seen, its squared error is "
            f"{relative(found.change)} the default's ({change(found.low)} to {change(found.high)} with 95 % "
            f"confidence, {_seeds(seeds)}; Diebold-Mariano p = {_p(found.p)}, "
            f"paired bootstrap p = {_p(found.p_bootstrap)})"
        )
        if not self.keeps_default:
            return f"The tuned model is better and is taken. {numbers}."
        if found.change < 0:
            return f"The default is kept: what was found is not better by more than chance. {numbers}."
        return f"The default is kept: what was found is no better on new rows. {numbers}."

    def _searched(self) -> str:
        said = (
            f"{sum(self.trials.values())} trials with the default: {self.trials['through']} measured to the "
            f"end, {self.trials['behind']} given up early, {self.trials['failed']} failed"
        )
        if self.failed and self.trials["failed"]:
            said += f" (the last: {self.failed})"
        if self.test is not None:
            said += (
                f". On the validation rows the best was {self.validation_ratio:.4f} of the default's error"
            )
        return f"{said}."


def _seeds(count: int) -> str:
    return f"{count} seeds" if count > 1 else "1 seed, so that chance in training is not counted"


def compared(tuned: Sequence[DoubleArray], default: Sequence[DoubleArray]) -> Difference:
    """Difference of two models that were trained from the same seeds, in pairs of a seed.

    The tests take trainings of one model against one line of losses: that line is the mean of the default's,
    and each training of the tuned model is put beside it in the ratio in which it stood to the default's of
    its own seed. So the spread of these ratios is what counts as chance of seeds.

    Examples
    --------
    >>> noise = np.random.default_rng(0).chisquare(1, size=(3, 1000))
    >>> found = compared(0.9 * noise, noise)
    >>> round(found.change, 6), found.significant
    (-0.1, True)
    """
    mean = np.mean(default, axis=0)
    if np.array_equal(tuned, default):  # rounding is no difference
        return difference(mean, mean)
    own = np.mean(default, axis=1, keepdims=True)
    scale = np.divide(mean.mean(), own, out=np.ones_like(own), where=own > 0)
    return difference(np.asarray(tuned) * scale, mean)


def beside(parts: Parts) -> dict[str, list[float]]:
    """Mean squared errors of simple models on the same test rows."""
    scored = parts.scored()
    truth = parts.lead_in.target[scored]
    found = {}
    for name, words in BESIDE.items():
        model = baselines.make(name)
        model.fit(parts.train)
        found[words] = [float(np.mean(np.square(truth - predict_scored_rows(parts, scored, model))))]
    return found


def _p(value: float) -> str:
    return "0.001 or less" if value <= 0.001 else f"{value:.2g}"
