"""Many series, one model, each seeing the others: python examples/many_series.py [--rows 1500]."""

import argparse

import numpy as np

from varnn import Panel, VARNNRegressor, evaluation
from varnn.report import comparison_page

STATIONS = ["north", "east", "south", "west"]


def stations(rows: int) -> Panel:
    """Make stations under one weather: what moves one is soon seen at the others."""
    random = np.random.default_rng(5)
    weather = np.cumsum(random.normal(0, 0.2, rows))
    wind = random.normal(size=(len(STATIONS), rows))
    dust = weather + 0.4 * np.abs(wind) + random.normal(0, 0.3, wind.shape)
    return Panel.from_arrays(
        wind.reshape(-1, 1),
        dust.reshape(-1),
        series=np.repeat(STATIONS, rows),
        input_names=["wind"],
        target_name="dust",
    )


def alone(seed: int) -> VARNNRegressor:
    """Make a model to which every series is the only one."""
    return VARNNRegressor(random_state=seed)


def together(seed: int) -> VARNNRegressor:
    """Make a model in which a row sees what the other series just did."""
    return VARNNRegressor(peers=True, random_state=seed)


def main() -> None:
    """Compare a model with peers and one without; then step all stations at once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1500, help="rows of each station")
    panel = stations(parser.parse_args().rows)
    result = evaluation.compare(
        panel, ["persistence", "arx-lr", ("alone", alone), ("together", together)], seeds=1
    )
    print(comparison_page.in_words(result))

    fleet = together(2025).fit(panel).stream(n_series=len(STATIONS))
    fleet.predict(np.zeros((len(STATIONS), 1)))  # one row of inputs for each station
    innovations = fleet.observe([1.0, 1.2, None, 0.9]).round(2).tolist()
    print("innovations:", dict(zip(STATIONS, innovations, strict=True)))


if __name__ == "__main__":
    main()
