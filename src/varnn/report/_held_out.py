"""A fitted model and the rows it was fitted to -> rows to judge it on, and the model to judge on them.

By default a model is trained again on all rows, once everything is chosen on the last fifth. Of the model
that comes out of it no row of the table can tell how wrong it is: it has seen them all. But the model as it
was before is still in memory after a fit (``fitted_.before_refit``), and was trained on none of the rows that
were held out: a page of a fit looks at that one. The last one has seen more rows, and errs no more than that.
Where there is no such model, as after loading a file, the page says so.
"""

from dataclasses import dataclass, replace

import numpy as np

from varnn._types import FloatArray
from varnn.data.panel import Panel
from varnn.data.preparation import split_in_time
from varnn.errors import DataError
from varnn.estimator.details import Details
from varnn.estimator.regressor import VARNNRegressor
from varnn.model.fitted import Fitted, last_rows_of
from varnn.model.linear import last_labels
from varnn.model.prediction import predict

_BEFORE = (
    "What is shown is the model before it was trained again on all rows: it had not been trained on these."
)
_CHOSEN = (
    "Settings, epochs and the width of intervals were chosen on these rows, so errors on rows to come may be "
    "somewhat larger; varnn compare measures on rows that no choice has seen."
)
_SEEN = (
    "The model has been trained on these rows, so errors on new ones are larger: give rows it has not seen, "
    "or make the page right after the fit."
)


@dataclass(frozen=True, eq=False, kw_only=True)
class HeldOut:
    """Rows to judge a model on; ``predict`` and ``fitted_`` make it a model of its own.

    Parameters
    ----------
    fitted_ : Fitted
        The model to judge.
    panel : Panel
        The rows.
    resume : bool or None
        Whether they follow the last rows that the model keeps.
    rows : str
        What rows these are, to finish "measured on ...".
    words : str
        What to make of errors on them, a sentence or two.
    unseen : bool
        Whether the model was trained on none of them.
    """

    fitted_: Fitted
    panel: Panel
    resume: bool | None
    rows: str
    words: str
    unseen: bool

    def predict(self, panel: Panel) -> FloatArray:
        """Predict rows of the panel one step ahead."""
        return predict(self.fitted_, panel, resume=self._resume(panel))

    def _resume(self, panel: Panel) -> bool | None:
        """Rows that begin later than those held out follow nothing that is kept."""
        whole = len(panel) == len(self.panel)
        return self.resume if whole else False


def held_out(model: VARNNRegressor, panel: Panel, rows: Panel | None = None) -> HeldOut:
    """Find rows to judge a model on, of those it was fitted to or apart from them.

    Parameters
    ----------
    model : VARNNRegressor
        Fitted.
    panel : Panel
        What was given to ``fit``.
    rows : Panel or None, default=None
        Rows it was not trained on, such as those given to ``fit`` as ``validation``; None takes those that
        ``fit`` held out itself.
    """
    fitted, fraction = model.fitted_, model.validation_fraction
    if rows is not None:
        return HeldOut(
            fitted_=fitted,
            panel=fitted.matched(rows),
            resume=None,
            rows=f"{len(rows):,} rows that were given apart from the training rows",
            words="The model was not trained on these rows.",
            unseen=True,
        )
    most = (model.details or Details()).max_rows
    kept = fitted.matched(panel if most is None else panel.latest(most))
    training, later = split_in_time(kept, 1 - fraction, fraction) if fraction else (kept, kept)
    if not last_labels(later, 0.0)[2][~np.isnan(later.target)].any():
        later = later.between(0, 0)  # no label that has one before it: they tell nothing
    record, before = fitted.training, fitted.before_refit
    if record.trained_on not in (None, len(kept), len(training)):
        raise DataError(
            f"a page of a fit is about the rows it was fitted to, {record.trained_on:,} of them; got "
            f"{len(kept):,}. Give the panel that was given to fit; predict_page shows other rows."
        )
    share = f"the last {100 * fraction:g} % of each series, {len(later):,} rows"
    if fraction and len(later) and before is not None:
        begun = replace(before, last_rows=last_rows_of(training, before.pipeline, max(1, before.reach)))
        return HeldOut(
            fitted_=begun,
            panel=later,
            resume=True,
            rows=f"{share}, which were held out",
            words=f"{_BEFORE} {_CHOSEN}",
            unseen=True,
        )
    if fraction and len(later) and record.refitted_on is None and record.rows == len(training):
        begun = replace(fitted, last_rows=last_rows_of(training, fitted.pipeline, max(1, fitted.reach)))
        return HeldOut(
            fitted_=begun,
            panel=later,
            resume=True,
            rows=f"{share}, which were held out",
            words=f"The model was not trained on these rows. {_CHOSEN}",
            unseen=True,
        )
    some = share if fraction and len(later) else f"all {len(kept):,} rows"
    return HeldOut(
        fitted_=fitted,
        panel=later if len(later) else kept,
        resume=False,
        rows=f"{some}, which the model was trained on",
        words=_SEEN,
        unseen=False,
    )
