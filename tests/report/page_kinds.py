"""Every kind of page there is, made small: one line in `MAKERS` puts a new one before all browser tests."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from varnn import Details, Panel, VARNNRegressor, evaluation, report
from varnn.datasets import synthetic
from varnn.paper.findings import gather
from varnn.paper.output import as_report
from varnn.paper.plan import Scope
from varnn.report import comparison_page, demo
from varnn.report.page import Report


def meters(first: int = 0, last: int = 1600) -> Panel:
    """Make two series with a calendar and many columns, of hours from the first to the last."""
    made = [synthetic.make("volatility", rows=1600, seed=seed).panel.between(first, last) for seed in (1, 2)]
    return Panel.from_arrays(
        np.concatenate([one.inputs for one in made]),
        np.concatenate([one.target for one in made]),
        series=np.repeat(["north", "south"], last - first),
        time=np.tile(np.datetime64("2026-01-01T00") + np.arange(first, last), 2),
        target_name="load",
    )


def hourly_comparison() -> Report:
    """Compare on two meters after two origins."""
    kept: dict[str, VARNNRegressor] = {}

    def make(seed: int) -> VARNNRegressor:
        kept["varnn"] = VARNNRegressor(
            hidden_size=8, epochs=2, ensemble=1, random_state=seed, details=Details(memory_size=8)
        )
        return kept["varnn"]

    compared = evaluation.compare(meters(), ["persistence", "arx-lr", ("varnn", make)], seeds=1, origins=2)
    return comparison_page.page(compared, "two meters", fitted=kept)


def reproduction() -> Report:
    """Give the page of a reproduction of which nothing has run yet: errata, tables, how it was made."""
    scope = Scope(tables=("table2",), data=("appliances",), models=None, seeds=1, quick=True, trees=1)
    return as_report(gather(scope, {}, command="varnn reproduce " + "--quick " * 20, seconds=0.0, note=""))


@cache
def fitted() -> tuple[VARNNRegressor, Panel]:
    """Give a model of two meters with forecasts, and 1,200 hours of each that it was fitted to."""
    rows = meters(0, 1200)
    small = {"hidden_size": 8, "epochs": 2, "ensemble": 1, "horizon": 6}
    return VARNNRegressor(**small).fit(rows), rows  # type: ignore[arg-type]  # plain numbers


def watched() -> Report:
    """Give the page of a monitor that noticed something: the spread of one meter grew."""
    rows = meters(1200, 1600)
    target = rows.target.copy()
    target[300:400] += 8 * np.random.default_rng(9).normal(size=100)
    return report.monitor_page(fitted()[0], replace(rows, target=target))


def tuned() -> Report:
    """Give the page of a search of three trials."""
    pytest.importorskip("optuna", reason="tuning needs optuna")
    from varnn.scale.tuning.page import page
    from varnn.scale.tuning.tuner import VARNNTuner

    small = VARNNRegressor(hidden_size=4, epochs=1, ensemble=1)
    return page(VARNNTuner(small, trials=3, seeds=1).fit(meters()), "two meters", panel=meters())


MAKERS: dict[str, Callable[[], Report]] = {
    "demo": lambda: demo.run(synthetic.make("mixed", rows=1500, seed=7), epochs=2, seed=7).report,
    "compare": hourly_comparison,
    "reproduce": reproduction,
    "fit": lambda: report.fit_page(*fitted(), repeats=1),
    "predict": lambda: report.predict_page(fitted()[0], meters(1200, 1600)),
    "forecast": lambda: report.forecast_page(*fitted()),
    "monitor": watched,
    "tune": tuned,
}
