"""Made meters: series with an input, a text, times, gaps in labels, and rows without labels at the end."""

from pathlib import Path
from typing import Any

import numpy as np
import polars

from varnn import Panel, VARNNRegressor

TINY: dict[str, Any] = {"hidden_size": 6, "epochs": 1, "ensemble": 2, "window": 4, "device": "cpu"}
ROLES: dict[str, Any] = {"target": "load", "time": "when", "series": "meter"}


def meters(
    series: int = 12, rows: int = 250, *, seed: int = 0, first: str = "2024-01-01"
) -> polars.DataFrame:
    """A long frame, series by series; each has a few rows more than the one before."""
    draw, frames = np.random.default_rng(seed), []
    for number in range(series):
        count = rows + 3 * number
        heat = draw.normal(size=count).cumsum() / 4
        load = heat + np.sin(np.arange(count) / 6) + draw.normal(size=count) / 3
        load[draw.random(count) < 0.03] = np.nan
        load[-2:] = np.nan
        hours = np.datetime64(first, "us") + np.arange(count) * np.timedelta64(3600, "s")
        frames.append(
            polars.DataFrame(
                {
                    "meter": [f"m{number:03}"] * count,
                    "when": hours,
                    "heat": np.where(draw.random(count) < 0.02, np.nan, heat),
                    "sky": draw.choice(["clear", "grey", "rain"], count),
                    "load": load,
                    "unknown": draw.normal(size=count),
                }
            )
        )
    return polars.concat(frames).with_columns(polars.col("heat", "load").fill_nan(None))


def panel_of(frame: polars.DataFrame) -> Panel:
    return Panel.from_frame(frame.drop("unknown", strict=False), **ROLES)


def fitted(frame: polars.DataFrame, **settings: Any) -> VARNNRegressor:
    return VARNNRegressor(**{**TINY, **settings}).fit(panel_of(frame))


def written(frame: polars.DataFrame, folder: Path, files: int = 4) -> Path:
    """Write series by series into so many files."""
    folder.mkdir(parents=True, exist_ok=True)
    names = frame["meter"].unique(maintain_order=True).to_list()
    for number in range(files):
        own = frame.filter(polars.col("meter").is_in(names[number::files]))
        own.write_parquet(folder / f"part-{number}.parquet")
    return folder


def together(folder: Path) -> polars.DataFrame:
    """All predictions, by series and time."""
    return polars.concat([polars.read_parquet(one) for one in sorted(folder.rglob("*.parquet"))]).sort(
        "meter", "when"
    )
