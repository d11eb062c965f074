"""The load of a house in ten minutes and in six hours: python examples/gallery/house_load.py."""

import argparse

from varnn import Panel, datasets, evaluation
from varnn.report import comparison_page

MODELS = ["persistence", "arx-lr", "seasonal-arx", "narx-gbm", "varnn"]
HORIZON = 36  # rows of ten minutes
STEPS = (1, 6, 18, HORIZON)


def load(rows: int) -> Panel:
    """Load the last rows of the Appliances set: what a house draws, 20 sensors in it, and the weather."""
    panel = datasets.load("appliances")
    noise = {"rv1", "rv2"}  # put there by its authors, to see who falls for them
    return panel.with_inputs([name for name in panel.input_names if name not in noise]).latest(rows)


def compare(panel: Panel) -> evaluation.Comparison:
    """Score the models on the last fifth of the rows; all choices were made before it."""
    return evaluation.compare(panel, MODELS, seeds=3, metrics=["rmse", "mae", "skill", "coverage", "width"])


def ahead(panel: Panel) -> list[str]:
    """Forecast six hours from before every row of the last fifth; errors are over those of persistence."""
    lines = [f"{'rows ahead':<22}" + "".join(f"{step:>8}" for step in STEPS)]
    for line in evaluation.backtest(panel, horizon=HORIZON).table(steps=STEPS):
        ratios = [line[str(step)][0] for step in STEPS]  # the mean over seeds; half their range is beside it
        lines.append(f"{line['forecast']:<22}" + "".join(f"{ratio:8.3f}" for ratio in ratios))
    return lines


def main() -> None:
    """Compare one step ahead, then look further."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=19735)
    panel = load(parser.parse_args().rows)
    print(comparison_page.in_words(compare(panel)))
    print("\n".join(ahead(panel)))


if __name__ == "__main__":
    main()
