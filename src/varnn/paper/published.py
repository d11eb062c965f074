"""What the paper prints, and whether a figure of ours agrees with it."""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

DATASETS = ("appliances", "bidmc", "beijing")
TITLES = {"appliances": "Appliances", "bidmc": "BIDMC", "beijing": "Beijing"}


@cache
def published() -> dict[str, Any]:
    """The paper's figures.

    Examples
    --------
    >>> published()["table2"]["RM"]["appliances"]
    [0.00412, 0.00328]
    """
    content: dict[str, Any] = json.loads((files("varnn.paper") / "published.json").read_text())
    return content


@dataclass(frozen=True)
class Verdict:
    """How a figure of ours compares with a printed one."""

    word: str  # "equal", "within spread", "lower", "higher" or "not printed"
    difference: float | None  # ours / printed - 1

    @property
    def agrees(self) -> bool:
        """Whether ours is the printed figure, as far as digits and seeds can tell."""
        return self.word in ("equal", "within spread")

    def __str__(self) -> str:
        if self.difference is None or self.word == "equal":
            return self.word
        return f"{self.word} ({self.difference:+.{0 if abs(self.difference) >= 0.005 else 1}%})"


def verdict(printed: float | None, mean: float, spread: float = 0.0, *, digits: int = 5) -> Verdict:
    """Compare a mean and its spread over seeds with a printed figure.

    ``equal`` means equal to every printed digit; ``within spread``: the printed figure lies within two
    standard deviations of our seeds (the paper used one seed) and within 15 %, as seeds that differ by more
    tell nothing. Otherwise ours is ``lower`` or ``higher``:
    either way it is not the printed figure.

    Examples
    --------
    >>> str(verdict(0.00657, 0.0065713)), str(verdict(0.00328, 0.00319, 0.0001))
    ('equal', 'within spread (-3%)')
    >>> str(verdict(0.00328, 0.00299, 0.00002)), str(verdict(0.001, 0.002)), str(verdict(None, 1.0))
    ('lower (-9%)', 'higher (+100%)', 'not printed')
    """
    if printed is None:
        return Verdict("not printed", None)
    difference = mean / printed - 1
    # Half a unit in the last printed digit: the paper's own rounding.
    if abs(mean - printed) <= 0.5 * 10**-digits * (1 + 1e-6):
        return Verdict("equal", difference)
    if abs(mean - printed) <= 2 * spread and abs(difference) <= 0.15:
        return Verdict("within spread", difference)
    return Verdict("lower" if mean < printed else "higher", difference)
