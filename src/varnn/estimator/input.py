"""X and y as scikit-learn hands them over -> Panel, with the checks and messages its contract asks for."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

from varnn._types import FloatArray
from varnn.data.categories import source_columns
from varnn.data.constant import constant_target
from varnn.data.names import default_names
from varnn.data.odd_input import plain_frame
from varnn.data.panel import Panel, from_columns
from varnn.data.preparation import split_in_time
from varnn.data.rules import shown
from varnn.errors import ConfigError, DataError, RowError
from varnn.estimator._checks import checked_inputs, checked_labels
from varnn.estimator._settings import check_settings
from varnn.estimator._tables import held, name_of, panel_by_name, said_of_times, with_index

logger = logging.getLogger(__name__)

FEW = 20  # labels: with fewer, what a fit gives means little
_told: "WeakSet[Panel]" = (
    WeakSet()
)  # of which it was said that nothing is to be learnt: once, not once a seed

_A_TIME = "Drop it, or say that it is the time of the rows: fit(frame, y, time=...)."
RowSeries = Iterable[object] | None  # the series of each row, or the name of a column; None: there is one
RowTime = Iterable[object] | None  # the time of each row, or names of columns; None: none, or an index


def panel_of(
    estimator: Any,
    X: Any,
    y: Any = None,
    series: RowSeries = None,
    time: RowTime = None,
    *,
    fitting: bool,
    target_name: str = "y",
) -> Panel:
    """Take a panel as it is, and make one of a table, or of inputs and labels; fitting, names are kept."""
    if not isinstance(X, Panel):
        X = held(X)
        fitted = None if fitting else estimator.fitted_
        if fitting and (name := name_of(y)) not in (None, *getattr(X, "columns", ())):
            target_name = str(name)
        try:
            named = panel_by_name(X, y, series, time, labels=_labels, fitted=fitted)
            if named is None:
                given = with_index(X, y, series, time)
                return panel_from(estimator, *given, fitting=fitting, target_name=target_name)
        except RowError as error:
            raise DataError(f"{error}{said_of_times(error)}") from None
        return panel_of(estimator, named, fitting=fitting)
    if y is not None or series is not None or time is not None:
        raise DataError("a Panel holds labels, series and times already; give it alone, without these.")
    if fitting:
        keep_names(estimator, X.input_names)
        estimator.n_features_in_ = X.n_inputs
    return X


def keep_names(estimator: Any, names: Sequence[str]) -> None:
    """Keep names of inputs as scikit-learn does: only when the inputs came with some."""
    estimator.__dict__.pop("feature_names_in_", None)
    if tuple(names) != default_names(len(names)):
        estimator.feature_names_in_ = np.asarray(names, dtype=object)


def take_names(estimator: Any, draft: Any) -> None:
    """Take number and names of inputs over from a copy that was given rows."""
    estimator.__dict__.pop("feature_names_in_", None)
    names = ("n_features_in_", "feature_names_in_")
    estimator.__dict__ |= {name: draft.__dict__[name] for name in names if name in draft.__dict__}


def panel_from(
    estimator: Any,
    X: Any,
    y: Any,
    series: RowSeries,
    time: RowTime,
    *,
    fitting: bool,
    target_name: str = "y",
) -> Panel:
    """Check arrays or a table of inputs, and their labels; fitting, the estimator keeps their names.

    Parameters
    ----------
    estimator : estimator
        Whose ``n_features_in_`` and ``feature_names_in_`` are set, or must be met.
    X, y, series, time : Panel or array_like, array_like, array_like, array_like
        Inputs (n_rows, n_inputs), labels (n_rows,) or None, and series and time of each row or None.
    fitting : bool
        Whether this is a call of ``fit``, which needs labels.
    target_name : str, default="y"
        What the labels are called.
    """
    if fitting and y is None:
        raise DataError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None. "
            "Give fit(X, y); a frame and the name of its column, fit(frame, 'load'); a Panel; or, for labels "
            "alone, fit(None, y)."
        )
    if X is None:
        labels = _labels_alone(estimator, y, fitting=fitting)
        return Panel.from_arrays(None, labels, series=series, time=time, target_name=target_name)
    X = _without_dates(X)
    table = _table_of_texts(estimator, X, fitting=fitting)
    if table is not None:
        labels = np.full(len(table), np.nan) if y is None else _labels(y, len(table))
        named = {"series": series, "time": time, "target_name": target_name}
        return _with_labels(estimator, table, labels, named, fitting=fitting)
    checked = checked_inputs(estimator, X, fitting=fitting)
    names = getattr(estimator, "feature_names_in_", None)
    return Panel.from_arrays(
        checked,
        None if y is None else _labels(y, len(checked)),
        series=series,
        time=time,
        input_names=None if names is None else [str(one) for one in names],
        target_name=target_name,
    )


def _labels_alone(estimator: Any, y: Any, *, fitting: bool) -> FloatArray:
    """Read labels without inputs; the estimator must have been fitted so, too."""
    if y is None:
        raise DataError(
            "without inputs there must be labels, and both X and y are None. Give predict(None, y) with the "
            "labels so far; forecast(horizon=...) goes on after the training rows."
        )
    if fitting:
        estimator.__dict__.pop("feature_names_in_", None)
        estimator.n_features_in_ = 0
    elif estimator.n_features_in_:
        raise DataError(
            f"the model was fitted on {estimator.n_features_in_} inputs, and X is None. Give X with as many "
            "columns."
        )
    return _labels(y)


def _without_dates(X: Any) -> Any:
    """Refuse times among the inputs by name."""
    if not hasattr(type(X), "columns"):  # no table
        if getattr(getattr(X, "dtype", None), "kind", None) in ("m", "M"):
            raise DataError(f"inputs must be numbers; X holds {X.dtype}. {_A_TIME}")
        return X
    import narwhals as nw

    table = nw.from_native(plain_frame(X), pass_through=True)
    if isinstance(table, nw.DataFrame):
        dates = [name for name, kind in table.schema.items() if kind.is_temporal()]
        if dates:
            raise DataError(f"inputs must be numbers; column {dates[0]!r} of X holds times. {_A_TIME}")
    return X


def _table_of_texts(estimator: Any, X: Any, *, fitting: bool) -> Panel | None:
    """Read a frame with texts among its inputs; None if it has none, or the model knows of none."""
    if not hasattr(type(X), "columns"):
        return None
    known = None if fitting else getattr(estimator.fitted_, "categories", {})
    if not fitting and not known:
        return None
    from varnn.data.tables import Reading, columns_of, holds_texts

    columns = columns_of(X)
    if known:
        names = source_columns(estimator.fitted_.input_names, known)
        return from_columns(columns, Reading(target=None, inputs=names, categories=known))
    return from_columns(columns, Reading(target=None)).logged() if holds_texts(columns) else None


def _with_labels(
    estimator: Any, table: Panel, labels: FloatArray, named: dict[str, Any], *, fitting: bool
) -> Panel:
    """Give rows of a frame their labels, series and times; fitting, the estimator keeps names of inputs."""
    panel = Panel.from_arrays(table.inputs, labels, input_names=table.input_names, **named)
    texts = None if table.texts is None else table.texts.at(panel.rows)
    return panel_of(estimator, replace(panel, texts=texts, categories=table.categories), fitting=fitting)


def _labels(y: Any, n_rows: int | None = None) -> FloatArray:
    """Read labels as scikit-learn does: a column is flattened, infinity is refused, NaN is missing."""
    flat = checked_labels(y)
    if n_rows is not None and len(flat) != n_rows:
        raise DataError(f"X and y must have the same number of rows; got {n_rows} and {len(flat)}.")
    return flat


def warn_of_little(training: Panel, validation: Panel | None) -> None:
    """Say what a fit is worth where labels are all alike, or too few to choose on.

    Examples
    --------
    >>> warn_of_little(Panel.from_arrays(None, range(200)), Panel.from_arrays(None, range(50)))
    """
    held_out = 0 if validation is None else int(np.count_nonzero(~np.isnan(validation.target)))
    labels = training.target[~np.isnan(training.target)]
    every = len(labels) + held_out
    if (alike := constant_target(training)) is not None:
        if training not in _told:
            logger.warning("%s.", alike)
        _told.add(training)
    elif every < FEW:
        logger.warning("trained on %d labels in all: with fewer than %d, do not rely on it.", every, FEW)
    elif validation is not None and held_out < FEW:
        logger.warning(
            "of %d labels, %d are there to choose on: what is chosen on fewer than %d may be chosen by "
            "chance, and intervals are guesses.",
            every,
            held_out,
            FEW,
        )


def check_fit_arguments(validation: Any, on_epoch: Any, stop: Any) -> None:
    """Refuse what ``fit`` cannot use beside its rows."""
    if validation is not None and not isinstance(validation, Panel):
        raise DataError(
            f"validation must be a Panel, or a table; got {type(validation).__name__}. See Panel.from_arrays."
        )
    if on_epoch is not None and not callable(on_epoch):
        raise ConfigError(f"on_epoch must be a function of one line of history; got {shown(on_epoch)}.")
    if stop is not None and not callable(getattr(stop, "is_set", None)):
        raise ConfigError(f"stop must be an event, such as threading.Event(); got {shown(stop)}.")


def check_parameters(estimator: Any) -> None:
    """Refuse an estimator whose settings no fit would take, before any rows are there."""
    check_settings(estimator.get_params(deep=False))


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
        "looking at the latest %s of %s rows: Details(max_rows=...) takes more.",
        f"{len(kept):,}",
        f"{len(panel):,}",
    )
    return kept


def split_or_take(
    panel: Panel, validation: Panel | None, fraction: float, most: int | None
) -> tuple[Panel, Panel | None]:
    """Rows to train on, and to choose on: those given, or the last fraction of each series; None if none."""
    if validation is not None:
        matched = validation.with_inputs(panel.input_names, "the validation rows")
        later = latest_rows(matched, most)
        return panel, later if len(later) else None
    if not fraction:
        return panel, None
    training, later = split_in_time(panel, 1 - fraction, fraction)
    if len(training) == 0:
        raise DataError(
            f"the data are too short to split: n_samples = {len(panel)}, and validation_fraction = "
            f"{fraction} leaves no row to train on. Give more rows, or validation_fraction=0."
        )
    return training, later if len(later) else None


def seed_of(random_state: int | np.random.RandomState | None) -> int:
    """A seed, drawn from a generator where one is given."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    generator = np.random if random_state is None else random_state  # None: as scikit-learn has it
    return int(generator.randint(2**31 - 1))


def in_order(X: Any, panel: Panel, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Values of rows as the rows came: those of a panel in its own order, others in that of X."""
    return values if isinstance(X, Panel) else panel.in_caller_order(values)
