"""Saved scores of the ablation -> the page "What wins, and why"; no figure on it is typed by hand."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.accuracy.ablation_steps import ABLATION_STEPS
from varnn.data.files import write_atomically
from varnn.errors import DataError

HEAD = """\
# What wins, and why

Made by `python -m benchmarks ablation-page` from `benchmarks/results/{source}` ({date}; {machine}). Every
step from the paper's model to the default is one row. All are fitted on the training part (64 % in time
order; 34 BIDMC records), choose on the validation part (16 %; 8 records) and are scored once on the test part
(20 %; 11 records). Figures are mean squared errors in units of the target's squared range before the test
part, as the paper prints them, times {factor}; mean ± deviation over (seeds). A model may see every label
before the row it predicts.
"""
AGAINST = """
## Against ARX and boosting

Change in mean squared error, and {p}.
"""
# Files of before November 16, 2026 do not say what their p values count: rows alone.
P_VALUES = {
    None: "the largest Diebold-Mariano p value of any seed",
    "rows and seeds": "the p value of a Diebold-Mariano test that counts rows and seeds as chance",
}
COST = """
## Time and memory

Seconds to fit on two cores, and the largest size of the process in MB, data and libraries included. Other
work ran beside, so times are upper bounds. Some fits of Beijing ran on another server, and are not in here.
"""
WHY = """
## Why

- **RM, ARM+AM** are the published networks: they see five rows, in min-max units.
- **Longer**: 24 rows of context, whose second half is in the loss, so that a tenth of the windows
  teaches about as much; standard scaling; a cosine schedule.
- **Averaged**: what is judged and kept is a running mean of the weights over the last hundred steps or so,
  which allows twice the learning rate.
- **Linear part**: a ridge ARX whose lags and strength validation chooses; the network learns what it leaves.
  Ridge shrinks towards the last value, so that a random walk stays one. Where validation finds the inputs
  of no use (BIDMC's 375 waveform samples), the network does not see them.
- **Four members** are averaged.
- **Calendar** adds the time of day and week where that lowers the validation error of the first member.
- **Adapting**: linear part and readout of each series follow its labels with a constant gain, and fade back
  to the trained ones; who of these experts was right lately counts more.
- **Peers**: each row sees what the other series just did.
- **All rows**: once everything is chosen, the members are trained anew on training and validation rows, as
  `fit` does by default with the rows it held out itself. An ARX fitted to the same rows stands below it;
  the comparisons are with the ARX and the boosting of the training rows alone.

Tried, and not in the default, as it gained little or nothing on other streams and on earlier stretches of
these: windows of 48 and 72 rows, 128 hidden units, 8 members, dropout, weight decay, noise on the inputs,
tanh memory, inputs clipped to their training range, the median of the
members.

The settings were chosen on 21 streams, columns of the Appliances and Beijing files (the targets included)
before their test parts and made streams, each cut 64 / 16 / 20, and on rolling origins before the test part.
What the default does on streams that had no part in this is on [another page](other-streams.md).
"""


def write(source: str | Path, output: str | Path) -> None:
    """Write the page from a file that ``python -m benchmarks ablation --json`` saved."""
    try:
        saved = json.loads(Path(source).read_text())
        lines = saved["lines"]
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError(f"{str(source)!r} is no file of `python -m benchmarks ablation --json`.") from None
    write_atomically(output, page(saved, lines, Path(source).name).encode())


def page(saved: Mapping[str, Any], lines: Sequence[Mapping[str, Any]], source: str) -> str:
    """Lay the figures out."""
    data = list(dict.fromkeys(line["data"] for line in lines))
    there = {line["step"] for line in lines}
    steps = [one.name for one in ABLATION_STEPS if one.name in there]
    by_place = {(line["step"], line["data"]): line for line in lines}
    adds = {line["step"]: line["adds"] for line in lines}
    scales = {name: _scale(by_place["ARX", name]["mse"]) for name in data}
    factor = ", ".join(f"{scales[name]:,} ({name})" for name in data)
    text = [HEAD.format(source=source, date=saved["date"], machine=saved["machine"], factor=factor)]
    errors = [
        [step, adds[step], *(_error(by_place.get((step, name)), scales[name]) for name in data)]
        for step in steps
    ]
    text.append(_table(["", "adds", *data], errors))
    if "note" in saved:
        text.append(f"\nOf these figures {saved['note']}.")
    final = [
        one
        for one in steps
        if one in ("RM", "ARM+AM", "adapting", "peers", "all rows", "peers, all rows", "ARX, all rows")
    ]
    changes = [
        [f"{step} against {other}", *(_against(by_place.get((step, name)), other) for name in data)]
        for step in final
        for other in ("ARX", "boosting")
    ]
    text += [AGAINST.format(p=P_VALUES[saved.get("p values count")]), _table(["", *data], changes)]
    costs = [[step, *(_cost(by_place.get((step, name))) for name in data)] for step in steps]
    text += [COST, _table(["", *data], costs), WHY]
    return "\n".join(text)


def _scale(error: float) -> int:
    """Power of ten that brings an error between 1 and 10."""
    scale = 1
    while error * scale < 1:
        scale *= 10
    return scale


def _error(line: Mapping[str, Any] | None, scale: int) -> str:
    if line is None:
        return ""
    spread = f" ± {line['spread'] * scale:.2f}" if line["seeds"] > 1 else ""
    return f"{line['mse'] * scale:.2f}{spread} ({line['seeds']})" if spread else f"{line['mse'] * scale:.2f}"


def _against(line: Mapping[str, Any] | None, other: str) -> str:
    if line is None or f"against {other}" not in line:
        return ""
    return f"{line[f'against {other}']:+.1%}, p {line[f'p against {other}']:.1g}"


def _cost(line: Mapping[str, Any] | None) -> str:
    if line is None or line["seconds"] is None:
        return ""
    return f"{line['seconds']:.0f} s, {line['memory']:,.0f} MB"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
