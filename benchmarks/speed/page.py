"""Saved figures -> the page about performance; nothing on it is typed by hand."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.record import Measured, Saved, read, shown, significant
from benchmarks.speed.targets import TARGETS

HEAD = """\
# Performance

Made by `python -m benchmarks page` from the files in `benchmarks/results/`; every figure below is a line in
one of them. Contenders take turns within one run, each with the number of threads stated, and medians are
shown: over all calls, and of each contender's best round. Ratios and rates are those of the best
rounds, because other work on the machine interrupts long calls more than short ones, and would flatter
whoever is fast. Microseconds are those of one machine on one day: trust the ratios.
"""


def page(paths: Sequence[str | Path]) -> str:
    """Write the page in Markdown.

    Parameters
    ----------
    paths
        Files written by ``python -m benchmarks ... --json``.
    """
    saved = {Path(path).name: read(path) for path in paths}
    parts = [HEAD, _targets([table for one in saved.values() for table in one.measured])]
    for name, one in sorted(saved.items()):
        parts.append(_file(name, one))
    return "\n".join(parts)


def _targets(measured: list[Measured]) -> str:
    threads = sorted({one.threads for one in measured})
    columns = ["what", "at least", "stretch", *(_threads(count) for count in threads), "with one thread"]
    rows = []
    for target in TARGETS:
        found = {count: target.find(measured, count) for count in threads}
        sign = "at most " if target.below else ""
        rows.append(
            [
                target.what,
                sign + shown(significant(target.least)),
                "-" if target.stretch is None else sign + shown(target.stretch),
                *(shown(found[count]) for count in threads),
                target.verdict(found.get(1)),
            ]
        )
    return "## What was asked for, and what was measured\n\n" + _table(columns, rows)


def _file(name: str, saved: Saved) -> str:
    facts = "; ".join(
        f"{what} {value}" if what != "date" else str(value)
        for what, value in saved.made.items()
        if value != "not installed"
    )
    stopped = "" if saved.complete else " was interrupted, and left these figures"
    parts = [f"## {name}\n", f"`{saved.command}`{stopped}\n", f"{facts}.\n"]
    for titled in dict.fromkeys(one.title for one in saved.measured):
        parts.append(f"### {titled}\n")
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
