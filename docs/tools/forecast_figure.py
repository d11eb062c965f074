"""Draw forecasts of real data: python docs/tools/forecast_figure.py (`VARNN_DATA_DIR` says where they are).

One station of Beijing, cut as everywhere here; forecasts from before every row of its test part. Three are
drawn, from midnights that were not picked by eye: those with the lower quartile, the median and the upper
quartile of the squared error. How all of them did goes into a text beside the picture.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from varnn import Panel, VARNNRegressor, datasets, evaluation
from varnn._types import BoolArray, DoubleArray
from varnn.baselines.forecasts import persistence_ahead, seasonal_ahead
from varnn.model.forecast import Forecaster
from varnn.model.forecast.rows import targets_ahead
from varnn.report.figures import COLOURS, INK, new_figure, to_svg

IMAGES = Path(__file__).parents[1] / "images"
STATION = "Aotizhongxin"  # the first of the twelve
HORIZON = 24
LEVEL = 0.9
SHOWN = (1, 3, 6, 12, 24)  # rows ahead, in the text
QUARTILES = {0.25: "an easy day", 0.5: "a usual day", 0.75: "a hard day"}
DESCRIBED = (
    "PM2.5 at a station in Beijing on three pairs of days: the truth, and from the midnight between them a "
    "forecast of 24 hours with its 90 % band, which widens step by step."
)

Marks = BoolArray


def main() -> None:
    """Fit, forecast from before every test row, draw three and sum up all."""
    parts = evaluation.cut(station())
    model = VARNNRegressor(horizon=HORIZON).fit(parts.train, validation=parts.validation)
    write(model, parts)


def station() -> Panel:
    """Take one series of the panel."""
    panel = datasets.load("beijing")
    kept = np.array(panel.ids) == STATION
    return panel.ranges(panel.starts[:-1], np.where(kept, panel.starts[1:], panel.starts[:-1]))


def write(model: VARNNRegressor, parts: evaluation.Parts) -> None:
    """Write picture and text."""
    forecaster = model.forecaster_
    if forecaster is None:
        raise SystemExit("the model has no forecaster: fit it with a horizon.")
    rows = parts.lead_in
    prediction, lower, upper = forecaster.historical_intervals(rows, np.array([LEVEL]))
    band = lower[:, :, 0], upper[:, :, 0]
    truth = np.column_stack([rows.target, targets_ahead(rows, HORIZON)])
    scored = np.isin(rows.rows, parts.test.rows)
    (IMAGES / "forecast.txt").write_text(in_figures(forecaster, rows, truth, scored, band))
    errors = np.mean(np.square(truth - prediction), axis=1)
    figure, panels = new_figure(width=10.5, height=3.2, panels=len(QUARTILES))
    for axes, (share, words) in zip(panels, QUARTILES.items(), strict=True):
        origin = midnight(rows, errors, scored, share)
        draw(axes, rows, origin, prediction[origin], (band[0][origin], band[1][origin]))
        day = str(np.asarray(rows.time)[origin])[:10]
        axes.set_title(f"{words}: {day}", loc="left", fontsize=10, color=INK)
    panels[0].set_ylabel("PM2.5, µg/m³")
    panels[0].legend(loc="upper left", fontsize=9, frameon=False)
    (IMAGES / "forecast.svg").write_text(to_svg(figure, DESCRIBED, alone=True))


def midnight(rows: Panel, errors: DoubleArray, scored: Marks, share: float) -> int:
    """Find the midnight of the test part below whose error lies a share of all; no label may be missing."""
    moments = np.asarray(rows.time).astype("datetime64[h]")
    midnights = np.flatnonzero(scored & (moments == moments.astype("datetime64[D]")) & ~np.isnan(errors))
    whole = [row for row in midnights if not np.isnan(rows.target[row - HORIZON : row]).any()]
    return int(sorted(whole, key=lambda row: errors[row])[round(share * (len(whole) - 1))])


def draw(
    axes: Axes, rows: Panel, origin: int, prediction: DoubleArray, band: tuple[DoubleArray, DoubleArray]
) -> None:
    """Draw a day before a forecast, and the day it is of."""
    hours, blue = np.arange(-HORIZON, HORIZON), COLOURS[0]
    # No concentration is below zero, which the bounds do not know.
    lower, upper = np.maximum(band[0], 0), band[1]
    coming = hours[HORIZON:]
    axes.fill_between(coming, lower, upper, color=blue, alpha=0.25, linewidth=0, label="90 % interval")
    axes.plot(coming, np.maximum(prediction, 0), color=blue, linewidth=1.6, label="forecast")
    truth = rows.target[origin - HORIZON : origin + HORIZON]
    axes.plot(hours, truth, color=INK, linewidth=1.2, label="truth")
    axes.axvline(-1, color=INK, linewidth=0.8, linestyle=":")
    axes.set_xticks(range(-HORIZON, HORIZON + 1, 12))
    axes.set_xlabel("hours from midnight", fontsize=9)
    axes.set_ylim(bottom=0)


def in_figures(
    forecaster: Forecaster,
    rows: Panel,
    truth: DoubleArray,
    scored: Marks,
    band: tuple[DoubleArray, DoubleArray],
) -> str:
    """Errors over those of persistence, and the coverage of the intervals."""
    known = scored[:, None] & ~np.isnan(truth)

    def by_step(values: npt.NDArray[np.generic]) -> DoubleArray:
        return np.asarray(np.nanmean(np.where(known, values, np.nan), axis=0))

    last = by_step(np.square(truth - persistence_ahead(rows, HORIZON)))
    forecasts = {
        "VARNN": forecaster.historical_forecasts(rows),
        "its linear part alone": forecaster.linear_alone().historical_forecasts(rows),
        "as 24 hours before": seasonal_ahead(rows, HORIZON, season=24),
    }
    lines = [f"{'rows ahead':24}" + "".join(f"{one:>8}" for one in SHOWN)]
    for name, values in forecasts.items():
        ratios = by_step(np.square(truth - values)) / last
        lines.append(f"{name:24}" + "".join(f"{ratios[one - 1]:8.3f}" for one in SHOWN))
    coverage = by_step((band[0] <= truth) & (truth <= band[1]))
    lines.append(f"{'coverage at 90 %':24}" + "".join(f"{coverage[one - 1]:8.1%}" for one in SHOWN))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
