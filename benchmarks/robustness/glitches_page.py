"""Saved figures of the glitches bench -> its page; nothing on it is typed by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.record import Measured, Row, Saved, read, shown
from varnn.data.files import write_atomically
from varnn.errors import DataError
from varnn.step.label_filter import MAX_PENDING_DISTANCE

BEFORE = " (before)"  # ends the names of tables that an earlier version left

HEAD = """\
# One wild value

Made by `python -m benchmarks glitches-page` from `benchmarks/results/{source}`. What a single wild value does
to the rows after it, whether shifts that are real are followed, and how the default copes with streams that
are hard on arithmetic. Sizes are in deviations of the training labels, or of an input. Figures in brackets
are those of the version before wild values were bounded, on the same streams. The rules:

- **A label** that is further from the one before it than twice the largest change of the training labels
  is left out of what later rows are predicted from, as if it were missing; so it is also for peers and
  forecasts. Errors that are reported are the true ones.
- **A second such label** on the same side, at least half as far off, is taken, and so is the third within
  twenty rows wherever it is: a shift that stays is followed, one row late, or two where it is too far off for
  a share (below), and so is a stream that grows wild for good. The bound then rises to twice that change, and
  halves every thousand rows.
- **In between there is a doubt**: the label left out may be a glitch, or the first of a shift. Until the next
  label tells, predictions go a share of the way towards it, (1 + shifts) / (2 + shifts + glitches) over the
  doubts that the series has had: half of it the first time, and after ten glitches a twelfth. What is more
  than {farthest:g} times further off than is plausible gets no share.
- **An input** of the linear part further outside the range it was seen in than half of that range is
  taken as just that far; the network's are cut at ten deviations.
- **Intervals** count an error as at most twice the largest they were learnt from.

What the training rows hold is never touched, so a wild value *there* makes the bounds wide: look at them
first. A network without linear part (`VARNNRegressor.paper()`) takes every label, and has forgotten it
after a window.
"""
GLITCHES = """\
## Glitches

Root mean squared error of the next 25 rows over that without the glitch, whose own row does not count,
and the coverage of 90 % intervals on the next 200 rows. `arx` is an autoregressive process, `walk` a
random walk, both with inputs; `pulses` is mostly still, with real jumps; of `peers`, two series see a
third, which has the glitch. It is the first glitch of its series each time, so that the row after it goes
half of the way, where it is not too far off for a share: that row makes up nearly all of what a glitch of 10
deviations costs (of `pulses`, whose real jumps are larger than that, one of 100). Later ones go less far.
"""
SHIFTS = """\
## Shifts and ramps that are real

Rows until five errors in a row are below four usual ones (the median), and the error of the rows 5 to 25
after it began. A ramp rises so many deviations *a row* for 50 rows: most are caught up with once they end.
"""
ROUGH = """\
## Rough streams

Each has 2,000 rows; a model of one member learns from the first 80 % and is scored on the rest.
"""
BACK = """\
## Another law, and back

A stream obeys another law for a thousand rows, and then the one of training again: mean squared error
with the readout that adapts over that without. What it gains while the law is another, it pays back in
part afterwards.
"""


def write(source: str | Path, output: str | Path) -> None:
    """Write the page from a file that ``python -m benchmarks glitches --json`` saved."""
    write_atomically(output, page(read(source), Path(source).name).encode())


def with_before(measured: Sequence[Measured], earlier: Saved) -> list[Measured]:
    """Put the tables of an earlier version beside those of this one; how they were made is kept with them."""
    made = [f"{what}: {value}" for what, value in earlier.made.items() if value != "not installed"]
    return [
        *measured,
        *(replace(one, name=f"{one.name}{BEFORE}", checks=made) for one in earlier.measured),
    ]


def page(saved: Saved, source: str) -> str:
    """Lay the figures out, a table for each kind of trouble."""
    tables = {one.name: one.rows for one in saved.measured}
    keys = {"glitches": 3, "shifts": 3, "rough streams": 1, "back again": 2}
    words = {"glitches": GLITCHES, "shifts": SHIFTS, "rough streams": ROUGH, "back again": BACK}
    if not set(keys) <= set(tables):
        raise DataError(
            f"the figures must be those of the bench `glitches`: {list(keys)}; got {list(tables)}. "
            "Give another file."
        )
    parts = [HEAD.format(farthest=MAX_PENDING_DISTANCE, source=source)]
    for name, count in keys.items():
        parts += [words[name], _table(tables[name], tables.get(f"{name}{BEFORE}", []), count)]
    facts = "\n".join(f"- {what}: {value}" for what, value in saved.made.items() if value != "not installed")
    return "\n".join([*parts, f"## How this was made\n\n`{saved.command}`\n\n{facts}\n"])


def _table(rows: Sequence[Row], before: Sequence[Row], keys: int) -> str:
    """Write a table whose first columns name a line; what was before stands in brackets."""
    columns = list(rows[0])
    earlier = {tuple(list(row.values())[:keys]): row for row in before}
    lines = [columns, ["---"] * len(columns)]
    for row in rows:
        was = earlier.get(tuple(list(row.values())[:keys]), {})
        cells = [shown(row[name]) for name in columns[:keys]]
        for name in columns[keys:]:
            cells.append(shown(row[name]) + (f" ({shown(was[name])})" if name in was else ""))
        lines.append(cells)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
