"""The demonstration: one made stream, three predictors and the best possible one, a report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from varnn import evaluation
from varnn.data.in_words import beside, percent
from varnn.datasets.synthetic import Synthetic
from varnn.estimator.regressor import VARNNRegressor
from varnn.evaluation import metrics
from varnn.report._model_section import add_model
from varnn.report.chart import ChartSeries, Mark, TimeChart
from varnn.report.page import Report

NAME = "VARNN"


@dataclass(frozen=True, eq=False)
class Result:
    """What the demonstration shows: a table, a sentence and a page."""

    columns: list[str]
    lines: list[list[str]]
    summary: str
    report: Report
    comparison: evaluation.Comparison
    best_possible: dict[str, float]  # root mean square and mean of the errors nobody could avoid


def run(
    made: Synthetic,
    *,
    epochs: int | None,
    seed: int,
    on_epoch: Callable[[dict[str, float]], None] | None = None,
) -> Result:
    """Compare VARNN with persistence and a correct linear ARX under the honest protocol.

    Parameters
    ----------
    made : Synthetic
        The stream, with its best possible predictions.
    epochs, seed : int or None, int
        How long to train (None: as long as the default does), and where weights and batches are drawn from.
    on_epoch : callable or None, default=None
        Called after each epoch, for progress.
    """
    parts = evaluation.cut(made.panel)
    model = VARNNRegressor(epochs=epochs, random_state=seed)
    comparison = evaluation.compare(
        made.panel,
        ["persistence", "arx-lr", (NAME, lambda _: model)],
        seeds=1,
        parts=parts,
        on_epoch=on_epoch,
    )
    truth, ideal = comparison.truth, made.best[parts.lead_in.rows[parts.scored()]]
    best = {"rmse": metrics.rmse(truth, ideal), "mae": metrics.mae(truth, ideal)}
    best_mse = metrics.mse(truth, ideal)
    lines = [
        [
            _TITLES.get(line["model"], line["model"]),
            f"{line['rmse']:.3f}",
            f"{line['mae']:.3f}",
            percent(line["skill"]),
            f"{line['rmse'] ** 2 / best_mse:.2f}",
            f"{line['seconds']:.1f} s",
        ]
        for line in comparison.rows()
    ]
    lines.append(
        [
            "best possible",
            f"{best['rmse']:.3f}",
            f"{best['mae']:.3f}",
            percent(metrics.skill(truth, ideal, comparison.of("persistence")[0].predictions)),
            "1.00",
            "",
        ]
    )
    columns = ["model", "RMSE", "MAE", "skill over persistence", "MSE / best possible", "fit"]
    summary = _in_words(comparison)
    report = _page(made, model, comparison, columns, lines, summary)
    return Result(columns, lines, summary, report, comparison, best)


_TITLES = {"arx-lr": "linear ARX (4 lags)", "persistence": "persistence (last value)"}


def _in_words(comparison: evaluation.Comparison) -> str:
    change, p = comparison.against(NAME, "arx-lr")
    shown = "< 0.001" if p < 0.001 else f"= {p:.2g}"
    naive, _ = comparison.against(NAME, "persistence")
    return (
        f"{NAME}'s mean squared error is {beside(change, 0)} linear ARX's (Diebold-Mariano p {shown}) "
        f"and {beside(naive, 0)} persistence's."
    )


def _page(
    made: Synthetic,
    model: VARNNRegressor,
    comparison: evaluation.Comparison,
    columns: list[str],
    lines: list[list[str]],
    summary: str,
) -> Report:
    parts = comparison.parts
    first = int(parts.test.rows[0])  # the page counts rows from here
    rows = parts.lead_in.rows[parts.scored()] - first
    report = Report(
        "VARNN on a stream that answers back",
        f"{len(made.panel):,} rows made with drift, regime switches and volatility bursts. "
        "64 % train, 16 % validation, 20 % test in time order; the test part was read once.",
        summary,
    )
    strong = next(index for index, line in enumerate(lines) if line[0] == NAME)
    note = "Best possible: the predictor that knows the process, its regimes and all labels so far."
    report.add_table("Scores one step ahead", columns, lines, note=note, strong=strong)
    switches = [row - first for row in made.events["regime switch"] if row >= first + 20]
    middle = switches[0] if switches else int(rows[len(rows) // 2])
    near = (rows >= middle - 60) & (rows < middle + 100)
    shown = {
        "VARNN": comparison.of(NAME)[0].predictions[near],
        "linear ARX": comparison.of("arx-lr")[0].predictions[near],
    }
    chart = ChartSeries(
        places=rows[near],
        truth=comparison.truth[near],
        lines=shown,
        marks=[Mark("regime switch", row, row) for row in switches if rows[near][0] <= row <= rows[near][-1]],
    )
    report.add_chart(
        "Around a regime switch" if switches else "A closer look",
        TimeChart([chart], unit=made.panel.target_name),
        f"Truth and one-step predictions in test rows {rows[near][0]} to {rows[near][-1]}"
        + ("; the dashed line is the switch, which no input shows." if switches else "."),
    )
    add_model(report, NAME, model, parts, others={"linear ARX": comparison.of("arx-lr")[0].predictions})
    return report
