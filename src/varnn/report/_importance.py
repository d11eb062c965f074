"""Importance of inputs -> a section of a page: a bar for each, with its spread over repeats."""

from collections.abc import Callable

import numpy as np

from varnn.data.in_words import change, figure, percent
from varnn.data.panel import Panel
from varnn.evaluation.importance import FEWEST, Importance, Predictor, importance
from varnn.report.bars import Bar
from varnn.report.page import Report

REPEATS = 3
PREDICTED = 1_000_000  # rows that may be predicted in all: a minute, or less
_SHOWN = 20
_BEYOND = 2.0  # standard errors, from which on an input is said to matter
_MATTERS = 0.01  # of the squared error
_NONE = (
    "None: its predictions are the same whatever the inputs are. They were found to be of no use when the "
    "model was chosen on the validation rows; it goes by the labels before a row, and by the time."
)


def measure_and_add(
    report: Report,
    model: Predictor,
    panel: Panel,
    rows: str,
    *,
    repeats: int = REPEATS,
    on_step: Callable[[int, int], None] | None = None,
) -> None:
    """Measure which inputs matter, on so many rows that it takes a minute at most, and add it.

    Parameters
    ----------
    report : Report
        The page to add to; nothing is added where there are no inputs, or too few labels.
    model, panel : Predictor, Panel
        The model, and rows that it was not trained on.
    rows : str
        What rows these are, in words.
    repeats : int, default=3
        How often each input is rolled; 0 leaves it out.
    on_step : callable or None, default=None
        Called with what is done and how much there is.
    """
    labels = int(np.count_nonzero(~np.isnan(panel.target)))
    if not repeats or not panel.n_inputs or labels < FEWEST:
        return
    most = int(np.clip(PREDICTED // (repeats * panel.n_inputs + 1), 200, 5_000))
    add_importance(report, importance(model, panel, repeats=repeats, rows=most, on_step=on_step), rows)


def add_importance(report: Report, found: Importance, rows: str) -> None:
    """Add which inputs matter.

    Parameters
    ----------
    report : Report
        The page to add to.
    found : Importance
        As `varnn.evaluation.importance` gives it.
    rows : str
        What rows it was measured on, in words.
    """
    if not found.names:
        return
    if (found.rolled_mse == found.mse).all():
        report.add_words("Which inputs matter", [_NONE])
        return
    lines = [
        Bar(
            [name, change(rise), _chance(chance), _spread(low, high), figure(float(np.sqrt(errors.mean())))],
            float(rise),
            spread=(float(low), float(high)),
        )
        for name, rise, chance, (low, high), errors in zip(
            found.names, found.rise, found.chance, _ends(found), found.rolled_mse, strict=True
        )
    ][:_SHOWN]
    left = len(found.names) - len(lines)
    repeats = found.rolled_mse.shape[1]
    report.add_bars(
        "Which inputs matter",
        ["input", "", "squared error", "chance", "lowest to highest", "RMSE then"],
        lines,
        note=f"{in_words(found)} Bars: by how much the squared error of {found.rows:,} rows rises when an "
        "input is rolled in time, so that it tells nothing about its row any more; the mean of "
        f"{repeats}, and a thin line from the lowest to the highest. Chance: two standard errors of the "
        "mean; a rise below it may be none on other rows. RMSE with all inputs: "
        f"{figure(float(np.sqrt(found.mse)))}. "
        f"Measured on {rows}. Labels before a row, and its time of day, are seen by the model in any case; "
        "inputs that tell the same stand in for each other."
        + (f" {left:,} more inputs matter less." if left else ""),
    )


def in_words(found: Importance) -> str:
    """Say which inputs matter beyond chance.

    Examples
    --------
    >>> errors = np.array([[2.0, 2.2], [1.0, 1.01]])
    >>> chance = np.array([0.1, 0.1])
    >>> in_words(Importance(names=("heat", "wind"), mse=1.0, rolled_mse=errors, chance=chance, rows=100))
    'One input matters: heat.'
    """
    matter = [
        name
        for name, rise, chance in zip(found.names, found.rise, found.chance, strict=True)
        if rise > max(_MATTERS, _BEYOND * chance)
    ]
    if not matter:
        return "No input matters by itself beyond chance: the model goes by the labels before a row."
    names = ", ".join(matter[:3]) + (", ..." if len(matter) > 3 else "")
    return f"One input matters: {names}." if len(matter) == 1 else f"{len(matter)} inputs matter: {names}."


def _ends(found: Importance) -> list[tuple[float, float]]:
    return [(float(one.min() - 1), float(one.max() - 1)) for one in found.ratios]


def _spread(low: float, high: float) -> str:
    return f"{change(low)} to {change(high)}"


def _chance(error: float) -> str:
    return f"± {percent(_BEYOND * float(error))}"
