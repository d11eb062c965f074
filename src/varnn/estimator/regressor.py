"""VARNNRegressor: the scikit-learn contract over panel -> preparation -> training -> fitted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from varnn._types import FloatArray
from varnn.data.panel import Panel, default_names
from varnn.data.preparation import Fill, Scale, split_in_time
from varnn.errors import DataError, require
from varnn.estimator._exchange import ExchangeMixin
from varnn.estimator._forecast import ForecastMixin
from varnn.estimator._history import print_epoch
from varnn.estimator._settings import check_settings, plain_settings, settings_of_file
from varnn.estimator.input import (
    RowSeries,
    check_fit_arguments,
    latest_rows,
    panel_from,
    row_weights,
    warn_of_little,
)
from varnn.model.forecast.rows import columns_of, refuse_too_far
from varnn.model.intervals import Interval, check_levels
from varnn.network.cell import MemoryActivation, Residual, Variant
from varnn.persistence import card, model_file
from varnn.streaming.closed_loop import continue_from_training, say_once
from varnn.streaming.stream import Stream

if TYPE_CHECKING:
    from varnn.fitting import Settings
    from varnn.monitoring.diagnostics import Diagnosis


class VARNNRegressor(ForecastMixin, ExchangeMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """One-step regression whose own recent errors are a learned memory.

    At row t the model sees the inputs x_t, and inputs and labels of the ``window - 1`` rows before
    it. It predicts those rows one by one, turns each error into a memory vector, and uses the last
    memory to predict row t.

    The prediction starts from a linear model of recent labels and inputs, and the network learns what
    that leaves (`linear=True`). Settings of None are chosen from the rows; see "What wins and why" in
    the documentation. :meth:`paper` makes the published model, which has none of this.

    Parameters
    ----------
    variant : {"RM", "RM+AM", "ARM", "ARM+AM"}
        ARM lets the memory accumulate errors, RM keeps the last one; +AM also hands on the hidden
        layer.
    window : int or None
        Rows one prediction sees, itself included. None is 24, less where series are short.
    loss rows : int or None
        Rows at the end of a training window whose errors are learned from. The paper grades the last
        one; None grades the second half, which learns nearly as much from a tenth of the windows.
    hidden_size, memory_size : int
        Width of the hidden layer and of the residual memory. A memory of None is as wide as the
        inputs, but at least 8.
    memory_activation : {"relu", "tanh"}
        Nonlinearity of the memory.
    residual : {"projected", "scalar", "none"}
        The paper's memory, or one of its ablations.
    epochs, batch_size : int or None
        Passes over the training rows and windows in a batch; None is enough of them for some thousand
        steps of Adam.
    max_rows : int or None
        Latest rows to learn from, about so many over all series: more would cost memory and time for
        little. None takes all of them.
    learning_rate, schedule
        Of Adam; the schedule is "constant" or "cosine" (down to zero).
    validation_fraction : float
        Last share of each series, held out to choose on; 0 trains on everything and keeps the last
        epoch.
    patience : int or None
        Epochs without a better validation loss after which training ends; None never ends early.
    weight average : float
        Share that a running mean of the weights keeps with each step; the mean is what is judged and
        kept. 0 keeps the weights themselves.
    refit : bool
        Once everything is chosen, train again on all rows, those held out by ``validation_fraction``
        too. Rows given as ``validation`` are never trained on.
    ensemble : int
        Members trained from consecutive seeds, whose predictions are averaged.
    linear : bool
        Start from a linear ARX model, fitted first.
    calendar : {"auto", None} or list of {"day", "week"}
        Time of day and week as inputs, where rows have a time; "auto" takes those that lower the
        validation error of the first member.
    peers : bool
        Let each row see what the other series of its panel just did; needs ``linear``.
    adapt : {"constant-gain", None}
        Let the readout of each series go on learning as its labels arrive, when predicting a panel and
        in a stream alike; None leaves it as trained.
    forgetting : float or "auto"
        Weight that a label keeps with each one after it, from 0.9 to below 1; "auto" chooses on the
        validation rows.
    intervals : bool
        Learn how large errors are, so that predictions can come with intervals.
    horizon : int
        Rows ahead that :meth:`forecast` can look; above 1, a second network is trained for it.
    known_inputs : list of str or None
        Inputs that are known in the future, and given to :meth:`forecast`.
    scale : {"standard", "minmax", "none"}
        Scaling of inputs and target, with statistics of the training rows.
    fill : {"forward", "interpolate", "zero", "none"}
        What stands in for missing inputs. Missing labels are never filled: the memory is held.
    device : {"auto", "cpu", "cuda"}
        Where to train; "auto" is the CPU, which is faster for networks this small. Predictions run on
        NumPy.
    random_state : int, RandomState or None
        Seed of weights and batches.
    verbose : int
        1 prints a line per epoch.
    gradient_clip : float or None
        Longest gradient allowed.
    engine : {"auto", "reference", "fused", "compiled"}
        How gradients are computed: ``"auto"`` takes the fastest that handles the network and is installed;
        ``"reference"`` is the readable one. They agree to rounding. One that is asked for by name and does
        not handle the network is an error.

    Attributes
    ----------
    fitted_ : Fitted
        The trained model, free of torch.
    forecaster_ : Forecaster or None
        What looks ``horizon`` rows ahead; None with a horizon of 1.
    history_ : list of dict
        One line per epoch (and member): epoch, loss, validation_loss, learning_rate, seconds.
    n_features_in_ : int
        Number of inputs.
    feature_names_in_ : array of str
        Names of the inputs, when they came with names.

    Examples
    --------
    >>> import numpy as np
    >>> from varnn import VARNNRegressor
    >>> generator = np.random.default_rng(0)
    >>> X = generator.normal(size=(400, 2))
    >>> y = X[:, 0] + np.cumsum(generator.normal(size=400)) / 10      # a slow drift no input explains
    >>> model = VARNNRegressor("ARM", hidden_size=32, batch_size=16).fit(X[:300], y[:300])
    >>> model.score(X[300:], y[300:]) > 0.8
    True
    """

    def __init__(
        self,
        variant: Variant = "ARM+AM",
        *,
        window: int | None = None,
        loss_rows: int | None = None,
        hidden_size: int = 64,
        memory_size: int | None = 48,
        memory_activation: MemoryActivation = "relu",
        residual: Residual = "projected",
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float = 4e-3,
        schedule: Literal["constant", "cosine"] = "cosine",
        max_rows: int | None = 2_000_000,
        validation_fraction: float = 0.2,
        patience: int | None = 8,
        weight_ema: float = 0.99,
        refit: bool = True,
        ensemble: int = 4,
        linear: bool = True,
        calendar: Literal["auto"] | Sequence[str] | None = "auto",
        peers: bool = False,
        adapt: Literal["constant-gain"] | None = "constant-gain",
        forgetting: float | Literal["auto"] = "auto",
        intervals: bool = True,
        horizon: int = 1,
        known_inputs: Sequence[str] | None = None,
        scale: Scale = "standard",
        fill: Fill = "forward",
        device: str = "auto",
        random_state: int | np.random.RandomState | None = 2025,
        verbose: int = 0,
        gradient_clip: float | None = 1.0,
        engine: str = "auto",
    ) -> None:
        self.variant = variant
        self.window = window
        self.loss_rows = loss_rows
        self.hidden_size = hidden_size
        self.memory_size = memory_size
        self.memory_activation = memory_activation
        self.residual = residual
        self.epochs = epochs
        self.max_rows = max_rows
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.weight_ema = weight_ema
        self.refit = refit
        self.ensemble = ensemble
        self.linear = linear
        self.calendar = calendar
        self.peers = peers
        self.adapt = adapt
        self.forgetting = forgetting
        self.intervals = intervals
        self.horizon = horizon
        self.known_inputs = known_inputs
        self.scale = scale
        self.fill = fill
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.gradient_clip = gradient_clip
        self.engine = engine

    @classmethod
    def paper(cls, variant: Variant = "RM", **changes: Any) -> VARNNRegressor:
        """Make a model with the paper's settings: window 5, 128 hidden, memory as wide as the inputs.

        Examples
        --------
        >>> model = VARNNRegressor.paper("ARM")
        >>> model.variant, model.window, model.hidden_size, model.linear
        ('ARM', 5, 128, False)
        """
        published: dict[str, Any] = {
            "variant": variant,
            "window": 5,
            "loss_rows": 1,
            "hidden_size": 128,
            "memory_size": None,
            "epochs": 50,
            "max_rows": None,
            "batch_size": 128,
            "learning_rate": 3e-3,
            "schedule": "constant",
            "patience": 50,
            "weight_ema": 0.0,
            "refit": False,
            "ensemble": 1,
            "linear": False,
            "calendar": None,
            "adapt": None,
            "intervals": False,
            "scale": "minmax",
            "gradient_clip": None,
        }
        return cls(**{**published, **changes})

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        series: RowSeries = None,
        validation: Panel | None = None,
        on_epoch: Callable[[dict[str, float]], None] | None = None,
        stop: Event | None = None,
    ) -> VARNNRegressor:
        """Fit the model.

        Parameters
        ----------
        X
            A :class:`Panel`, or inputs of shape (n_rows, n_inputs) with labels in ``y``; None for a stream
            of labels alone.
        y
            Labels (n_rows,); NaN is missing. Not given with a panel.
        series
            Series of each row; None means one series. Not given with a panel.
        validation
            Rows to pick the best epoch on, instead of the last ``validation_fraction`` of each series.
        on_epoch
            Called after each epoch with its line of ``history_``.
        stop
            Cuts training short once it is set, as Ctrl-C does: what is trained by then is the model, and
            ``fitted_.summary["interrupted"]`` says so.
        """
        check_settings(self.get_params(deep=False))
        check_fit_arguments(validation, on_epoch)
        panel = latest_rows(self._panel(X, y, series, fitting=True), self.max_rows)
        if validation is None:
            share = self.validation_fraction
            training, validation = split_in_time(panel, 1 - share, share) if share else (panel, None)
            if len(training) == 0:
                raise DataError(
                    f"the data are too short to split: n_samples = {len(panel)}, and validation_fraction = "
                    f"{share} leaves no row to train on. Give more rows, or validation_fraction=0."
                )
        else:
            share, training, validation = 0.0, panel, latest_rows(validation, self.max_rows)
        warn_of_little(training, validation)
        refuse_too_far(training, self.horizon, share)
        columns_of(training, self.known_inputs or ())  # refuses names that are not there
        self._train(panel, training, validation, on_epoch, stop)
        return self

    def predict(
        self,
        X: Any,
        y: Any = None,
        *,
        series: RowSeries = None,
        interval: float | Sequence[float] | None = None,
    ) -> Any:
        """Predict every row one step ahead, from labels before that row only; threads may share a model.

        Parameters
        ----------
        X
            A :class:`Panel`, whose target holds the labels; or inputs (n_rows, n_inputs); None for a model
            without inputs.
        y
            Labels (n_rows,); each is used for rows after its own. Without any, the rows are taken
            to follow the training rows, and are predicted in closed loop: each prediction is taken as
            the label, within the range of labels known (see `varnn.streaming.closed_loop`). A line says so,
            once: scorers of scikit-learn call ``predict(X)``, and measure just that.
            :func:`varnn.evaluation.one_step_scorer` and ``score`` measure one step ahead.
        series
            Series of each row.
        interval
            Level, or levels, of intervals to give with the predictions, such as 0.9; needs labels.

        Returns
        -------
        array of shape (n_rows,), or Interval
            In the target's units; for a panel in its own row order, else in the order of X. With
            ``interval``, predictions and bounds: (n_rows,), or (n_rows, n_levels) for several levels.
        """
        check_is_fitted(self, "fitted_")
        panel = self._panel(X, y, series, fitting=False)
        if interval is not None:
            return self._predict_intervals(panel, interval, in_panel_order=isinstance(X, Panel))
        if isinstance(X, Panel):
            return self.fitted_.predict(panel)
        if y is None:
            say_once(self.fitted_)
            return panel.in_caller_order(continue_from_training(self.fitted_, panel))
        return panel.in_caller_order(self.fitted_.predict(panel))

    def _predict_intervals(
        self, panel: Panel, interval: float | Sequence[float], *, in_panel_order: bool
    ) -> Interval:
        levels = check_levels(interval)
        if np.isnan(panel.target).all():
            raise DataError(
                "an interval is made from the errors before it, so rows need labels; they have none. "
                "Give predict(X, y, interval=...)."
            )
        found = self.fitted_.predict_intervals(panel, levels)
        if not isinstance(interval, Sequence | np.ndarray):
            found = Interval(found.prediction, found.lower[:, 0], found.upper[:, 0])
        return found if in_panel_order else Interval(*(panel.in_caller_order(one) for one in found))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, *, series: RowSeries = None) -> float:
        """Give R² of the one-step predictions, over rows whose label is known."""
        check_is_fitted(self, "fitted_")
        panel = self._panel(X, y, series, fitting=False)
        known = ~np.isnan(panel.target)
        if not known.any():
            raise DataError("a score needs labels, and no row has one. Give score(X, y).")
        weights = row_weights(sample_weight, len(panel))
        weights = None if weights is None else weights[panel.rows][known]
        predictions = self.fitted_.predict(panel)
        return float(r2_score(panel.target[known], predictions[known], sample_weight=weights))

    def innovations(self, X: Any, y: Any = None) -> FloatArray:
        """Give label minus one-step prediction for every row, NaN where the label is missing."""
        check_is_fitted(self, "fitted_")
        panel = self._panel(X, y, None, fitting=False)
        return np.asarray(panel.target - self.fitted_.predict(panel))

    def memory(self, X: Any, y: Any = None) -> npt.NDArray[np.float32]:
        """Give the residual memory each row was predicted with, (n_rows, ensemble * memory_size)."""
        check_is_fitted(self, "fitted_")
        return self.fitted_.memory(self._panel(X, y, None, fitting=False))

    def diagnose(self, X: Any, y: Any = None) -> Diagnosis:
        """Say what the innovations still hold, where they changed, and whether intervals held."""
        from varnn.monitoring.diagnostics import PredictionTrace, diagnose_trace

        check_is_fitted(self, "fitted_")
        return diagnose_trace(PredictionTrace.of(self.fitted_, self._panel(X, y, None, fitting=False)))

    def stream(self, n_series: int | None = None) -> Stream:
        """Start predicting and observing one step at a time; see :class:`Stream`."""
        check_is_fitted(self, "fitted_")
        return Stream(self, n_series)

    def save(self, path: str | Path) -> None:
        """Write one ``.varnn`` file; :func:`varnn.load` reads it, with or without torch installed."""
        check_is_fitted(self, "fitted_")
        settings = plain_settings(self.get_params(deep=False))
        model_file.write(path, self.fitted_, settings, self.forecaster_)

    def _train(
        self,
        panel: Panel,
        training: Panel,
        validation: Panel | None,
        on_epoch: Callable[[dict[str, float]], None] | None,
        stop: Event | None,
    ) -> None:
        require("torch", extra="train", purpose="training")
        from varnn import fitting

        seed = self.random_state
        if not isinstance(seed, int | np.integer):
            seed = int(check_random_state(seed).randint(2**31 - 1))

        def report(line: dict[str, float]) -> None:
            if self.verbose:
                print_epoch(line)
            if on_epoch is not None:
                on_epoch(line)

        self.fitted_, self.forecaster_ = fitting.fit_in_stages(
            self.settings(),
            training,
            None if validation is None or len(validation) == 0 else validation,
            rows=panel,
            again=self.refit and validation is not None and len(panel) > len(training),
            horizon=self.horizon,
            known=self.known_inputs or (),
            seed=int(seed),
            on_epoch=report,
            stop=stop,
        )
        self.fitted_.summary["period"] = card.period(panel.time)
        if panel.read_as:
            self.fitted_.summary["reading"] = dict(panel.read_as)
        self.history_ = self.fitted_.summary["history"]
        self.n_features_in_ = panel.n_inputs

    def settings(self) -> Settings:
        """Give the settings that fitting needs; see `varnn.fitting`."""
        from varnn.fitting import Settings

        names = [field.name for field in fields(Settings)]
        values = {name: getattr(self, name) for name in names}
        if isinstance(self.calendar, Sequence) and not isinstance(self.calendar, str):
            values["calendar"] = tuple(self.calendar)
        return Settings(**values)

    def _panel(self, X: Any, y: Any, series: RowSeries, *, fitting: bool) -> Panel:
        if isinstance(X, Panel):
            if y is not None or series is not None:
                raise DataError(
                    "a Panel holds labels and series already; give it alone, without y or series."
                )
            if fitting:
                self._set_names(X.input_names)
            return X
        target = "y" if fitting else self.fitted_.target_name
        return panel_from(self, X, y, series, fitting=fitting, target_name=target)

    def _set_names(self, names: Sequence[str]) -> None:
        """Keep names as scikit-learn does: only when the inputs came with some."""
        self.__dict__.pop("feature_names_in_", None)
        if tuple(names) != default_names(len(names)):
            self.feature_names_in_ = np.asarray(names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def load(path: str | Path) -> VARNNRegressor:
    """Read a model written by :meth:`VARNNRegressor.save`; torch is not needed to predict with it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import varnn
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = varnn.VARNNRegressor(epochs=1, hidden_size=4).fit(X, X[:, 0])
    >>> path = pathlib.Path(tempfile.mkdtemp(), "house.varnn")
    >>> model.save(path)
    >>> bool((varnn.load(path).predict(X, X[:, 0]) == model.predict(X, X[:, 0])).all())
    True
    """
    fitted, settings, forecaster = model_file.read(path)
    model = VARNNRegressor(**settings_of_file(settings, VARNNRegressor().get_params(deep=False), path))
    model.fitted_, model.forecaster_ = fitted, forecaster
    model.history_ = fitted.summary.get("history", [])
    model.n_features_in_ = len(fitted.input_names)
    model._set_names(fitted.input_names)
    return model
