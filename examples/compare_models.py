"""Baselines, VARNN and a model of your own, judged alike: python examples/compare_models.py [--rows 3000]."""

import argparse

import numpy as np
import numpy.typing as npt

from varnn import Panel, datasets, evaluation
from varnn.report import comparison_page


class MeanOfLastLabels:
    """A model of your own needs two methods; it may look at labels before the row, and at none after."""

    def __init__(self, labels: int) -> None:
        self.labels = labels

    def fit(self, panel: Panel, *, validation: Panel | None = None) -> "MeanOfLastLabels":
        """Learn what to say before there is a label."""
        self.start = float(np.nanmean(panel.target))
        return self

    def predict(self, panel: Panel) -> npt.NDArray[np.float64]:
        """Average the last labels of each row's own series."""
        rows = np.arange(len(panel))
        first = np.maximum(rows - self.labels, panel.first_rows)
        recent = [panel.target[start:row] for start, row in zip(first, rows, strict=True)]
        return np.array([labels.mean() if len(labels) else self.start for labels in recent])


def main() -> None:
    """Fit, choose and score under the honest protocol; print a table and what it says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--kind", default="regimes", help="which trouble the stream has")
    chosen = parser.parse_args()
    panel = datasets.load("synthetic", kind=chosen.kind, rows=chosen.rows, seed=1)
    result = evaluation.compare(
        panel,
        ["persistence", "arx-lr", "narx-gbm", "varnn", ("mean of 3", lambda seed: MeanOfLastLabels(3))],
        seeds=1,
    )
    for line in result.rows():
        print(f"{line['model']:<12} RMSE {line['rmse']:.3f}  skill over persistence {line['skill']:6.1%}")
    print(comparison_page.in_words(result))


if __name__ == "__main__":
    main()
