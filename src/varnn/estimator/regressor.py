"""VARNNRegressor: the scikit-learn contract over data, fitting, prediction, streaming and persistence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import fields
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from varnn.data.panel import Panel
from varnn.data.preparation import Fill, Scale
from varnn.data.weights import in_panel_order
from varnn.errors import DataError
from varnn.estimator import _display, _forecast, _frames, defaults
from varnn.estimator._fit import fit_rows
from varnn.estimator._forecast import Method
from varnn.estimator._settings import checked_details, plain_settings, with_details
from varnn.estimator.contract import Regressor, check_is_fitted
from varnn.estimator.details import NAMES, Details, published
from varnn.estimator.input import RowSeries, RowTime, in_order, panel_of, take_names
from varnn.estimator.looking import Looking
from varnn.estimator.measured import refuse_to_be_measured
from varnn.estimator.r_squared import r_squared
from varnn.model.forecast import Forecast
from varnn.model.intervals import Interval
from varnn.model.prediction import predict, predict_intervals
from varnn.model.warm_start import rows_kept
from varnn.network.cell import Variant
from varnn.persistence import model_file
from varnn.streaming.closed_loop import continue_from_training, say_once, without_labels
from varnn.streaming.resume import Resume
from varnn.streaming.stream import Stream

if TYPE_CHECKING:
    from varnn.fitting import Settings


class VARNNRegressor(_display.Shown, Looking, Regressor):
    """One-step regression whose own recent errors are a learned memory.

    At row t the model sees the inputs x_t, and inputs and labels of the rows before it: it predicts them
    one by one, turns each error into a memory vector, and uses the last memory to predict row t. It is
    trained on windows of ``window`` rows.

    The prediction starts from a linear model of recent labels and inputs, and the network learns what
    that leaves (`linear=True`). Settings of None are chosen from the rows; see "What wins and why" in
    the documentation. :meth:`paper` makes the published model, which has none of this.

    Parameters
    ----------
    variant : {"RM", "RM+AM", "ARM", "ARM+AM"}, default="ARM+AM"
        ARM lets the memory accumulate errors, RM keeps the last one; +AM also hands on the hidden layer.
    window : int or None, default=None
        Rows of a window in training, the last of them predicted. None is 24, less where series are short.
    hidden_size : int, default=64
        Width of the hidden layer.
    epochs : int or None, default=None
        Passes over the training rows; None is enough of them for some thousand steps of Adam.
    learning_rate : float, default=0.004
        Of Adam.
    ensemble : int, default=4
        Members trained from consecutive seeds, whose predictions are averaged.
    linear : bool, default=True
        Start from a linear ARX model, fitted first.
    calendar : {"auto", None} or list of {"day", "week"}, default="auto"
        Time of day and week as inputs, where rows have a time; "auto" takes those that lower the
        validation error of the first member.
    peers : bool, default=False
        Let each row see what the other series of its panel just did; needs ``linear``, and two series.
    adapt : {"constant-gain", None}, default="constant-gain"
        Let linear part, readout and the weights of experts go on learning as the labels of each series
        arrive, when predicting a panel and in a stream alike; None leaves all as trained.
    experts : sequence of {"boosting"}, default=()
        Further experts: "boosting" grows trees (LightGBM) beside the network; needs ``linear``, ``adapt``.
    intervals : bool or str, default=True
        Learn how large errors are, so that predictions can come with intervals; a text names the method.
    horizon : int, default=1
        Rows ahead that :meth:`forecast` can look; above 1, a second network is trained for it.
    known_inputs : list of str or None, default=None
        Inputs that are known in the future, and given to :meth:`forecast`.
    validation_fraction : float, default=0.2
        Last share of each series, held out to choose on; 0 trains on everything, to the last epoch.
    refit : bool, default=True
        Once all is chosen, train again on all rows but those given as ``validation``.
    scale : {"standard", "minmax", "none"}, default="standard"
        Scaling of inputs and target, with statistics of the training rows.
    fill : {"forward", "interpolate", "zero", "none"}, default="forward"
        What stands in for missing inputs. Missing labels are never filled: the memory is held.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where to train; "auto" is the GPU where there is one whose kernel handles the networks, else the CPU.
        Predictions run on NumPy.
    random_state : int, RandomState or None, default=2025
        Seed of weights and batches.
    verbose : int, default=0
        1 prints a line per epoch.
    details : Details or None, default=None
        What is seldom changed: size and kind of the memory, loss, batches, schedule, engine. A search may
        vary them as ``details__patience``.

    Attributes
    ----------
    fitted_ : Fitted
        The trained model, free of torch.
    forecaster_ : Forecaster or None
        What looks ``horizon`` rows ahead; None with a horizon of 1.
    history_ : list of dict
        One line per epoch (and member): epoch, loss, validation_loss, learning_rate, seconds.
    n_features_in_, feature_names_in_ : int, array of str
        Number of inputs, and their names, when they came with some.

    Examples
    --------
    >>> import numpy as np
    >>> from varnn import Details, VARNNRegressor
    >>> generator = np.random.default_rng(0)
    >>> X = generator.normal(size=(400, 2))
    >>> y = X[:, 0] + np.cumsum(generator.normal(size=400)) / 10      # a slow drift no input explains
    >>> model = VARNNRegressor("ARM", hidden_size=32, details=Details(batch_size=16)).fit(X[:300], y[:300])
    >>> model.score(X[300:], y[300:]) > 0.8
    True
    """

    def __init__(
        self,
        variant: Variant = defaults.VARIANT,
        *,
        window: int | None = None,
        hidden_size: int = defaults.HIDDEN_SIZE,
        epochs: int | None = None,
        learning_rate: float = defaults.LEARNING_RATE,
        ensemble: int = defaults.ENSEMBLE,
        linear: bool = True,
        calendar: Literal["auto"] | Sequence[str] | None = "auto",
        peers: bool = False,
        adapt: Literal["constant-gain"] | None = "constant-gain",
        experts: Sequence[str] = (),
        intervals: bool | str = True,
        horizon: int = 1,
        known_inputs: Sequence[str] | None = None,
        validation_fraction: float = defaults.VALIDATION_FRACTION,
        refit: bool = True,
        scale: Scale = "standard",
        fill: Fill = "forward",
        device: str = "auto",
        random_state: int | np.random.RandomState | None = defaults.SEED,
        verbose: int = 0,
        details: Details | None = None,
    ) -> None:
        self.variant = variant
        self.window = window
        self.hidden_size = hidden_size
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.ensemble = ensemble
        self.linear = linear
        self.calendar = calendar
        self.peers = peers
        self.adapt = adapt
        self.experts = experts
        self.intervals = intervals
        self.horizon = horizon
        self.known_inputs = known_inputs
        self.validation_fraction = validation_fraction
        self.refit = refit
        self.scale = scale
        self.fill = fill
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.details = details

    @classmethod
    def paper(cls, variant: Variant = "RM", **changes: Any) -> VARNNRegressor:
        """The published model: window 5, 128 hidden units, memory as wide as the inputs.

        Changes are parameters of the model or fields of its :class:`Details`, by name.

        Examples
        --------
        >>> model = VARNNRegressor.paper("ARM", memory_activation="tanh")
        >>> model.variant, model.window, model.hidden_size, model.linear, model.details.memory_activation
        ('ARM', 5, 128, False, 'tanh')
        """
        return cls(**published(variant, changes))

    def set_params(self, **params: Any) -> VARNNRegressor:
        """Set parameters by name, as scikit-learn does; ``details__patience`` is a field of the details."""
        return super().set_params(**with_details(params, self.get_params()))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name, and those of the details as ``details__patience``."""
        params = super().get_params(deep=False)
        if deep and isinstance(self.details, Details | None):
            params |= {f"details__{name}": one for name, one in self._details.get_params().items()}
        return params

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        series: RowSeries = None,
        time: RowTime = None,
        sample_weight: Any = None,
        validation: Any = None,
        on_epoch: Callable[[dict[str, float]], None] | None = None,
        stop: Event | None = None,
    ) -> VARNNRegressor:
        """Fit the model.

        Parameters
        ----------
        X : Panel, table or array_like
            A :class:`Panel`; a table (pandas, polars, pyarrow, DuckDB, Arrow); or inputs (n_rows, n_inputs).
            None for a stream of labels alone.
        y : array_like, str or None, default=None
            Labels (n_rows,), NaN is missing; or the column of the table that holds them. None with a panel,
            or with a long frame, whose columns ``unique_id``, ``ds`` and ``y`` say what they are.
        series, time : RowSeries, RowTime or None, default=None
            Series and time of each row, or the columns of the table with them. None is one series, and the
            index of a pandas frame where it holds dates. Not given with a panel.
        sample_weight : array_like or None, default=None
            How much the error of each row counts in what is learnt and chosen (`varnn.data.weights`). A row
            of weight 0 still feeds the memory of those after it.
        validation : Panel, table or None, default=None
            Rows to choose on, instead of the last ``validation_fraction`` of each series; a table is read
            as X is.
        on_epoch : callable or None, default=None
            Called after each epoch of every training, from several threads but one at a time, with a line as
            of ``history_``, ``member``, ``horizon``, ``progress``, the share done, ``seconds_left``, a guess,
            and ``stage``, a number of `varnn.fitting.Stage`. A refit's ``validation_loss`` is what its member
            had then at that epoch.
        stop : Event or None, default=None
            Cuts training short once it is set, as Ctrl-C does: what is trained by then is the model, as
            ``fitted_.training.interrupted`` says; if nothing is, a ``TrainingError`` leaves all as it was.
        """
        draft = copy(self)  # what scikit-learn's checks set on the way is not there if the fit fails
        fitted, forecaster = fit_rows(
            draft, X, y, series, time, sample_weight, validation=validation, on_epoch=on_epoch, stop=stop
        )
        self.fitted_, self.forecaster_ = fitted, forecaster
        self.history_ = fitted.training.history
        take_names(self, draft)
        return self

    def predict(
        self,
        X: Any,
        y: Any = None,
        *,
        series: RowSeries = None,
        time: RowTime = None,
        interval: float | Sequence[float] | None = None,
        resume: bool | None = None,
    ) -> Any:
        """Predict every row one step ahead, from labels before that row only; threads may share a model.

        Parameters
        ----------
        X : Panel, table or array_like
            A :class:`Panel`, or a table with the columns of the fit, whose target holds the labels; or inputs
            (n_rows, n_inputs); None for a model without inputs.
        y : array_like, str or None, default=None
            Labels (n_rows,); each is used for rows after its own. Without any, here or in X, rows are taken
            to follow the training rows, in closed loop: each prediction is taken as the label, within the
            range of labels known (`varnn.streaming.closed_loop`). A line says so, once. Scorers of
            scikit-learn call ``predict(X)``, which is refused: `varnn.evaluation.one_step_scorer` measures.
        series, time : RowSeries, RowTime or None, default=None
            Series and time of each row, as in ``fit``.
        interval : float or sequence of float or None, default=None
            Level, or levels, of intervals to give with the predictions, such as 0.9; needs labels.
        resume : bool or None, default=None
            Whether the rows follow the training rows: predictions then start from the last rows of the same
            series, which the model keeps. None goes by the times, if both have some.

        Returns
        -------
        array of shape (n_rows,), or Interval
            In the target's units; for a panel in its own row order, else in the order of X. With
            ``interval``, predictions and bounds: (n_rows,), or (n_rows, n_levels) for several levels.
        """
        panel = self._panel(X, y, series, time)
        if interval is not None:
            found = predict_intervals(self.fitted_, panel, interval, resume=resume)
            return Interval(*(in_order(X, panel, one) for one in found))
        if without_labels(panel):
            refuse_to_be_measured()
            say_once(self.fitted_)
            return in_order(X, panel, continue_from_training(self.fitted_, panel))
        return in_order(X, panel, predict(self.fitted_, panel, resume=resume))

    def predict_frame(
        self,
        frame: _frames.Frame,
        *,
        time: str | Sequence[str] | None = None,
        series: str | None = None,
        interval: float | Sequence[float] | None = None,
        resume: bool | None = None,
    ) -> _frames.Frame:
        """Predict every row of a table by name, and give a table of the same kind: pandas, polars, pyarrow.

        Parameters
        ----------
        frame : Frame
            A table with the model's inputs by name; a lazy one is collected. With its target too, each row
            is predicted from the labels before it; without, as ``predict`` does without labels.
        time, series : str or sequence of str or None, str or None
            Columns with time and series of a row; None are those of the fit, if the table has them.
        interval, resume : float or sequence of float or None, bool or None, default=None
            Levels of intervals, and whether the rows follow the training rows, as in ``predict``.

        Returns
        -------
        table
            The rows of ``frame`` in their order, with its index if it has one: its time, series and target,
            then ``prediction``, and for a level such as 0.9 ``lower_90`` and ``upper_90``.

        Examples
        --------
        >>> import polars
        >>> from varnn import Panel, VARNNRegressor
        >>> house = polars.DataFrame({"heat": range(60), "load": [t % 7 for t in range(60)]})
        >>> model = VARNNRegressor(epochs=1, hidden_size=4).fit(Panel.from_frame(house, target="load"))
        >>> model.predict_frame(house, interval=0.9).columns
        ['load', 'prediction', 'lower_90', 'upper_90']
        """
        check_is_fitted(self)
        return _frames.predict_frame(self, frame, time=time, series=series, interval=interval, resume=resume)

    def forecast(
        self,
        X: Any = None,
        y: Any = None,
        *,
        series: RowSeries = None,
        time: RowTime = None,
        horizon: int | None = None,
        inputs: Any = None,
        interval: float | Sequence[float] | None = None,
        method: Method = "auto",
    ) -> Forecast:
        """Forecast the rows after the end of each series.

        Parameters
        ----------
        X, y, series, time : Panel, table or array_like, array_like, array_like, array_like
            The rows so far, as ``predict`` takes them. None goes on after the rows that were given to
            ``fit``; so does a number, which is the horizon: ``forecast(24)``.
        horizon : int or None, default=None
            Rows ahead; None is the ``horizon`` the model was fitted with.
        inputs : Panel, table, array_like or None, default=None
            Coming inputs: a panel or table with the same series, or an array (H, inputs) for one series and
            (S, H, inputs) for several. With "direct", of the inputs in ``known_inputs``; with
            "iterate" of all inputs, which stay as they were last if none are given.
        interval : float or sequence of float or None, default=None
            Level, or levels, of intervals to give with the forecasts; with "direct" only.
        method : Method, default="auto"
            "direct" asks the network trained for it; "iterate" predicts row after row with the
            one-step model, taking each prediction as the label. "auto" is "direct" where it can be.

        Returns
        -------
        Forecast
            With ``ids``, ``time``, ``prediction`` (S, H), ``lower`` and ``upper``.

        Examples
        --------
        >>> import numpy as np
        >>> from varnn import Panel, VARNNRegressor
        >>> panel = Panel.from_arrays(None, np.sin(np.arange(400) / 4))
        >>> model = VARNNRegressor(horizon=6, hidden_size=8, ensemble=1).fit(panel)
        >>> ahead = model.forecast(horizon=4)
        >>> ahead.prediction.shape
        (1, 4)
        >>> bool(np.abs(ahead.prediction - np.sin(np.arange(400, 404) / 4)).max() < 0.1)
        True
        """
        if horizon is None and isinstance(X, int | np.integer):  # forecast(24)
            X, horizon = None, X
        check_is_fitted(self)
        panel = rows_kept(self.fitted_) if X is None else self._panel(X, y, series, time)
        return _forecast.forecast(
            self.fitted_,
            self.forecaster_,
            panel,
            horizon=horizon,
            inputs=inputs,
            interval=interval,
            method=method,
        )

    def score(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        series: RowSeries = None,
        time: RowTime = None,
        resume: bool | None = None,
    ) -> float:
        """R² of the one-step predictions, over rows whose label is known; as ``predict``."""
        panel = self._panel(X, y, series, time)
        known = ~np.isnan(panel.target)
        if not known.any():
            raise DataError("a score needs labels, and no row has one. Give score(X, y).")
        weights = in_panel_order(X, panel, sample_weight)
        weights = None if weights is None else weights[known]
        predictions = predict(self.fitted_, panel, resume=resume)
        return r_squared(panel.target[known], predictions[known], weights)

    def stream(self, n_series: int | None = None, *, resume: Resume = False) -> Stream:
        """Start predicting and observing one step at a time; see :class:`Stream`.

        Parameters
        ----------
        n_series : int or None, default=None
            None for one series, else so many in step.
        resume : bool, str or sequence of str, default=False
            Start from the last training rows; True where the model keeps as many series, else their names.
        """
        check_is_fitted(self)
        return Stream(self, n_series, resume=resume)

    def save(self, path: str | Path) -> None:
        """Write one ``.varnn`` file; :func:`varnn.load` reads it, with or without torch installed."""
        check_is_fitted(self)
        settings = plain_settings(self.get_params(deep=False))
        model_file.write(path, self.fitted_, settings, self.forecaster_)

    def settings(self) -> Settings:
        """All settings as `varnn.fitting` takes them."""
        from varnn.fitting import Settings

        own = self._details
        values = {one.name: getattr(own if one.name in NAMES else self, one.name) for one in fields(Settings)}
        if isinstance(self.calendar, Sequence) and not isinstance(self.calendar, str):
            values["calendar"] = tuple(self.calendar)
        return Settings(**values)

    @property
    def _details(self) -> Details:
        return checked_details(self.details)

    def _panel(self, X: Any, y: Any, series: RowSeries, time: RowTime) -> Panel:
        """The rows to predict, of a model that is fitted."""
        check_is_fitted(self)
        return panel_of(self, X, y, series, time, fitting=False, target_name=self.fitted_.target_name)
