"""X and y as scikit-learn hands them over -> Panel, with the checks and messages its contract asks for."""

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import validate_data

from varnn.errors import DataError
from varnn.panel import FloatArray, Panel

logger = logging.getLogger(__name__)

RowSeries = Sequence[object] | npt.NDArray[Any] | None  # the series of each row; None: there is one


def panel_from(
    estimator: Any,
    X: Any,
    y: Any,
    series: RowSeries,
    *,
    fitting: bool,
    target_name: str = "y",
) -> Panel:
    """Check arrays or a table of inputs, and their labels; fitting, the estimator keeps their names.

    Parameters
    ----------
    estimator
        Whose ``n_features_in_`` and ``feature_names_in_`` are set, or must be met.
    X, y, series
        Inputs (n_rows, n_inputs), labels (n_rows,) or None, and the series of each row or None.
    fitting
        Whether this is a call of ``fit``, which needs labels.
    target_name
        What the labels are called.
    """
    if fitting and y is None:
        raise DataError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None. "
            "Give fit(X, y), or a Panel."
        )
    try:
        checked = validate_data(
            estimator, X, reset=fitting, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan"
        )
    except ValueError as error:
        raise DataError(str(error)) from None
    names = getattr(estimator, "feature_names_in_", None)
    return Panel.from_arrays(
        checked,
        None if y is None else _labels(y, len(checked)),
        series=series,
        input_names=None if names is None else [str(one) for one in names],
        target_name=target_name,
    )


def _labels(y: Any, n_rows: int) -> FloatArray:
    """Read labels as scikit-learn does: a column is flattened, infinity is refused, NaN is missing."""
    try:
        labels = check_array(
            y, ensure_2d=False, dtype=np.float64, ensure_all_finite="allow-nan", input_name="y"
        )
        flat: FloatArray = column_or_1d(labels, warn=True)
    except ValueError as error:
        raise DataError(str(error)) from None
    if len(flat) != n_rows:
        raise DataError(f"X and y must have the same number of rows; got {n_rows} and {len(flat)}.")
    return flat


def latest_rows(panel: Panel, most: int | None) -> Panel:
    """Keep the rows to look at, and say so where they are not all.

    Examples
    --------
    >>> latest_rows(Panel.from_arrays(None, range(5)), most=2).target.tolist()
    [3.0, 4.0]
    """
    if most is None or len(panel) <= most:
        return panel
    kept = panel.latest(most)
    logger.warning(
        "looking at the latest %s of %s rows: max_rows takes more.",
        f"{len(kept):,}",
        f"{len(panel):,}",
    )
    return kept
