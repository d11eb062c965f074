"""Forecasts of several rows, scored: from every row of the test part, beside simple forecasts.

The protocol is that of `varnn.evaluation.protocols`: fit on one part, choose on the next, and forecast from
before each row of the last, which no choice has seen. Forecasts that end beyond the data are not scored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from varnn._types import DoubleArray
from varnn.baselines.forecasts import IteratedARX, persistence_ahead, seasonal_ahead
from varnn.data.categories import spelt_out
from varnn.data.display import Table, counted, drawn, html_card, text_table
from varnn.data.panel import Panel
from varnn.data.rules import whole
from varnn.data.sampling import seconds_per_row
from varnn.errors import ConfigError, require
from varnn.estimator.regressor import VARNNRegressor
from varnn.evaluation._fits import Cuts, refuse_epochs, results
from varnn.evaluation.metrics import coverage, mse
from varnn.evaluation.protocols import Parts, as_panel

if TYPE_CHECKING:
    from matplotlib.figure import Figure
from varnn.model.forecast.rows import targets_ahead

LEVEL = 0.9  # of the intervals whose coverage is counted
_DAY = 86_400  # seconds


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Backtest:
    """Errors and coverage of forecasts at each step of the horizon, 1 .. H rows ahead.

    Parameters
    ----------
    horizon : int
        H.
    mse : dict from str to array of shape (seeds, H)
        Mean squared errors in the square of the target's units by name of the forecast; one line for
        what draws nothing.
    coverage : array of shape (seeds, H)
        Share of outcomes within the 90 % intervals of VARNN.
    rows : int
        Test rows that were forecast from.
    seconds : float
        Time to fit VARNN, all seeds and origins together.
    """

    horizon: int
    mse: dict[str, DoubleArray]
    coverage: DoubleArray
    rows: int
    seconds: float

    def table(self, steps: Sequence[int] = (1, 3, 6, 12, 24)) -> list[dict[str, Any]]:
        """One line for each forecast: its squared error at some steps over that of persistence.

        The lines are sorted by the mean of these; a pair is the mean over seeds and half their range.

        Parameters
        ----------
        steps : sequence of int, default (1, 3, 6, 12, 24)
            Steps to show; those beyond the horizon are left out.
        """
        shown = [one for one in steps if 1 <= one <= self.horizon]
        if not shown:
            raise ConfigError(
                f"steps must hold some from 1 to {self.horizon}, the horizon; got {list(steps)}."
            )
        last = self.mse["persistence"]
        lines = []
        for name, errors in self.mse.items():
            ratios = errors / last
            line: dict[str, Any] = {"forecast": name}
            for one in shown:
                column = ratios[:, one - 1]
                line[str(one)] = (float(column.mean()), float(np.ptp(column)) / 2)
            lines.append(line)
        return sorted(lines, key=lambda line: sum(line[str(one)][0] for one in shown))

    def plot(self) -> Figure:
        """Draw the errors at each step over those of persistence; needs matplotlib."""
        return drawn("backtest", self)

    def __repr__(self) -> str:
        shown = self._table()
        return f"<{self._title()}>\n{shown.title}\n{text_table(shown.columns, shown.rows)}"

    def _repr_html_(self) -> str:
        return html_card(self._title(), None, [self._table()])

    def _title(self) -> str:
        seeds = counted(len(self.coverage), "seed")
        return f"Backtest of {counted(self.horizon, 'row')} ahead, from {counted(self.rows, 'row')}, {seeds}"

    def _table(self) -> Table:
        lines = self.table()
        steps = [one for one in lines[0] if one != "forecast"]
        rows = [[line["forecast"], *(f"{line[one][0]:.3g}" for one in steps)] for line in lines]
        covered = [f"{self.coverage[:, int(one) - 1].mean():.0%}" for one in steps]
        rows.append([f"within {LEVEL:.0%} intervals", *covered])
        title = "mean squared error over that of persistence, so many rows ahead"
        return Table(title, ["forecast", *steps], rows, 0)


def backtest(
    panel: Panel,
    *,
    horizon: int = 24,
    seeds: int = 1,
    first_seed: int = 2025,
    origins: int = 1,
    known_inputs: Sequence[str] = (),
    season: int | None = None,
    model: Callable[[int], VARNNRegressor] | None = None,
    on_epoch: Callable[[dict[str, float]], None] | None = None,
    on_fit: Callable[[int, int], None] | None = None,
    workers: int | None = None,
    cluster: str | None = None,
) -> Backtest:
    """Rolling-origin backtest of forecasts: from before each row of the test part, each step scored.

    Parameters
    ----------
    panel : Panel
        The rows.
    horizon : int, default 24
        Rows ahead, at least 2.
    seeds : int, default 1
        How many VARNNs to fit.
    first_seed : int, default 2025
        Seed of the first of them; the next take the next numbers.
    origins : int, default 1
        With more than one, all is fitted anew at each of :func:`varnn.evaluation.protocols.rolling`'s
        origins.
    known_inputs : sequence of str, default ()
        Inputs that are known in the future.
    season : int, optional
        Rows of the season of seasonal persistence; if not given a day, where rows have a time.
    model : callable, optional
        Makes a VARNN from a seed; if not given the default one.
    on_epoch : callable, optional
        Called after each epoch, for progress; without `workers` and `cluster` only.
    on_fit : callable, optional
        Called after each fit with how many are done and how many there are.
    workers : int, optional
        Fits at a time, each in a process of its own on one core. If not given, one after the other in this
        process, on all cores. Errors and coverage are the same.
    cluster : str, optional
        A Ray cluster to fit on, "auto" or its address; see :func:`varnn.jobs.run`.

    Returns
    -------
    Backtest
        Errors at each step, of VARNN and of simple forecasts.

    References
    ----------
    L. J. Tashman, "Out-of-sample tests of forecasting accuracy: an analysis and review", International
    Journal of Forecasting 16 (2000), 437-450.

    Examples
    --------
    >>> from varnn import datasets
    >>> panel = datasets.load("synthetic", kind="drift", rows=600)
    >>> small = lambda seed: VARNNRegressor(hidden_size=8, ensemble=1, epochs=2, random_state=seed)
    >>> result = backtest(panel, horizon=3, model=small)
    >>> sorted(result.mse)
    ['VARNN', 'direct linear', 'persistence', 'recursive AR', 'recursive ARX']
    >>> result.mse["VARNN"].shape
    (1, 3)
    """
    if horizon < 2:
        raise ConfigError(f"horizon must be at least 2; got {horizon}. One row ahead is what compare does.")
    for setting, value in (("seeds", seeds), ("origins", origins)):
        if wrong := whole(1).broken(setting, value):
            raise ConfigError(wrong)
    for package in ("torch", "scipy"):
        require(package, extra="train", purpose="training")
    refuse_epochs(on_epoch, workers, cluster)
    panel = as_panel(panel)
    cuts = Cuts(panel, "honest", origins)
    for origin in range(origins):
        cuts.at(origin)  # what cannot be cut is found before the first fit
    season = _rows_of_a_day(panel) if season is None else season
    shared = _Shared(cuts, horizon, season, tuple(known_inputs), first_seed, model or _default, on_epoch)
    listed = [(origin, seed) for origin in range(origins) for seed in range(first_seed, first_seed + seeds)]
    found: dict[int, _Sums] = {}
    for place, sums in results(_fit_one, listed, shared, workers=workers, cluster=cluster):
        found[place] = sums
        if on_fit is not None:
            on_fit(len(found), len(listed))
    total = _Sums(horizon)
    for place in range(len(listed)):  # in this order, whichever came first: sums depend on it
        total.join(found[place])
    return Backtest(
        horizon=horizon,
        mse=total.means(),
        coverage=_means(total.hits),
        rows=total.rows,
        seconds=total.seconds,
    )


@dataclass(frozen=True, eq=False)
class _Shared:
    """What all fits of a backtest need."""

    cuts: Cuts
    horizon: int
    season: int | None
    known_inputs: tuple[str, ...]
    first_seed: int
    model: Callable[[int], VARNNRegressor]
    on_epoch: Callable[[dict[str, float]], None] | None


def _default(seed: int) -> VARNNRegressor:
    return VARNNRegressor(random_state=seed)


def _fit_one(job: tuple[int, int], shared: _Shared) -> _Sums:
    """Fit at one origin from one seed, and score; with the first seed simple forecasts, too."""
    from varnn.fitting import fit

    origin, seed = job
    horizon, parts = shared.horizon, shared.cuts.at(origin)
    sums = _Sums(horizon)
    outcomes = np.column_stack([parts.lead_in.target, targets_ahead(parts.lead_in, horizon)])
    scored = np.isin(parts.lead_in.rows, parts.test.rows)
    if seed == shared.first_seed:
        sums.rows = int(scored.sum())
        for name, forecasts in _simple(parts, horizon, shared.season):
            sums.add(name, 0, outcomes[scored], forecasts[scored])
    began = time.perf_counter()
    _, fitted = fit(
        shared.model(seed).settings(),
        parts.train,
        parts.validation,
        horizon=horizon,
        known_inputs=spelt_out(shared.known_inputs, parts.train.categories),
        one_step=False,
        seed=seed,
        on_epoch=shared.on_epoch,
    )
    sums.seconds = time.perf_counter() - began
    forecasts, lower, upper = fitted.historical_intervals(parts.lead_in, np.array([LEVEL]))
    sums.add("VARNN", seed, outcomes[scored], forecasts[scored])
    sums.cover(seed, outcomes[scored], lower[scored, :, 0], upper[scored, :, 0])
    if seed == shared.first_seed:
        linear = fitted.linear_alone().historical_forecasts(parts.lead_in)
        sums.add("direct linear", 0, outcomes[scored], linear[scored])
    return sums


def _simple(parts: Parts, horizon: int, season: int | None) -> Iterator[tuple[str, DoubleArray]]:
    """Make simple forecasts, one after the other: of many rows each is large."""
    rows = parts.lead_in
    yield "persistence", persistence_ahead(rows, horizon)
    yield "recursive AR", IteratedARX(lags=24, inputs=False).fit(parts.train).forecasts(rows, horizon)
    yield "recursive ARX", IteratedARX(lags=4).fit(parts.train).forecasts(rows, horizon)
    if season is not None and season >= horizon:
        yield "seasonal persistence", seasonal_ahead(rows, horizon, season)


def _rows_of_a_day(panel: Panel) -> int | None:
    seconds = seconds_per_row(panel.time, panel.starts)
    return None if seconds is None else round(_DAY / seconds)


@dataclass
class _Sums:
    """Metrics at each step times the rows they are means of, summed up over origins, and these rows."""

    horizon: int
    rows: int = 0
    seconds: float = 0.0
    errors: dict[str, dict[int, DoubleArray]] = field(default_factory=dict)
    hits: dict[int, DoubleArray] = field(default_factory=dict)

    def add(self, name: str, seed: int, outcomes: DoubleArray, forecasts: DoubleArray) -> None:
        # A simple forecast that has no label to go by is left out, as an outcome is that is not known.
        truth = np.where(np.isnan(forecasts), np.nan, outcomes)
        self._add(self.errors.setdefault(name, {}), seed, mse, truth, forecasts)

    def cover(self, seed: int, outcomes: DoubleArray, lower: DoubleArray, upper: DoubleArray) -> None:
        self._add(self.hits, seed, coverage, outcomes, lower, upper)

    def _add(
        self, sums: dict[int, DoubleArray], seed: int, metric: Callable[..., float], *columns: DoubleArray
    ) -> None:
        values = np.array([metric(*(one[:, step] for one in columns)) for step in range(self.horizon)])
        counts = np.count_nonzero(~np.isnan(columns[0]), axis=0)
        sums[seed] = np.array([np.where(counts > 0, values * counts, 0.0), counts])

    def join(self, other: _Sums) -> None:
        """Add what another origin or seed came to."""
        self.rows, self.seconds = self.rows + other.rows, self.seconds + other.seconds
        for name, seeds in other.errors.items():
            _join(self.errors.setdefault(name, {}), seeds)
        _join(self.hits, other.hits)

    def means(self) -> dict[str, DoubleArray]:
        return {name: _means(seeds) for name, seeds in self.errors.items()}


def _join(sums: dict[int, DoubleArray], others: dict[int, DoubleArray]) -> None:
    for seed, other in others.items():
        sums[seed] = sums.get(seed, 0) + other


def _means(sums: dict[int, DoubleArray]) -> DoubleArray:
    """Divide sums by counts, seed by seed: (S, H)."""
    with np.errstate(invalid="ignore"):  # nothing of nothing is not a number
        return np.array([total / count for total, count in sums.values()])
