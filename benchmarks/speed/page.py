"""Saved figures -> the page about performance; nothing on it is typed by hand."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.cost.summary import summary
from benchmarks.record import Measured, Saved, read, shown, significant
from benchmarks.speed.plan import DEFAULT_BENCHES
from benchmarks.speed.targets import FLOORS, TARGETS, WITHDRAWN, Target

HEAD = """\
# Performance

What the model costs to run and to fit, beside what one would take instead. Made by `python -m benchmarks
page` from the files in `benchmarks/results/`; every figure below is a line in one of them, and each names
its command, machine, versions and date. Contenders take turns within one run, each with the number of
threads stated, and medians are shown: over all calls, and of each contender's best round. Ratios and rates
are those of the best rounds, because other work on the machine interrupts long calls more than short ones,
and would flatter whoever is fast. Microseconds are those of one machine on one day: trust the ratios.
"""

COSTS = """\
Of `VARNNRegressor()` as it is out of the box, on rows made in the form of the Appliances set: one every ten
minutes, 26 inputs, seasons of a day and a week. "Compiled" is `varnn[fast]` (numba); without it NumPy does
all of it. Who is fast and wrong is cheap, too: the tables further down show the error of each beside its
time, and whether it gives intervals.
"""

_PRODUCTS = "time / matrix products alone"

NETWORK = """\
The network of the paper alone, RM and ARM+AM, without the linear part, the seasons, the experts and the
intervals that the default has around it.
"""


def page(paths: Sequence[str | Path]) -> str:
    """Write the page in Markdown.

    Parameters
    ----------
    paths
        Files written by ``python -m benchmarks ... --json``.
    """
    saved = {Path(path).name: read(path) for path in paths}
    tables = [table for one in saved.values() for table in one.measured]
    default = {name: one for name, one in saved.items() if _is_of_default(one)}
    network = {name: one for name, one in saved.items() if name not in default}
    parts = [HEAD, *_costs(tables), _targets(tables)]
    parts += _files("The default, table by table", "", default)
    parts += _files("The paper's network, table by table", NETWORK, network)
    return "\n".join(parts)


def _is_of_default(saved: Saved) -> bool:
    return all(one.name.split()[0] in DEFAULT_BENCHES for one in saved.measured)


def _costs(measured: list[Measured]) -> list[str]:
    rows = summary(measured)
    if not rows:
        return []
    lines = "".join(f"| {' | '.join(cells)} |\n" for cells in rows)
    return [f"## What it costs\n\n{COSTS}\n| what | takes | beside it |\n| --- | --- | --- |\n{lines}"]


def _targets(measured: list[Measured]) -> str:
    threads = sorted({one.threads for one in measured})
    columns = ["what", "at least", "stretch", *(_threads(count) for count in threads), "verdict"]
    rows = []
    for target in TARGETS:
        found = {count: target.find(measured, count) for count in threads}
        sign = "at most " if target.below else ""
        rows.append(
            [
                target.what,
                sign + shown(significant(target.least)),
                "-" if target.stretch is None else sign + shown(significant(target.stretch)),
                *(shown(found[count]) for count in threads),
                target.verdict(found.get(target.threads)),
            ]
        )
    withdrawn = "; ".join(
        f"{one.what}, {shown(one.least)} times (measured: {shown(one.find(measured, one.threads))})"
        for one in WITHDRAWN
    )
    floors = ", ".join(
        f"{shown(Target(what, *where, _PRODUCTS, 0).find(measured, 1))} ({what})"
        for what, where in FLOORS.items()
    )
    words = "Verdicts are of runs with one thread, unless a line says two."
    why = f"The floor was shown: a step takes so many times its matrix products alone: {floors}."
    table = _table(columns, rows)
    return (
        f"## What was asked for, and what was measured\n\n{words}\n\n{table}\nWithdrawn: {withdrawn}. {why}\n"
    )


def _files(title: str, words: str, saved: Mapping[str, Saved]) -> list[str]:
    if not saved:
        return []
    order = {f"{bench}.json": number for number, bench in enumerate(DEFAULT_BENCHES)}
    names = sorted(saved, key=lambda name: (order.get(name, len(order)), name))
    return [
        "\n".join([f"## {title}\n", *([words] if words else [])]),
        *(_file(name, saved[name]) for name in names),
    ]


def _file(name: str, saved: Saved) -> str:
    facts = "; ".join(
        f"{what} {value}" if what != "date" else str(value)
        for what, value in saved.made.items()
        if value != "not installed"
    )
    stopped = "" if saved.complete else " was interrupted, and left these figures"
    parts = [f"### {name}\n", f"`{saved.command}`{stopped}\n", f"{facts}.\n"]
    for titled in dict.fromkeys(one.title for one in saved.measured):
        parts.append(f"#### {titled}\n")
        parts += [_measured(one) for one in saved.measured if one.title == titled]
    return "\n".join(parts)


def _measured(one: Measured) -> str:
    lines = [f"{_threads(one.threads).capitalize()}:\n"]
    lines.append(_table(list(one.rows[0]), [[shown(figure) for figure in row.values()] for row in one.rows]))
    lines += [f"Checked: {check}.\n" for check in one.checks]
    if one.absent:
        lines.append(f"Not installed, so not measured: {'; '.join(one.absent)}.\n")
    return "\n".join(lines)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    ruler = ["---", *["---:"] * (len(columns) - 1)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (columns, ruler, *rows))


def _threads(count: int) -> str:
    return "one thread" if count == 1 else f"{count} threads"
