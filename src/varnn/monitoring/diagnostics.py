"""Innovations -> what is left in them: correlation in time and with inputs, hours, tails, changes, memory.

The innovations of a model that has learnt all there is are white noise. `diagnose` looks for whatever
they still hold, and says it in plain words with the figures to go with them. For a fitted model,
``model.diagnose(panel)`` is the way in; its intervals are looked at too.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from varnn._types import DoubleArray, IntArray
from varnn.data.panel import Panel
from varnn.data.sampling import seconds_per_row
from varnn.errors import DataError
from varnn.model.calendar import has_times
from varnn.monitoring._words import findings
from varnn.monitoring.calibration import Calibration
from varnn.monitoring.correlation import autocorrelation, cross_correlation, ljung_box
from varnn.monitoring.diagnosis import Diagnosis, Hours, InputLink, MemoryMap
from varnn.monitoring.monitor import Event, detect
from varnn.monitoring.trace import PredictionTrace

__all__ = ["FEWEST_ROWS", "Diagnosis", "PredictionTrace", "diagnose", "diagnose_trace"]

FEWEST_ROWS = 50
_MOST_BINS, _MOST_UNITS = 200, 64  # of the memory map: what a figure can show
_HOUR, _DAY, _WEEK = 3600, 86_400, 604_800
_FALSE_ALARMS = 1 / 10_000  # per row, as a monitor has them, but
_FALSE_ALARMS_IN_ALL = 1 / 20  # no more than this over all rows: a diagnosis looks back, and can wait


def diagnose_trace(trace: PredictionTrace, *, lags: int = 48, input_lags: int = 24) -> Diagnosis:
    """Look for what a model left, and whether its intervals held; see :func:`diagnose`."""
    return diagnose(
        trace.innovations,
        trace.panel,
        trace.memory,
        covered=trace.covered,
        calibration=trace.calibration,
        lags=lags,
        input_lags=input_lags,
    )


def diagnose(
    innovations: npt.NDArray[Any],
    panel: Panel,
    memory: npt.NDArray[Any] | None = None,
    *,
    covered: npt.NDArray[Any] | None = None,
    calibration: Calibration | None = None,
    lags: int = 48,
    input_lags: int = 24,
) -> Diagnosis:
    """Look for what the innovations of a model still hold.

    Parameters
    ----------
    innovations : array
        Label less prediction of each row of the panel, NaN where missing.
    panel : Panel
        The rows, for their inputs, times and series.
    memory : array or None, default=None
        Memory state of each row, (n_rows, n_units).
    covered : array or None, default=None
        Whether each row's label lay within its interval, NaN where unknown.
    calibration : Calibration or None, default=None
        What the intervals kept of what they promised, as `varnn.monitoring.calibration` gives it.
    lags, input_lags : int
        Rows to look back for correlation of the innovations with themselves and with the inputs.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> time = np.datetime64("2026-01-01T00") + np.arange(2000)
    >>> panel = Panel.from_arrays(None, np.zeros(2000), time=time)
    >>> innovations = generator.normal(size=2000) + np.sin(2 * np.pi * np.arange(2000) / 24)
    >>> print(diagnose(innovations, panel).findings[0])
    Innovations are still correlated at lag 24 (+0.35, one day): a daily cycle is left.
    """
    errors = _checked(innovations, panel, memory, covered)
    known = errors[~np.isnan(errors)]
    size = np.abs(known - known.mean())
    seconds = seconds_per_row(panel.time, panel.starts)
    looked_at = _lags(lags, seconds, int(panel.lengths.max()))
    without_gap = len(looked_at[looked_at <= lags])
    correlations, pairs = autocorrelation(errors, looked_at, panel.starts)
    sizes, _ = autocorrelation(np.abs(errors - known.mean()), looked_at, panel.starts)
    statistic, p_values = ljung_box(correlations[:without_gap], pairs[:without_gap], len(known))
    measured = Diagnosis(
        n_rows=len(panel),
        n_known=len(known),
        seconds_per_row=seconds,
        mean=float(known.mean()),
        deviation=float(known.std()),
        excess_kurtosis=float(np.mean(size**4) / max(np.mean(size**2) ** 2, 1e-300) - 3),
        tail_index=_tail_index(size),
        worst_share=_worst_share(size),
        lags=looked_at,
        autocorrelation=correlations,
        size_autocorrelation=sizes,
        band=1.96 / np.sqrt(np.maximum(pairs, 1)),
        ljung_box=statistic,
        ljung_box_p=p_values,
        inputs=_input_links(errors, panel, min(input_lags, int(panel.lengths.max()) - 1)),
        hours=_by_hour(errors, panel, covered),
        memory=None if memory is None else _memory_map(np.asarray(memory)),
        calibration=calibration,
        events=_changes(errors, panel, covered, None if calibration is None else calibration.watched),
    )
    return replace(measured, findings=tuple(findings(measured, panel)))


def _checked(
    innovations: npt.NDArray[Any],
    panel: Panel,
    memory: npt.NDArray[Any] | None,
    covered: npt.NDArray[Any] | None,
) -> DoubleArray:
    for name, values in (("innovations", innovations), ("memory", memory), ("covered", covered)):
        if values is not None and len(values) != len(panel):
            raise DataError(
                f"{name} must have one entry per row of the panel, {len(panel)}; got {len(values)}."
            )
    errors = np.asarray(innovations, dtype=np.float64)
    if errors.ndim != 1 or np.isinf(errors).any():
        raise DataError(
            f"innovations must be finite, or NaN where missing, and of shape ({len(panel)},); "
            f"got shape {errors.shape}. Take one model's label less prediction."
        )
    if panel.lengths.max() < 2:
        raise DataError(
            "a diagnosis looks from row to row, so some series must have two rows or more; all have one. "
            "Leave out `series`, if the rows belong to one stream."
        )
    n_known = int(np.count_nonzero(~np.isnan(errors)))
    if n_known < FEWEST_ROWS:
        raise DataError(
            f"a diagnosis needs at least {FEWEST_ROWS} rows with a label; there are {n_known}. "
            "Give more rows."
        )
    return errors


def _changes(
    errors: DoubleArray, panel: Panel, covered: npt.NDArray[Any] | None, level: float | None
) -> tuple[Event, ...]:
    rate = max(min(_FALSE_ALARMS, _FALSE_ALARMS_IN_ALL / len(panel)), 1e-9)
    hits = None if level is None else covered  # judged against a level, or not at all
    return tuple(detect(errors, panel.starts, covered=hits, coverage=level, false_alarms=rate))


def _lags(most: int, seconds: int | None, longest: int) -> IntArray:
    """List the lags 1, 2, ..., and those of half a day, a day and a week where the rows show four of them."""
    lags = set(range(1, min(most, longest - 1) + 1))
    if seconds is not None:
        spans = [divmod(span, seconds) for span in (_DAY // 2, _DAY, _WEEK)]
        lags |= {lag for lag, rest in spans if lag > 0 and rest == 0 and 4 * lag <= longest}
    return np.array(sorted(lags), dtype=np.int64)


def _tail_index(size: DoubleArray) -> float:
    """Hill's estimate from the largest fiftieth of the absolute values, at least 20 of them."""
    largest = np.sort(size)[-max(20, len(size) // 50) :]
    if largest[0] <= 0 or largest[-1] == largest[0]:
        return float("inf")
    return float(1 / np.mean(np.log(largest / largest[0])))


def _worst_share(size: DoubleArray) -> float:
    squares = np.sort(size**2)
    return float(squares[-max(1, len(squares) // 100) :].sum() / max(squares.sum(), 1e-300))


def _input_links(errors: DoubleArray, panel: Panel, most: int) -> tuple[InputLink, ...]:
    correlations, _ = cross_correlation(errors, panel.inputs, np.arange(most + 1), panel.starts)
    strongest = np.argmax(np.abs(correlations), axis=0)
    links = [
        InputLink(name, int(lag), float(correlations[lag, column]))
        for column, (name, lag) in enumerate(zip(panel.input_names, strongest, strict=True))
    ]
    return tuple(sorted(links, key=lambda link: -abs(link.correlation)))


def _by_hour(errors: DoubleArray, panel: Panel, covered: npt.NDArray[Any] | None) -> Hours | None:
    if not has_times(panel.time):
        return None
    seconds = np.asarray(panel.time).astype("datetime64[s]").astype(np.int64)
    hours = seconds % _DAY // _HOUR
    if len(np.unique(hours)) < 2:
        return None

    def mean(values: DoubleArray) -> DoubleArray:
        known = ~np.isnan(values)
        count = np.bincount(hours[known], minlength=24)
        total = np.bincount(hours[known], weights=values[known], minlength=24)
        return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan))

    return Hours(
        count=np.bincount(hours[~np.isnan(errors)], minlength=24).astype(np.float64),
        bias=mean(errors),
        error=np.sqrt(mean(errors**2)),
        coverage=None if covered is None else mean(np.asarray(covered, dtype=np.float64)),
    )


def _memory_map(memory: npt.NDArray[Any]) -> MemoryMap:
    edges = np.unique(np.linspace(0, len(memory), min(_MOST_BINS, len(memory)) + 1).astype(np.int64))
    spans = np.add.reduceat(memory.astype(np.float64), edges[:-1], axis=0) / np.diff(edges)[:, None]
    most_active = np.argsort(-spans.std(axis=0), kind="stable")[:_MOST_UNITS]
    return MemoryMap(rows=edges[:-1], states=spans[:, most_active])
