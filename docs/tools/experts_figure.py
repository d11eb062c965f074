"""Draw who is right when on a made stream: python docs/tools/experts_figure.py.

Hours with a day in them, a level that comes back slowly, and an input that counts. Some rows into the test
part the input begins to count the other way round, and later as it did in training again.
"""

from pathlib import Path

import numpy as np

from varnn import Panel, VARNNRegressor, evaluation
from varnn.report.chart import Mark
from varnn.report.figures import to_svg
from varnn.report.over_time import belief, mark

PICTURE = Path(__file__).parents[1] / "images" / "experts.svg"
ROWS, TURNED, BACK = 12_000, 10_300, 11_300
DESCRIBED = (
    "Weights of seven experts over the test rows of a made stream, as areas from 0 to 1. At first linear "
    "part and networks share them; when the law changes, persistence and then the network that learns fast "
    "take over; soon after the old law is back, those that stayed as trained return."
)


def made() -> Panel:
    """Make the stream."""
    draw = np.random.default_rng(5)
    hours, heat = np.arange(ROWS), draw.normal(size=ROWS)
    level, noise = np.zeros(ROWS), draw.normal(size=ROWS)
    for row in range(1, ROWS):
        level[row] = 0.95 * level[row - 1] + 0.5 * noise[row]
    effect = np.where((hours >= TURNED) & (hours < BACK), -1.0, 1.0)
    return Panel.from_arrays(
        heat[:, None],
        3 * np.sin(2 * np.pi * hours / 24) + level + effect * heat + 0.3 * draw.normal(size=ROWS),
        time=np.datetime64("2025-01-01T00") + hours,
    )


def main() -> None:
    """Fit on the first rows, follow the weights over the last ones, and draw them."""
    parts = evaluation.cut(made())
    model = VARNNRegressor().fit(parts.train, validation=parts.validation)
    names, weights = model.expert_weights(parts.lead_in)
    shown = np.isin(parts.lead_in.rows, parts.test.rows)
    places = np.asarray(parts.lead_in.time)
    figure = belief(places[shown], names, weights[shown])
    laws = [places[np.flatnonzero(parts.lead_in.rows == row)[0]] for row in (TURNED, BACK)]
    mark(figure.axes[0], [Mark("the law changes", one, one) for one in laws])
    PICTURE.write_text(to_svg(figure, DESCRIBED, alone=True))


if __name__ == "__main__":
    main()
