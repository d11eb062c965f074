"""A tuner that was fitted -> a page: the verdict first, then the test rows, the trials, and what decided."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from varnn.data.in_words import change, figure, percent
from varnn.data.panel import Panel
from varnn.report.bars import Bar
from varnn.report.figures import COLOURS, INK, NARROW, legend_above, new_figure
from varnn.report.page import Report
from varnn.report.settings import add_settings
from varnn.report.understood import add_understood
from varnn.scale.tuning.tuner import VARNNTuner
from varnn.scale.tuning.verdict import Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = 5  # of the best trials
_WORST = 1.15  # of the default's error: trials above are drawn at the edge
# How a trial ended: its colour, its marker, and what it is called.
_MARKS = {
    "through": (COLOURS[0], "o", "measured to the end"),
    "behind": (COLOURS[6], "v", "given up, where it stood then"),
    "failed": (COLOURS[5], "x", "failed"),
}


def page(
    tuner: VARNNTuner, title: str, *, panel: Panel | None = None, guessed: Collection[str] = ()
) -> Report:
    """Make the report page of a search.

    Parameters
    ----------
    tuner : VARNNTuner
        Fitted.
    title : str
        What to call the data.
    panel : Panel or None, default=None
        What was given to ``fit``, to say what was understood of it.
    guessed : collection of str, default=()
        Which of "time" and "series" were guessed.
    """
    verdict, lines = tuner.verdict_, tuner.trials_
    report = Report(f"{title}: tuning", _protocol(tuner), str(verdict))
    if panel is not None:
        add_understood(report, panel, leak=tuner.best_.fitted_.training.leak, guessed=guessed)
    report.add_table(
        "On rows that no choice has seen",
        ["model", "RMSE", "by seed", "squared error vs default"],
        _test_rows(verdict),
        note=f"{verdict.rows:,} test rows, read once, when nothing was left to choose; means over seeds. "
        "Persistence and linear ARX are fitted on the same rows before them.",
        strong=1 if not verdict.keeps_default else 0,
    )
    report.add_figure(
        "Trials",
        course(lines),
        "Squared error of each trial over the default's, a mean over origins, and the best so far. "
        "Triangles were given up, some at the first origin, where others stood better. With one member each, "
        "chance has its part in it; these rows chose, so the best of them is optimistic.",
    )
    best = sorted((one for one in lines if one["ended"] == "through"), key=_by_ratio)[:SHOWN]
    report.add_table(
        "The best trials",
        ["trial", "one member", "all members", "settings"],
        [_trial_row(one) for one in best],
        note="Error over the default's on the validation rows of all origins: with one member, as every "
        "trial, and with all, as the best few were measured again.",
        strong=0,
    )
    if tuner.importances_:
        shares = sorted(tuner.importances_.items(), key=lambda one: -one[1])
        report.add_bars(
            "What decided",
            ["setting", "", "share"],
            [Bar([_short(name), percent(share)], share) for name, share in shares],
            note="Share of each setting in how the trials that were measured to the end differ, by "
            "functional analysis of variance. With some tens of trials it is a rough guide.",
        )
    failed = [one for one in lines if one["ended"] == "failed"]
    if failed:
        report.add_points("Trials that failed", [(f"trial {one['trial']}", one["reason"]) for one in failed])
    add_settings(report, tuner.best_, "What is kept" if verdict.keeps_default else "What is taken")
    return report


def course(lines: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw the trials in their order, the best so far, and the default's line."""
    figure, (axes,) = new_figure(NARROW, height=3.4)
    from matplotlib.ticker import MaxNLocator  # it is there: a figure was made

    axes.axhline(1, color=INK, linewidth=0.9, linestyle=":")
    for ended, (colour, marker, name) in _MARKS.items():
        some = [one for one in lines if one["ended"] == ended and not one["default"]]
        places = [one["trial"] for one in some]
        values = [min(_WORST, one["ratio"] or _WORST) for one in some]
        if some:
            axes.scatter(places, values, color=colour, marker=marker, s=30, label=name, zorder=3)
    default = [one["trial"] for one in lines if one["default"] and one["ended"] == "through"]
    axes.scatter(default, [1.0] * len(default), color=INK, marker="D", s=30, label="the default", zorder=4)
    through = [one for one in lines if one["ended"] == "through"]
    best = np.minimum.accumulate([one["ratio"] for one in through]) if through else np.empty(0)
    axes.step([one["trial"] for one in through], best, where="post", color=COLOURS[1], label="best so far")
    axes.set_xlabel("trial")
    axes.set_ylabel("squared error / default's")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    legend_above(axes)
    return figure


def _protocol(tuner: VARNNTuner) -> str:
    return (
        f"{len(tuner.trials_)} trials, the default first; each trained on the rows before {tuner.origins} "
        f"origins and scored on the rows after. The last {tuner.test_fraction:.0%} of the rows were set "
        "aside for the verdict."
    )


def _test_rows(verdict: Verdict) -> list[list[str]]:
    default = float(np.mean(verdict.errors["default"]))
    rows = []
    for name, errors in verdict.errors.items():
        mean = float(np.mean(errors))
        differs = "" if name == "default" else change(mean / default - 1) if default > 0 else "-"
        if name == "tuned" and verdict.test is not None:
            differs += f" (p = {max(verdict.test.p, verdict.test.p_bootstrap):.2g})"
        each = ", ".join(figure(one**0.5) for one in errors) if len(errors) > 1 else ""
        rows.append([name, figure(mean**0.5), each, differs])
    return rows


def _trial_row(line: Mapping[str, Any]) -> list[str]:
    final = line["final_ratio"]
    settings = (f"{_short(name)} {_written(value)}" for name, value in line["settings"].items())
    return [
        str(line["trial"]),
        f"{line['ratio']:.4f}",
        "" if final is None else f"{final:.4f}",
        "the default, as it was given to the search" if line["default"] else ", ".join(settings),
    ]


def _by_ratio(line: Mapping[str, Any]) -> tuple[bool, float]:
    """Order by what is surer where it is there."""
    final = line["final_ratio"]
    return final is None, float(line["ratio"] if final is None else final)


def _short(name: str) -> str:
    return name.removeprefix("details__")


def _written(value: Any) -> str:
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value)) or "none"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
