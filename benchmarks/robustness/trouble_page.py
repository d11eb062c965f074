"""Saved ratios of the robustness bench -> its page and its figure; nothing on either is typed by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.record import Measured, Saved, read, shown
from benchmarks.robustness.trouble import RATIO, TROUBLES, capitalised
from varnn.data.files import write_atomically
from varnn.errors import DataError
from varnn.report import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Ratios = dict[str, dict[float, list[float]]]  # contender -> strength -> one ratio per seed
OURS = "VARNN"  # the names of our contenders begin with it

HEAD = """\
# Robustness

Made by `python -m benchmarks robustness-page` from `{source}`. Each stream has one kind of trouble that no
input shows, at rising strength. Since the stream is made, its best predictor is known: the one that knows the
process and all labels so far. Figures are the mean squared error on the last fifth of {rows} rows over that
of the best predictor: **1 is perfect**, and no model can expect less. What is above 1 at strength 0 is the
price of learning from {learned} rows how the inputs act; what is added as strength grows is the price of the
trouble. Every contender is fitted on the first 64 % and chooses on the next 16 %. Each stream is drawn from
{seeds}; tables show geometric means over them. To keep the bench short the LSTM, which also sees past labels,
has 64 units and gives up after 5 epochs without a gain; a larger, more patient one may do somewhat better.
"""
CAPTION = (
    "Mean squared error over that of the best possible predictor, by strength of trouble, one panel for "
    "each kind; lines run through geometric means, upright strokes span the seeds."
)


def write(source: str | Path, output: str | Path) -> None:
    """Write the page, and its figure beside it under the same name.

    Parameters
    ----------
    source
        File written by ``python -m benchmarks robustness --json``.
    output
        The Markdown page.
    """
    saved, place = read(source), Path(output)
    picture = place.with_suffix(".svg")
    svg = figures.to_svg(draw(saved.measured), CAPTION, alone=True)
    write_atomically(picture, (svg + "\n").encode())
    write_atomically(place, page(saved, Path(source).name, picture.name).encode())


def draw(measured: Sequence[Measured]) -> Figure:
    """Draw one panel per kind of trouble."""
    found = by_kind(measured)
    ours = dict.fromkeys(name for lines in found.values() for name in lines if name.startswith(OURS))
    panels = {TROUBLES[kind][0]: lines for kind, lines in found.items()}
    return figures.ratios(panels, strong=list(ours), unit=RATIO)


def page(saved: Saved, source: str, picture: str) -> str:
    """Write the page in Markdown."""
    found = by_kind(saved.measured)
    seeds = max(len(some) for line in _lines(found) for some in line.values())
    rows = max(float(row["rows"] or 0) for table in saved.measured for row in table.rows)
    parts = [
        HEAD.format(
            source=f"benchmarks/results/{source}",
            rows=shown(rows),
            learned=shown(float(int(0.64 * rows))),
            seeds="one seed" if seeds == 1 else f"{seeds} seeds",
        ),
        f"![{CAPTION}]({picture})\n",
        _summary(found),
        "## What strength means\n",
        _table(
            ["trouble", "at strength s"],
            [[capitalised(name), meaning] for name, meaning in (TROUBLES[kind] for kind in found)],
        ),
        *(_kind(kind, lines) for kind, lines in found.items()),
        _made(saved),
    ]
    return "\n".join(parts)


def by_kind(measured: Sequence[Measured]) -> dict[str, Ratios]:
    """Gather the saved rows by kind of trouble."""
    found: dict[str, Ratios] = {}
    for table in measured:
        kind = table.name.removeprefix("robustness ")
        if kind not in TROUBLES:
            raise DataError(
                f"the figures must be those of the bench `robustness`; got a table {table.name!r}. "
                "Give another file."
            )
        lines = found.setdefault(kind, {})
        for row in table.rows:
            line = lines.setdefault(str(row["contender"]), {})
            line.setdefault(float(row["strength"] or 0), []).append(float(row[RATIO] or 0))
    return found


def at_strongest(found: Mapping[str, Ratios]) -> tuple[float, list[str], dict[str, list[float]]]:
    """Greatest strength, the contenders, and by kind of trouble their mean ratios at it."""
    strongest = max(strength for line in _lines(found) for strength in line)
    names = list(dict.fromkeys(name for lines in found.values() for name in lines))
    columns = {
        TROUBLES[kind][0]: [_mean(lines.get(name, {}).get(strongest, [])) for name in names]
        for kind, lines in found.items()
    }
    columns["all of them"] = [_mean(some) for some in zip(*columns.values(), strict=True)]
    return strongest, names, columns


def _summary(found: Mapping[str, Ratios]) -> str:
    strongest, names, columns = at_strongest(found)
    return (
        f"## Who copes with what, at strength {strongest:g}\n\n"
        f"The smallest of each column is bold.\n\n{_contenders(names, columns)}"
    )


def _kind(kind: str, lines: Ratios) -> str:
    strengths = sorted({strength for line in lines.values() for strength in line})
    columns = {
        f"strength {strength:g}": [_mean(line.get(strength, [])) for line in lines.values()]
        for strength in strengths
    }
    return f"## {capitalised(TROUBLES[kind][0])}\n\n{_contenders(list(lines), columns)}"


def _contenders(names: Sequence[str], columns: Mapping[str, Sequence[float]]) -> str:
    """Write one line per contender, the smallest figure of each column in bold."""
    written = []
    for column in columns.values():
        smallest = f"{np.fmin.reduce(np.array(column)):.2f}"
        texts = ["-" if np.isnan(one) else f"{one:.2f}" for one in column]
        written.append([f"**{text}**" if text == smallest else text for text in texts])
    return _table(["contender", *columns], list(zip(names, *written, strict=True)))


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    ruler = ["---"] * len(columns)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (columns, ruler, *rows))


def _made(saved: Saved) -> str:
    stopped = "" if saved.complete else " It was interrupted, and left these figures."
    facts = "\n".join(f"- {what}: {value}" for what, value in saved.made.items() if value != "not installed")
    return f"## How this was made\n\n`{saved.command}`{stopped}\n\n{facts}\n"


def _lines(found: Mapping[str, Ratios]) -> list[dict[float, list[float]]]:
    return [line for lines in found.values() for line in lines.values()]


def _mean(ratios: Sequence[float]) -> float:
    """Geometric mean; of nothing, it is not a number."""
    return float(np.exp(np.mean(np.log(ratios)))) if ratios else float("nan")
