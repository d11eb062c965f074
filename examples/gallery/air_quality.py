"""Fine dust at twelve stations an hour ahead: python examples/gallery/air_quality.py [--hours 8760]."""

import argparse

import numpy as np

from varnn import Panel, VARNNRegressor, datasets, evaluation
from varnn.report import comparison_page

WEATHER = ["TEMP", "PRES", "DEWP", "RAIN", "WSPM"]  # the other pollutants would be measured with the answer
PEERS = "varnn, peers"
MODELS = [
    "persistence",
    "arx-lr",
    "narx-gbm",
    "varnn",
    (PEERS, lambda seed: VARNNRegressor(peers=True, random_state=seed)),  # stations see one another's past
]


def load(hours: int) -> Panel:
    """Load the last hours of every station of the Beijing set, a series each; gaps stay gaps."""
    panel = datasets.load("beijing").with_inputs(WEATHER)
    return panel.latest(hours * panel.n_series)


def compare(panel: Panel) -> evaluation.Comparison:
    """Score the models on the last fifth of each station's hours; all choices were made before it."""
    return evaluation.compare(panel, MODELS, seeds=1, metrics=["rmse", "mae", "skill", "coverage", "width"])


def by_station(comparison: evaluation.Comparison) -> list[str]:
    """Say at each station how large the squared error is beside persistence's."""
    scored, test = comparison.parts.scored(), comparison.parts.lead_in
    station = np.repeat(np.arange(test.n_series), test.lengths)[scored]
    ours, naive = (
        (comparison.of(name)[0].predictions - comparison.truth) ** 2 for name in (PEERS, "persistence")
    )
    share = {
        name: ours[station == one].mean() / naive[station == one].mean() for one, name in enumerate(test.ids)
    }
    return [f"{name:<16}{share[name]:.2f} of persistence's" for name in sorted(share, key=share.__getitem__)]


def main() -> None:
    """Compare over all stations, then station by station."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=int, default=8760, help="the last ones; 35064 is all")
    comparison = compare(load(parser.parse_args().hours))
    print(comparison_page.in_words(comparison))
    print("\n".join(by_station(comparison)))


if __name__ == "__main__":
    main()
