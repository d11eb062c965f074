"""Saved figures -> the pages about performance; nothing on them is typed by hand.

One answers what people ask before they choose: what does a step cost, a fit, a million rows. The other has
every table behind it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.cost.answers import answers, figure, in_time, section
from benchmarks.record import Measured, Saved, markdown_table, read, shown
from benchmarks.speed.plan import BENCHES, DEFAULT_BENCHES

HEAD = """\
# Performance

What it costs to use `VARNNRegressor()` as it is out of the box. The machine: {machine}. The rows: made in the
form of a public set, the energy use of a house: every ten minutes, 26 inputs, seasons of a day and a week.
"""

GLANCE = """\
NumPy does all of it; `varnn[fast]` compiles the steps (numba), and is what the figures are of where nothing
else is said. No GPU is used: [what one changes](how-to/gpu.md). A model for each of thousands of series,
folders of files, several machines: [Many models, many machines](how-to/scale.md).
"""

BESIDE = """\
## Beside others

Who is fast and wrong is cheap, too: *error* is the mean squared error on rows that were not learnt from, as a
share of persistence's, so below 1 is better than repeating the last label. *Times varnn's* is the time as a
multiple of ours.
"""

MEASURED = """\
## How it was measured

Contenders take turns within one run, each with the number of threads stated. Times are medians, of each
contender's best round where they are compared: other work on the machine interrupts long calls more than
short ones, and would flatter whoever is fast. Microseconds are those of one machine on one day: trust the
ratios. On your machine: `make bench`, and `make bench-peers` with Keras and neuralforecast among the peers.

Every figure comes from a file in `benchmarks/results/` that names its command, versions and date, and
[every table](performance-tables.md) is shown with them. Measured {dates}.
"""

TABLES_HEAD = """\
# Performance, every table

What is behind [Performance](performance.md), made by `python -m benchmarks page` from the files in
`benchmarks/results/`. Each names its command, machine, versions and date. Medians are over all calls; "best"
is the median of a contender's best round, which ratios and rates are made of.
"""

NETWORK = """\
The network of the paper alone, RM and ARM+AM, without the linear part, the seasons, the experts and the
intervals that the default has around it.
"""


# Who is shown beside the published network; every table has more of them.
_TRAINED = ("varnn compiled", "varnn fused", "torch nn.LSTM", "Keras VARNN, fit()", "Keras LSTM, fit()")


def page(paths: Sequence[str | Path]) -> str:
    """Write the page that answers, in Markdown.

    Parameters
    ----------
    paths
        Files written by ``python -m benchmarks ... --json``.
    """
    saved = [read(path) for path in paths]
    measured = [table for one in saved for table in one.measured]
    found = answers(measured)
    machines = dict.fromkeys(str(one.made["machine"]) for one in saved)
    dates = sorted({str(one.made["date"])[:10] for one in saved})
    parts = [HEAD.format(machine=" and ".join(machines))]
    if found:
        glance = markdown_table(("what", "takes", "that is"), [one[:3] for one in found])
        parts += [glance.replace("---:", "---"), GLANCE, BESIDE]
        parts += [one.section for one in found]
    parts += [*_network(measured), MEASURED.format(dates=_span(dates))]
    return "\n".join(parts)


def tables_page(paths: Sequence[str | Path]) -> str:
    """Write the page of every table, in Markdown."""
    saved = {Path(path).name: read(path) for path in paths}
    network = {name: one for name, one in saved.items() if Path(name).stem in BENCHES}
    default = {name: one for name, one in saved.items() if name not in network}
    parts = [TABLES_HEAD]
    parts += _files("The default", "", default)
    parts += _files("The paper's network", NETWORK, network)
    return "\n".join(parts)


def _network(measured: Sequence[Measured]) -> list[str]:
    """Answer what training the published network costs, beside the same network elsewhere."""
    named = {one.name: one for one in reversed(measured) if one.threads == 1}
    step = named.get("train RM")
    took = {} if step is None else {row["contender"]: float(row.get("best us") or 0) for row in step.rows}
    present = [name for name in _TRAINED if took.get(name)]
    if not present:
        return []
    rows = [[one, in_time(took[one] * 1e-6), f"{took[one] / took[present[0]]:.3g}"] for one in present]
    words = (
        '`VARNNRegressor.paper("RM")` is the network of the paper alone. The table has a training step of '
        "128 windows of five rows, 27 inputs and 128 hidden units, beside the same network in Keras and "
        "LSTMs of its size."
    )
    whole = named.get("train fit")
    if whole is not None and "varnn compiled" in {next(iter(row.values())) for row in whole.rows}:
        compiled, fused = (in_time(figure(whole, name, "best s")) for name in _TRAINED[:2])
        words += f" A whole fit, 50 epochs on 15,788 rows, takes {compiled} compiled, {fused} without numba."
    return [section("The paper's network", words, ("who", "a training step", "times the fastest"), rows)]


def _span(dates: Sequence[str]) -> str:
    return f"on {dates[0]}" if len(dates) == 1 else f"from {dates[0]} to {dates[-1]}"


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
    lines.append(
        markdown_table(list(one.rows[0]), [[shown(figure) for figure in row.values()] for row in one.rows])
    )
    lines += [f"Checked: {check}.\n" for check in one.checks]
    if one.absent:
        lines.append(f"Not installed, so not measured: {'; '.join(one.absent)}.\n")
    return "\n".join(lines)


def _threads(count: int) -> str:
    return "one thread" if count == 1 else f"{count} threads"
