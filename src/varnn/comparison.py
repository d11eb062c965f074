"""A comparison -> a table, a sentence and a page that people can read."""

from typing import Any

import numpy as np

from varnn import figures
from varnn.cell import VARIANTS
from varnn.evaluation import Comparison
from varnn.report import Report

COLUMNS = [
    "model",
    "RMSE",
    "MAE",
    "skill over persistence",
    "scaled MSE",
    "median series MSE",
    "p against best",
    "fit",
]


def lines(comparison: Comparison) -> list[list[str]]:
    """Give one line of text per model, best first, under :data:`COLUMNS`."""
    rows = comparison.rows()
    best = str(rows[0]["model"])
    return [_line(comparison, row, best) for row in rows]


def in_words(comparison: Comparison) -> str:
    """Say who won, by how much, and whether that is more than chance."""
    rows = comparison.rows()
    best = str(rows[0]["model"])
    if len(rows) == 1:
        return f"{best}: RMSE {rows[0]['rmse']:.4g}, {rows[0]['skill']:.0%} skill over persistence."
    second = str(rows[1]["model"])
    change, p = comparison.against(best, second)
    sure = "" if p < 0.05 else ", which chance may explain"
    said = f"{best} is best: its squared error is {abs(change):.1%} below {second}'s (p = {p:.2g}{sure})"
    ours = [str(row["model"]) for row in rows if row["model"] in (*VARIANTS, "varnn")]
    if ours and ours[0] != best:
        behind, p_ours = comparison.against(ours[0], best)
        said += f"; {ours[0]} is {behind:.1%} above it (p = {p_ours:.2g})"
    return f"{said}."


def page(comparison: Comparison, title: str) -> Report:
    """Make the report page of a comparison."""
    parts = comparison.parts
    rows = comparison.rows()
    best = str(rows[0]["model"])
    how = (
        "best epoch read on the test part, as the paper does"
        if parts.protocol == "paper"
        else "64 % train, 16 % validation, 20 % test in time order, test read once"
    )
    counts = f"{len(parts.train):,} / {len(parts.validation):,} / {len(parts.test):,} rows"
    report = Report(
        f"{title}: one step ahead", f"{counts}, {parts.train.n_series} series; {how}.", in_words(comparison)
    )
    note = (
        "Own units, but for the scaled MSE: units of the target's range before the test part. "
        "p: Diebold-Mariano, predictions averaged over seeds."
    )
    report.add_table("Scores", COLUMNS, lines(comparison), note=note, strong=0)
    report.add_figure(
        "Error of each model",
        figures.scores(
            [str(row["model"]) for row in rows],
            [float(row["scaled_mse"]) for row in rows],
            [float(row["spread"]) for row in rows],
            unit="mean squared error (scaled); bars: one standard deviation over seeds",
        ),
        "Mean squared error on the test rows, best on top.",
    )
    scored = np.flatnonzero(parts.scored())
    errors = comparison.errors(best)
    worst = _worst_stretch(errors, min(168, len(errors)))
    shown = {
        str(row["model"]): np.mean([one.predictions for one in comparison.of(str(row["model"]))], axis=0)[
            worst
        ]
        for row in rows[:2]
    }
    report.add_figure(
        "The hardest stretch",
        figures.predictions(scored[worst], comparison.truth[worst], shown, unit=parts.test.target_name),
        f"Truth and predictions where {best} errs most.",
    )
    report.add_figure(
        "Innovations",
        figures.innovations(scored, errors),
        f"Errors of {best} on the test rows, and their autocorrelation; inside the band: noise.",
    )
    return report


def _line(comparison: Comparison, row: dict[str, Any], best: str) -> list[str]:
    name = str(row["model"])
    spread = f" ± {row['spread']:.1g}" if row["seeds"] > 1 else ""
    p = "" if name == best else f"{comparison.against(name, best)[1]:.2g}"
    return [
        name + (f" ({row['seeds']} seeds)" if row["seeds"] > 1 else ""),
        f"{row['rmse']:.4g}",
        f"{row['mae']:.4g}",
        f"{row['skill']:.1%}",
        f"{row['scaled_mse']:.4g}{spread}",
        f"{row['median_series_mse']:.4g}",
        p,
        f"{row['seconds']:.1f} s",
    ]


def _worst_stretch(errors: np.ndarray[Any, Any], length: int) -> slice:
    """Find the stretch with the largest mean squared error."""
    sums = np.convolve(errors**2, np.ones(length), mode="valid")
    first = int(np.argmax(sums))
    return slice(first, first + length)
