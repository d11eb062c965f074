"""Every kind of page there is, made small: one line in `MAKERS` puts a new one before all browser tests."""

import numpy as np

from varnn import Details, Panel, VARNNRegressor, evaluation
from varnn.datasets import synthetic
from varnn.paper.findings import gather
from varnn.paper.output import as_report
from varnn.paper.plan import Scope
from varnn.report import comparison_page, demo
from varnn.report.page import Report


def hourly_comparison() -> Report:
    """Compare on two series with a calendar and many columns."""
    made = [synthetic.make("volatility", rows=1600, seed=seed).panel for seed in (1, 2)]
    panel = Panel.from_arrays(
        np.concatenate([one.inputs for one in made]),
        np.concatenate([one.target for one in made]),
        series=np.repeat(["north", "south"], 1600),
        time=np.tile(np.datetime64("2026-01-01T00") + np.arange(1600), 2),
        target_name="load",
    )
    kept: dict[str, VARNNRegressor] = {}

    def make(seed: int) -> VARNNRegressor:
        kept["varnn"] = VARNNRegressor(
            hidden_size=8, epochs=2, ensemble=1, random_state=seed, details=Details(memory_size=8)
        )
        return kept["varnn"]

    compared = evaluation.compare(panel, ["persistence", "arx-lr", ("varnn", make)], seeds=1, origins=2)
    return comparison_page.page(compared, "two meters", fitted=kept)


def reproduction() -> Report:
    """Give the page of a reproduction of which nothing has run yet: errata, tables, how it was made."""
    scope = Scope(tables=("table2",), data=("appliances",), models=None, seeds=1, quick=True, trees=1)
    return as_report(gather(scope, {}, command="varnn reproduce " + "--quick " * 20, seconds=0.0, note=""))


MAKERS = {
    "demo": lambda: demo.run(synthetic.make("mixed", rows=1500, seed=7), epochs=2, seed=7).report,
    "compare": hourly_comparison,
    "reproduce": reproduction,
}
