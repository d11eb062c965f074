"""Saved errors on other streams -> their page; no figure on it is typed by hand."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from varnn.bench.streams import OURS, SIMPLE
from varnn.errors import DataError
from varnn.files import write_atomically

HEAD = """\
# Other streams, out of the box

Made by `varnn bench streams-page` from `{source}` ({date}; {machine}).
`VARNNRegressor()` without an argument, on {count} streams that none of its settings was chosen on: columns of
the Appliances and Beijing files as targets of their own, picked by name before anything was fitted to them.
Single series of {shortest:,} to {longest:,} rows, every hour or every 10 minutes, some with a daily cycle,
some near a random walk, up to {missing:.0%} of the targets missing. Every model gets the first 80 % of the
rows and is scored on the others. One seed.

**The mean squared error is {mean:.3f} times that of the best of persistence, ARX with 4 and with 24 lags and
boosting on 24 lags (geometric mean; the best is another one each time). It is lower on {wins} of {count}
streams, {worst:.3f} times at worst.** Intervals of {level:.0%} held between {least:.1%} and {most:.1%} of
the outcomes.
"""
NOTES = """\
Figures are mean squared errors over that of the best simple model, which is 1; **held** is the share of
outcomes within the intervals, **fit** the seconds VARNN took. Trees cannot go beyond the values they were
trained on: hence the figures of boosting where the test rows are warmer than all before. **boosting, 24
lags** chooses its number of trees on the last fifth of its rows; **all rows** grows 500 on all of them.

The files are those that the settings were chosen on, so this is no other part of the world. What was chosen
on are 15,700 rows each, before the last fifth, of other columns (Appliances, T3, RH_1, RH_5, Windspeed) and
other pairs of a quantity and a station (O3, NO2, PM2.5, TEMP, PRES, WSPM, CO). PM2.5 at Dingling is also one
of the twelve series of the figures on Beijing.
"""


def write(source: str | Path, output: str | Path) -> None:
    """Write the page from a file that ``varnn bench streams --json`` saved."""
    try:
        saved = json.loads(Path(source).read_text())
        text = page(saved, Path(source).name)
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError(f"{str(source)!r} is no file of `varnn bench streams --json`.") from None
    write_atomically(output, text.encode())


def page(saved: Mapping[str, Any], source: str) -> str:
    """Lay the figures out, a line for each stream."""
    lines = sorted(saved["lines"], key=lambda line: line["of best simple"])
    head = HEAD.format(
        source=source,
        date=saved["date"],
        machine=saved["machine"],
        count=len(lines),
        shortest=min(line["rows"] for line in lines),
        longest=max(line["rows"] for line in lines),
        missing=max(line["missing"] for line in lines),
        mean=saved["geometric mean"],
        wins=sum(line["of best simple"] < 1 for line in lines),
        worst=saved["worst"],
        level=saved["level"],
        least=min(line["coverage"] for line in lines),
        most=max(line["coverage"] for line in lines),
    )
    names = [OURS, *SIMPLE]
    rows = [["stream", "inputs", *names, "held", "fit"], ["---", *["---:"] * (len(names) + 3)]]
    for line in lines:
        best = line["mse"][line["best simple"]]
        ratios = [f"{line['mse'][name] / best:.3g}" for name in names]
        rows.append(
            [
                line["stream"],
                str(line["inputs"]),
                *ratios,
                f"{line['coverage']:.1%}",
                f"{line['seconds']:.0f} s",
            ]
        )
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return "\n".join([head, table, "", NOTES])
