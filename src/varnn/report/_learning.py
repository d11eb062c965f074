"""How a model was trained -> its learning curve on a page, with a word on what looks odd."""

from collections.abc import Mapping, Sequence

from varnn.estimator.regressor import VARNNRegressor
from varnn.report import figures
from varnn.report.page import Report

_WHAT = (
    "Training and validation error by epoch, a pair of lines for each member of the ensemble. Dots: the "
    "epochs whose weights were kept."
)
_BELOW = (
    " Validation lies below training, which is no mistake: training error is a mean over the epoch, taken on "
    "windows of training rows while the weights still move, validation error that of its end; and validation "
    "rows may be the easier ones."
)


def add_learning_curve(report: Report, model: VARNNRegressor) -> None:
    """Add training and validation error by epoch, where they are known."""
    if model.history_:
        kept = model.fitted_.training.best_epoch
        report.add_figure(
            "Learning curve",
            figures.learning_curve(model.history_, best_epochs=kept, width=figures.NARROW),
            _WHAT + (_BELOW if validation_below(model.history_) else ""),
        )


def validation_below(history: Sequence[Mapping[str, float]]) -> bool:
    """Tell whether validation error ends below training error, in most members.

    Examples
    --------
    >>> validation_below([{"epoch": 1, "loss": 0.5, "validation_loss": 0.4}])
    True
    """
    last = {line.get("member", 0): line for line in history}  # of each member
    below = [line["validation_loss"] < line["loss"] for line in last.values() if "validation_loss" in line]
    return 2 * sum(below) > len(below)
