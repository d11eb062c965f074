"""Saved errors of forecasts -> their page; no figure on it is typed by hand."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from varnn.data.files import write_atomically
from varnn.errors import DataError

HEAD = """\
# Forecasts, measured

Made by `python -m benchmarks horizons-page` from `benchmarks/results/{source}` ({date}; {machine}). Each
data set is cut in time, 64 / 16 / 20: the forecaster (`VARNNRegressor(horizon=24)`, other settings at their
defaults; stations of Beijing see each other) is fitted on the first part, chooses on the second, and
forecasts from before every row of the third. No forecast is told coming inputs. Figures are mean squared
errors over those of persistence, mean ± deviation over seeds; below 1 is better than the last value.
"""
NOTES = """\
- **recursive AR** is linear in the last 24 labels, **recursive ARX** in the last 4 labels and the inputs;
  both are fed with their own predictions, and inputs stay as they were last.
- **seasonal persistence** says what was a day before.
- **direct linear** is the linear part of VARNN alone: a ridge regression for each step.
- **coverage** is the share of outcomes within the {level:.0%} intervals of VARNN.
"""


def write(source: str | Path, output: str | Path) -> None:
    """Write the page from a file that ``python -m benchmarks horizons --json`` saved."""
    try:
        saved = json.loads(Path(source).read_text())
        text = page(saved, Path(source).name)
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError(f"{str(source)!r} is no file of `python -m benchmarks horizons --json`.") from None
    write_atomically(output, text.encode())


def page(saved: Mapping[str, Any], source: str) -> str:
    """Lay the figures out, a table for each data set."""
    text = [HEAD.format(source=source, date=saved["date"], machine=saved["machine"])]
    steps = [str(one) for one in saved["steps"]]
    for data in dict.fromkeys(line["data"] for line in saved["lines"]):
        lines = [line for line in saved["lines"] if line["data"] == data]
        lines.sort(key=lambda line: sum(line["of persistence"]))
        ours = next(line for line in lines if line["forecast"] == "VARNN")
        rows = [[str(line["forecast"]), *_cells(line)] for line in lines]
        rows.append(["coverage", *(f"{one:.1%}" for one in ours["coverage"])])
        text += [
            f"\n## {data.capitalize()}\n",
            f"{ours['rows']:,} rows to forecast from, {ours['seeds']} seeds; rows ahead:\n",
            _table(["", *steps], rows),
        ]
    elsewhere = [f"- {saved['elsewhere']}.\n"] if "elsewhere" in saved else []
    return "\n".join([*text, "", NOTES.format(level=saved["level"]) + "".join(elsewhere)])


def _cells(line: Mapping[str, Any]) -> list[str]:
    several = line["seeds"] > 1
    pairs = zip(line["of persistence"], line["spread"], strict=True)
    return [f"{ratio:.3f} ± {spread:.3f}" if several else f"{ratio:.3f}" for ratio, spread in pairs]


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
