"""A comparison -> a sentence: who is best, by how much over whom, and whether that is more than chance."""

import math
from typing import Any

import numpy as np

from varnn import baselines
from varnn.data.in_words import beside, figure, percent
from varnn.evaluation.significance import Difference

Comparison = Any  # it shows itself with the words that are made here: to import it would be a circle


def in_words(comparison: Comparison) -> str:
    """Say who won, by how much over whom, and whether that is more than chance.

    The best model of ours is set against the best baseline where there are both, else the best model
    against the second. A model alone is set against nobody, and so are models that make no error at all.
    """
    rows = comparison.rows()
    names = [str(row["model"]) for row in rows]
    errors = [float(np.mean(row["rmse_by_seed"])) for row in rows]
    if max(errors) == 0:
        who = f"None of the {len(names)} models" if len(names) > 1 else f"{names[0]} does not"
        return f"{who} {'errs' if len(names) > 1 else 'err'} on any test row: RMSE 0, and nothing to compare."
    skill = float(np.mean([score.skill for score in comparison.of(names[0])]))
    # Over a persistence without any error, no number says how much more one is.
    over = (
        f"skill over persistence {percent(skill)}." if math.isfinite(skill) else "persistence makes no error."
    )
    figures = f"RMSE {figure(errors[0])}, {over}"
    theirs = [name for name in names if name in baselines.NAMES]
    ours = [name for name in names if name not in theirs]
    if ours and theirs:
        first, second, role = ours[0], theirs[0], ", the best baseline"
    elif len(names) > 1:
        first, second, role = names[0], names[1], ", the second best"
    else:
        return f"{names[0]}: {figures} It is the only model here, so none is best: set others beside it."
    found = comparison.difference(first, second)
    by_chance = found.low * found.high <= 0 and found.p >= 0.05
    said = "has the lowest error, but no clear lead" if by_chance else "is best"
    return f"{names[0]} {said}: {figures} {difference_in_words(found, first, second + role)}"


def difference_in_words(found: Difference, first: str, second: str) -> str:
    """Say how much larger or smaller the error of the first is, with its interval and p values.

    Examples
    --------
    >>> found = Difference(change=0.0, low=0.0, high=0.0, p=1.0, p_bootstrap=1.0)
    >>> difference_in_words(found, "varnn", "persistence, the best baseline")
    'The squared error of varnn is the same as that of persistence, the best baseline.'
    """
    if found.change == found.low == found.high == 0:  # of zero and zero, too
        return f"The squared error of {first} is the same as that of {second}."
    tests = (
        f"Diebold-Mariano p {written_p(found.p, equals=True)}, "
        f"paired bootstrap p {written_p(found.p_bootstrap, equals=True)}"
    )
    if math.isinf(found.change):
        return f"{first} errs; {second}, makes no error at all ({tests})."
    if found.change == -1:
        return f"{first} makes no error at all, unlike {second} ({tests})."
    interval = f"between {beside(found.low)} and {beside(found.high)}"
    if found.low * found.high > 0 and max(abs(found.low), abs(found.high)) < 10:
        low, high = sorted(abs(one) for one in (found.low, found.high))
        interval = f"between {percent(low)} and {percent(high)}"
    # The two tests need not agree; what is said must hold for both.
    by_interval, by_test = found.low * found.high > 0, found.p < 0.05
    doubt = {
        (True, True): "",
        (True, False): ": more than chance by the interval, but Diebold-Mariano does not rule it out",
        (False, True): ": more than chance by Diebold-Mariano, but the interval does not rule it out",
        (False, False): ": chance may explain it",
    }[by_interval, by_test]
    return (
        f"The squared error of {first} is {beside(found.change)} that of "
        f"{second} ({interval} with 95 % confidence; {tests}{doubt})."
    )


def written_p(value: float, *, equals: bool = False) -> str:
    """Write a p value; how far below a thousandth says nothing more.

    Examples
    --------
    >>> written_p(0.0312), written_p(0.0312, equals=True), written_p(1e-9, equals=True)
    ('0.031', '= 0.031', '< 0.001')
    """
    return "< 0.001" if value < 0.001 else f"{'= ' if equals else ''}{value:.2g}"
