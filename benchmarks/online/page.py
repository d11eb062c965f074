"""Saved errors of the one-step tables -> their page, published figures beside ours; none is typed by hand."""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.online.contenders import OURS
from benchmarks.online.data import FILES
from benchmarks.online.protocol import Table, published
from varnn.data.files import write_atomically
from varnn.errors import DataError

HEAD = """\
# Beside published online forecasters

Made by `python -m benchmarks online-page` from `benchmarks/results/{source}` ({date};
{machines}).
Tables that nobody here wrote: one-step errors of papers on online forecasting, on public data.

{verdict}
"""
PROTOCOL = """\
## The protocol

- All channels of a row are predicted from the rows before it; then the row is seen, and may be learned
  from. One pass over the test part. **The other channels of row t are not known at t**: `varnn` is fitted
  to each channel with the others *one row late* as its inputs, out of the box,
  `VARNNRegressor(random_state=seed)`, on training and validation rows.
- Values are standardised by mean and standard deviation of the training rows. Scores are means over test
  rows and channels.
- FSNet's cuts (and those of the papers after it): ETTh2 by months, the others 20 / 5 / 75 %. ADAPT-Z's:
  60 / 10 / 30 % of all rows. Rows are counted from 0:

{cuts}

- One step ahead is the one column of these papers in which no label is used before it is known: DSOF
  (ICLR 2025) shows that at longer horizons steps were scored that had been trained on.
- Recursive least squares (VAR(4) of all channels, a ridge of 1, nothing forgotten) goes on learning through
  validation and test rows, as the published methods do. With daily lags it also sees the rows around a day
  ago, and sines of day and week.
- Published figures are those of the papers' own result tables; nobody's method was run anew here.

## Run it

```text
export VARNN_DATA_DIR=...      # its folder `online` holds the files
python -m benchmarks online --seeds 3 --json benchmarks/results/online.json
python -m benchmarks online-page benchmarks/results/online.json -o docs/online.md
```

Finished jobs are kept in `results/online`, so that a second run goes on where the first was. `python -m
benchmarks.online.run` does the jobs alone, on a machine without the packages of the command. The files are
checked by SHA-256, and are no part of this project:

{files}
"""


def write(source: str | Path, output: str | Path) -> None:
    """Write the page from a file of ``python -m benchmarks online --json``."""
    try:
        text = page(json.loads(Path(source).read_text()), Path(source).name)
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        raise DataError(f"{str(source)!r} is no file of `python -m benchmarks online --json`.") from None
    write_atomically(output, text.encode())


def page(saved: Mapping[str, Any], source: str) -> str:
    """Lay the figures out: published beside ours, then channel by channel."""
    lines = {(line["table"], line["contender"]): line for line in saved["lines"]}
    tables = list(dict.fromkeys(table for table, _ in lines))
    head = HEAD.format(
        source=source,
        date=saved["date"],
        machines="; ".join(dict.fromkeys(one["machine"] for one in saved["made on"])),
        verdict=_verdict(lines, tables),
    )
    parts = [head]
    for protocol in dict.fromkeys(Table.named(one).protocol for one in tables):
        some = [one for one in tables if Table.named(one).protocol == protocol]
        parts += [f"## {protocol}'s tables: mean squared error\n", _beside(lines, some), ""]
    ours = [lines[table, OURS] for table in tables if (table, OURS) in lines]
    if ours:
        parts += [_spread_note(ours), "## Intervals and time\n", _intervals(ours, saved["level"]), ""]
    parts += ["## Channel by channel\n", _channels(lines, tables), ""]
    cuts = _cells(
        ["table", "training", "validation", "test", "predictions of each channel"],
        [_cut(Table.named(one)) for one in tables],
    )
    files = _cells(
        ["file", "published as", "licence"],
        [[f"`{one.name}`", one.published, one.licence] for one in FILES.values()],
    )
    return "\n".join([*parts, PROTOCOL.format(cuts=cuts, files=files)])


def _verdict(lines: Mapping[tuple[str, str], Mapping[str, Any]], tables: Sequence[str]) -> str:
    """Say for each table how our default stands to the best published figure and to the simple ones."""
    said = []
    for table in tables:
        if (table, OURS) not in lines:
            continue
        ours = float(np.mean(lines[table, OURS]["mse"]))
        best = min(
            (one for one in published()["figures"] if one["table"] == table), key=lambda one: one["mse"]
        )
        simple = min(
            (line for (name, contender), line in lines.items() if name == table and contender != OURS),
            key=lambda line: float(np.mean(line["mse"])),
            default=None,
        )
        words = f"- **{table}**: {_figure(ours)}, "
        words += f"{_against(ours, best['mse'], _printed(best['mse']))} {best['method']}"
        if simple is not None:
            error = float(np.mean(simple["mse"]))
            words += f"; {_against(ours, error, _figure(error))} {simple['contender']}"
        said.append(f"{words}.")
    if not said:
        return "No fit of varnn's default is in this file."
    return "\n".join(["varnn's default beside the best published figure and the best simple model:\n", *said])


def _against(ours: float, other: float, printed: str) -> str:
    change = ours / other - 1
    if abs(change) < 0.005:
        return f"within half a percent of the {printed} of"
    return f"{abs(change):.0%} {'below' if change < 0 else 'above'} the {printed} of"


def _beside(lines: Mapping[tuple[str, str], Mapping[str, Any]], tables: Sequence[str]) -> str:
    figures = [one for one in published()["figures"] if one["table"] in tables]
    rows = []
    for method in dict.fromkeys(one["method"] for one in figures):
        mine = [one for one in figures if one["method"] == method]
        by_table = {one["table"]: _printed(one["mse"]) for one in mine}
        where = " ".join(str(one) for one in (mine[0]["venue"], mine[0]["year"]) if one)
        rows.append([method, where, *(by_table.get(table, "-") for table in tables)])
    for contender in dict.fromkeys(contender for _, contender in lines):
        found = [lines.get((table, contender)) for table in tables]
        name = f"**{contender}**" if contender == OURS else contender
        rows.append([name, "measured here", *("-" if one is None else _spread(one["mse"]) for one in found)])
    return _cells(["method", "of", *tables], rows)


def _channels(lines: Mapping[tuple[str, str], Mapping[str, Any]], tables: Sequence[str]) -> str:
    """Show each channel's error over that of persistence; the worst one of a table is named."""
    parts = [
        "Mean squared error of each channel, and in brackets its ratio to that of persistence: below 1 the "
        "channel was predicted better than by its last value.\n"
    ]
    for table in tables:
        naive = lines.get((table, "persistence"))
        found = [line for (name, _), line in lines.items() if name == table]
        if naive is None:
            continue
        rows = []
        for channel in found[0]["channels"]:
            errors = [float(np.mean(line["channels"][channel]["mse"])) for line in found]
            last = float(np.mean(naive["channels"][channel]["mse"]))
            rows.append([channel, *(f"{_figure(error)} ({error / last:.3f})" for error in errors)])
        parts += [f"### {table}\n", _cells(["channel", *(line["contender"] for line in found)], rows), ""]
        if (table, OURS) in lines:
            parts += [_worst(lines[table, OURS], naive), ""]
    return "\n".join(parts)


def _worst(ours: Mapping[str, Any], naive: Mapping[str, Any]) -> str:
    ratios = {
        channel: float(np.mean(scores["mse"]) / np.mean(naive["channels"][channel]["mse"]))
        for channel, scores in ours["channels"].items()
    }
    worst = max(ratios, key=lambda channel: ratios[channel])
    above = sum(ratio >= 1 for ratio in ratios.values())
    return (
        f"Worst channel of varnn's default: {worst}, {ratios[worst]:.3f} times persistence; "
        f"{above} of {len(ratios)} channels are no better than their last value."
    )


def _intervals(ours: Sequence[Mapping[str, Any]], level: float) -> str:
    rows = [
        [
            line["table"],
            _spread(line["mae"]),
            f"{np.mean(line['coverage']):.1%}",
            f"{min(np.mean(one['coverage']) for one in line['channels'].values()):.1%}",
            _figure(float(np.mean(line["interval_score"]))),
            f"{np.mean(line['seconds']):.0f}",
        ]
        for line in ours
    ]
    said = f"Intervals of varnn's default at the level {level:.0%}, means over channels and seeds.\n"
    columns = ["table", "MAE", "coverage", "lowest of a channel", "interval score", "s to fit a channel"]
    return f"{said}\n{_cells(columns, rows)}"


def _spread_note(ours: Sequence[Mapping[str, Any]]) -> str:
    counts = sorted({len(line["seeds"]) for line in ours})
    many = " or ".join(str(count) for count in counts)
    return f"varnn's default: mean ± standard deviation over {many} seed{'s' if counts != [1] else ''}.\n"


def _spread(values: Sequence[float]) -> str:
    mean = _figure(float(np.mean(values)))
    return f"{mean} ± {np.std(values, ddof=1):.4f}" if len(values) > 1 else mean


def _figure(value: float) -> str:
    """Write an error; small ones need more digits.

    Examples
    --------
    >>> _figure(0.3461), _figure(0.00892)
    ('0.346', '0.0089')
    """
    return f"{value:.3f}" if value >= 0.2 else f"{value:.4f}"


def _printed(published: float) -> str:
    """Write a figure with as many digits as it was published with.

    Examples
    --------
    >>> _printed(0.18), _printed(0.1107)
    ('0.180', '0.1107')
    """
    return f"{published:.3f}" if round(published, 3) == published else f"{published:.4f}"


def _cut(table: Table) -> list[str]:
    ends = (0, table.train, table.validation, table.test)
    spans = [f"{first:,} to {last - 1:,}" for first, last in pairwise(ends)]
    return [table.name, *spans, f"{table.test - table.validation:,}"]


def _cells(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---", *["---:"] * (len(columns) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
