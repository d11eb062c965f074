"""A diagnosis in plain words: what is left in the innovations, and what that means.

With many rows everything differs from white noise a little. A sentence is said only of what is both
beyond chance and large enough to matter to whoever uses the predictions.
"""

from collections import Counter

import numpy as np

from varnn.data.in_words import figure, times
from varnn.data.panel import Panel
from varnn.monitoring.diagnosis import Diagnosis
from varnn.monitoring.event import event_in_words

_NOTABLE = 0.05  # a correlation below it explains less than a quarter of a percent of the squared error
_BEYOND_CHANCE = 2.0  # bands of 1.96 standard errors: about 1 in 10,000 for one lag, 1 in 200 for fifty
_HEAVY_SHARE = 0.16  # of the squared error in one row of a hundred: twice that of a Gaussian
_FEWEST_IN_HOUR = 30
_OFF_LEVEL = 0.015  # of coverage, that matters
_DAY, _WEEK = 86_400, 604_800
_SPANS = {3600: "one hour", _DAY: "one day", _WEEK: "one week"}
# A slow decay is large at the lag of a cycle too. A cycle stands out from a shorter span: a day from half
# a day, where it is at its opposite, and a week from a day, which a daily cycle makes just as large.
_CYCLES = {_DAY: (_DAY // 2, "a daily cycle is left"), _WEEK: (_DAY, "a weekly cycle is left")}


def findings(diagnosis: Diagnosis, panel: Panel | None = None) -> list[str]:
    """Give one sentence for each thing worth knowing.

    Parameters
    ----------
    diagnosis : Diagnosis
        What was measured.
    panel : Panel or None, default=None
        The rows, for names and times of what changed; None goes by their numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from varnn import Panel
    >>> from varnn.monitoring.diagnostics import diagnose
    >>> innovations = np.random.default_rng(0).normal(size=500) + 0.5
    >>> findings(diagnose(innovations, Panel.from_arrays(None, np.zeros(500))))
    ['Predictions are too low by 0.473 on average (0.47 standard deviations).']
    """
    said = [
        *_in_time(diagnosis),
        *_bias(diagnosis),
        *_inputs(diagnosis),
        *_hours(diagnosis),
        *_tails(diagnosis),
        *_calibration(diagnosis),
        *_changes(diagnosis, panel),
    ]
    return said or ["The innovations look like white noise: nothing is left that these checks could see."]


def _in_time(diagnosis: Diagnosis) -> list[str]:
    """Say which lags are correlated: those of cycles first, then the first lag, else the strongest."""
    values, lags = diagnosis.autocorrelation, diagnosis.lags
    notable = np.abs(values) > np.maximum(_BEYOND_CHANCE * diagnosis.band, _NOTABLE)
    said = _cycles(diagnosis)
    decay = int(np.argmin(np.append(notable & (values * values[0] > 0), False)))  # lags from 1 on, all alike
    if decay:
        persist = "errors persist, the model corrects too little" if values[0] > 0 else "it corrects too much"
        said.append(
            _correlated(diagnosis, 0, f"{persist}; {100 * values[0] ** 2:.0f} % of the squared error")
        )
    rest = decay + np.flatnonzero(notable[decay:])
    if len(rest) and not said:
        strongest = int(rest[np.argmax(np.abs(values[rest]))])
        said.append(_correlated(diagnosis, strongest, "it stands out from the others"))
    sizes = diagnosis.size_autocorrelation
    if sizes[0] > max(_BEYOND_CHANCE * diagnosis.band[0], 2 * _NOTABLE):
        said.append(
            f"Large innovations follow large ones ({sizes[0]:+.2f} at lag {lags[0]}): the variance comes in "
            "bursts, which intervals of constant width are too narrow for, and too wide between."
        )
    return said


def _cycles(diagnosis: Diagnosis) -> list[str]:
    if diagnosis.seconds_per_row is None:
        return []
    at = {int(lag) * diagnosis.seconds_per_row: index for index, lag in enumerate(diagnosis.lags)}
    said = []
    for span, (shorter, meaning) in _CYCLES.items():
        if span in at and shorter in at:
            least = max(_NOTABLE, _BEYOND_CHANCE * diagnosis.band[at[span]])
            above = diagnosis.autocorrelation[at[span]] - max(diagnosis.autocorrelation[at[shorter]], 0.0)
            if above > least:
                said.append(_correlated(diagnosis, at[span], meaning))
    return said


def _correlated(diagnosis: Diagnosis, index: int, meaning: str) -> str:
    lag = int(diagnosis.lags[index])
    span = "" if diagnosis.seconds_per_row is None else _SPANS.get(lag * diagnosis.seconds_per_row, "")
    facts = f"{diagnosis.autocorrelation[index]:+.2f}" + (f", {span}" if span else "")
    return f"Innovations are still correlated at lag {lag} ({facts}): {meaning}."


def _bias(diagnosis: Diagnosis) -> list[str]:
    if diagnosis.deviation == 0:
        return []
    bias = diagnosis.mean / diagnosis.deviation
    if abs(bias) < max(4 / np.sqrt(diagnosis.n_known), 2 * _NOTABLE):
        return []
    side = "low" if bias > 0 else "high"
    return [
        f"Predictions are too {side} by {figure(abs(diagnosis.mean), 3)} on average "
        f"({figure(abs(bias), 2)} standard deviations)."
    ]


def _inputs(diagnosis: Diagnosis) -> list[str]:
    # The strongest of many lags and inputs is chosen, so chance alone reaches further.
    least = max(2.5 * _BEYOND_CHANCE / np.sqrt(diagnosis.n_known), 2 * _NOTABLE)
    strong = [link for link in diagnosis.inputs if abs(link.correlation) > least]
    if not strong:
        return []
    listed = ", ".join(f"{link.name} at lag {link.lag} ({link.correlation:+.2f})" for link in strong[:3])
    more = f" and {len(strong) - 3} more" if len(strong) > 3 else ""
    return [f"Innovations still go with inputs, which could predict them: {listed}{more}."]


def _hours(diagnosis: Diagnosis) -> list[str]:
    hours = diagnosis.hours
    if hours is None:
        return []
    full = hours.count >= _FEWEST_IN_HOUR
    if not full.any():
        return []
    said = []
    errors = np.where(full, hours.error, np.nan)
    usual, worst = float(np.nanmedian(errors)), int(np.nanargmax(errors))
    if errors[worst] > 1.5 * usual > 0:
        said.append(
            f"Errors are largest in the hour from {worst}:00: {times(errors[worst] / usual)} those of the "
            "median hour."
        )
    bias = np.where(full, hours.bias - diagnosis.mean, 0.0)  # beyond the bias of all hours
    most = int(np.argmax(np.abs(bias)))
    if abs(bias[most]) > hours.error[most] * max(4 * _NOTABLE, 4 / np.sqrt(hours.count[most])):
        side = "lower" if bias[most] > 0 else "higher"
        said.append(
            f"In the hour from {most}:00 predictions are {side} than at other hours, "
            f"by {figure(abs(bias[most]), 3)} against the labels."
        )
    if hours.coverage is not None and not np.isnan(hours.coverage[full]).all():
        covered = np.where(full, hours.coverage, np.nan)
        overall, lowest = float(np.nanmean(covered)), int(np.nanargmin(covered))
        chance = 4 * np.sqrt(overall * (1 - overall) / hours.count[lowest])
        if covered[lowest] < overall - max(chance, _NOTABLE):
            said.append(
                f"Intervals hold least in the hour from {lowest}:00: {100 * covered[lowest]:.0f} % of rows, "
                f"against {100 * overall:.0f} % over all hours."
            )
    return said


def _tails(diagnosis: Diagnosis) -> list[str]:
    if diagnosis.worst_share < _HEAVY_SHARE or diagnosis.n_known < 500:
        return []
    return [
        f"Tails are heavy (tail index {figure(diagnosis.tail_index, 2)}): one row in a hundred makes up "
        f"{100 * diagnosis.worst_share:.0f} % of the squared error."
    ]


def _calibration(diagnosis: Diagnosis) -> list[str]:
    found = diagnosis.calibration
    if found is None:
        return []
    level, coverage = found.watched, float(found.coverage[found.levels == found.watched][0])
    said = []
    off = coverage - level
    if abs(off) > max(4 * np.sqrt(level * (1 - level) / diagnosis.n_known), _OFF_LEVEL):
        said.append(
            f"Intervals of {100 * level:.0f} % hold {100 * coverage:.1f} % of the labels: they are too "
            f"{'wide' if off > 0 else 'narrow'}."
        )
    worst = int(np.argmin(found.span_coverage))
    if found.span_coverage[worst] < min(level, coverage) - max(2 * found.chance, _NOTABLE):
        said.append(
            f"Around row {found.spans[worst]} intervals of {100 * level:.0f} % held only "
            f"{100 * found.span_coverage[worst]:.0f} % of the labels."
        )
    return said


def _changes(diagnosis: Diagnosis, panel: Panel | None) -> list[str]:
    if not diagnosis.events:
        return []
    event = min(diagnosis.events, key=lambda event: event.row)
    numbered = panel is None or (panel.time is None and panel.n_series == 1)
    first = str(event) if numbered or panel is None else event_in_words(event, panel)
    if len(diagnosis.events) == 1:
        return [f"One change was noticed: {first}."]
    counts = Counter(event.kind for event in diagnosis.events)
    listed = ", ".join(f"{count} × {kind}" for kind, count in counts.most_common())
    return [f"{len(diagnosis.events)} changes were noticed ({listed}). The first: {first}."]
