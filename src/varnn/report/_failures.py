"""Where and when a model fails -> sections of a page: bars by hour, day, level, series; worst stretches."""

from collections.abc import Sequence

from varnn.data.in_words import beside, figure, percent
from varnn.data.panel import Panel
from varnn.data.understood import written_time
from varnn.model.calendar import has_times
from varnn.monitoring.failures import Failures, Group, Stretch
from varnn.report.bars import Bar
from varnn.report.page import Report

_SERIES = 15  # listed, the worst first
_FEWEST = 20  # rows of a group that is said to be the worst
_CLEARLY = 1.02  # times the error of persistence, from which on the model is said to fail
_NOTE = (
    "Bars: root mean square error of the model; strokes: of persistence, the last label. Bias: mean of label "
    "less prediction."
)
_COVERED = "Covered: labels within their 90 % interval."


def add_failures(report: Report, found: Failures, panel: Panel) -> None:
    """Add where errors are large, each beside persistence, with the number of rows.

    Parameters
    ----------
    report : Report
        The page to add to.
    found : Failures
        As `varnn.monitoring.failures` gives it.
    panel : Panel
        The rows it is about, for their times.
    """
    report.add_words("Where and when it fails", in_words(found, panel))
    some = found.series[:_SERIES]
    left = len(found.series) - len(some)
    more = f"The other {left:,} series have smaller errors." if left else ""
    note = _NOTE if found.overall.coverage is None else f"{_NOTE} {_COVERED}"
    for title, kind, groups, said in (
        ("By hour of the day", "hour", found.hours, ""),
        ("By day of the week", "day", found.weekdays, ""),
        (f"By level of {panel.target_name}", "label", found.levels, ""),
        ("By series", "series", some, more),
    ):
        if len(groups) > 1:
            _add_groups(report, title, kind, groups, f"{note} {said}".strip())
            note = ""  # once is enough
    if found.stretches:
        series = ["series"] if panel.n_series > 1 else []
        report.add_table(
            "The worst stretches",
            [*series, "from", "to", "RMSE", "persistence", "of all squared error"],
            [_line(one, panel) for one in found.stretches],
            note="Rows one after the other with the most squared error; they do not overlap.",
        )


def in_words(found: Failures, panel: Panel) -> list[str]:
    """Say in a few sentences where errors are largest, and where persistence would have been better.

    Examples
    --------
    >>> import numpy as np
    >>> from varnn.monitoring.failures import failures
    >>> panel = Panel.from_arrays(None, np.tile([1.0, 2.0], 50))
    >>> print(in_words(failures(panel, panel.target + 0.5), panel)[0])
    RMSE 0.5 on 99 rows, persistence 1: squared error 75.0% below that of persistence.
    """
    whole = found.overall
    said = [_overall(whole)]
    for groups, words in (
        (found.hours, "in the hour from {}"),
        (found.weekdays, "on {}s"),
        (found.levels, f"where {panel.target_name} is {{}}"),
        (found.series, "in series {}"),
    ):
        enough = [one for one in groups if one.rows >= _FEWEST]
        if len(enough) < 2:
            continue
        worst = max(enough, key=lambda one: one.rmse)
        said.append(
            f"Errors are largest {words.format(worst.name)}: RMSE {figure(worst.rmse)}, persistence "
            f"{figure(worst.persistence)}."
        )
        behind = [one for one in enough if one.rmse > _CLEARLY * one.persistence]
        if behind:
            names = ", ".join(one.name for one in behind[:5]) + (", ..." if len(behind) > 5 else "")
            said.append(f"The last label would have been better {words.format(names)}.")
    if found.stretches:
        worst_one = found.stretches[0]
        said.append(
            f"The worst stretch, {_span(worst_one, panel)}, has {percent(worst_one.share, 0)} of all squared "
            "error."
        )
    return said


def _overall(whole: Group) -> str:
    said = f"RMSE {figure(whole.rmse)} on {whole.rows:,} rows, persistence {figure(whole.persistence)}"
    if whole.persistence > 0:
        said += f": squared error {beside((whole.rmse / whole.persistence) ** 2 - 1)} that of persistence"
    return f"{said}."


def _add_groups(report: Report, title: str, kind: str, groups: Sequence[Group], note: str) -> None:
    covered = groups[0].coverage is not None
    columns = [kind, "error", "RMSE", "persistence", "bias", *(["covered"] if covered else []), "rows"]
    lines = [
        Bar(
            [
                one.name,
                figure(one.rmse),
                figure(one.persistence),
                figure(one.bias, 3, signed=True),
                *([percent(one.coverage)] if one.coverage is not None else []),
                f"{one.rows:,}",
            ],
            one.rmse,
            mark=one.persistence,
        )
        for one in groups
    ]
    report.add_bars(title, columns, lines, note=note)


def _line(one: Stretch, panel: Panel) -> list[str]:
    first, last = _ends(one, panel)
    series = [one.series] if panel.n_series > 1 else []
    return [*series, first, last, figure(one.rmse), figure(one.persistence), percent(one.share)]


def _span(one: Stretch, panel: Panel) -> str:
    first, last = _ends(one, panel)
    return f"{first} to {last}" + (f" of series {one.series}" if panel.n_series > 1 else "")


def _ends(one: Stretch, panel: Panel) -> tuple[str, str]:
    """First and last time of a stretch, or the numbers of its rows in their series."""
    if panel.time is not None and has_times(panel.time):
        return written_time(panel.time[one.first]), written_time(panel.time[one.last])
    begin = int(panel.first_rows[one.first])
    return f"row {one.first - begin:,}", f"row {one.last - begin:,}"
