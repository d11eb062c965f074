"""The paper's network as a Keras 3 layer, for models that are built in Keras; needs ``varnn[keras]``.

Panel -> windows -> model.fit -> to_regressor, or a network trained here -> from_regressor. Written in
``keras.ops`` and operators that TensorFlow, JAX and torch share (``@``, as ``ops.matmul`` rounds doubles to
float32 on two of them), so it runs on all three; its oracle is `varnn.network.cell`.
"""

from typing import Any, cast

import numpy as np

from varnn._types import FloatArray
from varnn.data.panel import Panel
from varnn.data.preparation import Scale
from varnn.data.windows import rows_of, training_ends
from varnn.errors import ConfigError, DataError, MissingExtraError, require
from varnn.estimator.contract import check_is_fitted
from varnn.estimator.input import keep_names
from varnn.estimator.regressor import VARNNRegressor
from varnn.model.fitted import Fitted, last_rows_of
from varnn.model.pipeline import FeaturePipeline
from varnn.model.training_record import TrainingRecord
from varnn.network.cell import Architecture, MemoryActivation, Variant, Weights

try:
    keras: Any = require("keras", extra="keras", purpose="varnn.paper.keras")
except ModuleNotFoundError as error:
    raise MissingExtraError(
        f"Keras is set to a backend that needs {error.name!r}, which is not installed. Set the environment "
        "variable KERAS_BACKEND to tensorflow, jax or torch, one that is, before anything imports keras."
    ) from error


@keras.saving.register_keras_serializable(package="varnn")
class VARNN(keras.layers.Layer):  # type: ignore[misc]  # Keras ships no types
    """Variability-Aware Recursive Neural Network of one window: a predictor whose errors are its memory.

    Called with ``[x, y_past]``, a window of inputs (B, W, D) and the labels of all its rows but the last
    (B, W - 1), it predicts the last label (B, 1). From a zero state each row is predicted, and its error
    becomes the memory that the next row is predicted with. Where a label is NaN the memory is held.

    The four variants are two switches: RM has neither, RM+AM ``activation_memory``, ARM ``accumulate``,
    ARM+AM both. ``get_weights()`` has the matrices in the order of `varnn.network.cell.Weights`, biases as
    one-row matrices. They begin as in Keras: Glorot-uniform, biases at zero.

    Parameters
    ----------
    units : int, default=128
        Width K of the hidden layer.
    memory_size : int or None, default=None
        Width M of the residual memory; None is as wide as the inputs, as in the paper.
    accumulate : bool, default=False
        The memory is fed by its own past too (ARM), not by the last error alone (RM).
    activation_memory : bool, default=False
        The hidden layer of one row is an input of the next (+AM).
    activation, memory_activation : str or callable, default="relu"
        Of the hidden layer and of the memory, as Keras names them.
    **options : Any
        Of every Keras layer: ``name``, ``dtype``, ``trainable``.

    References
    ----------
    H. Gharwi and K. Shu, "Variability Aware Recursive Neural Network (VARNN): A Residual-Memory Model for
    Capturing Temporal Deviation in Sequence Regression Modeling", 2025; equations 4-9, Algorithm 2.

    Examples
    --------
    >>> window = [keras.Input((5, 3)), keras.Input((4,))]  # 5 rows of 3 inputs, and the first 4 labels
    >>> keras.Model(window, VARNN(16, accumulate=True)(window)).count_params()
    144
    """

    def __init__(
        self,
        units: int = 128,
        memory_size: int | None = None,
        *,
        accumulate: bool = False,
        activation_memory: bool = False,
        activation: Any = "relu",
        memory_activation: Any = "relu",
        **options: Any,
    ) -> None:
        super().__init__(**options)
        sizes: dict[str, Any] = {"units": units, "memory_size": 1 if memory_size is None else memory_size}
        for name, size in sizes.items():
            if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
                raise ConfigError(f"{name} must be a whole number, at least 1; got {size!r}.")
        self.units, self.memory_size = int(units), memory_size and int(memory_size)
        self.accumulate, self.activation_memory = accumulate, activation_memory
        self.activation = keras.activations.get(activation)
        self.memory_activation = keras.activations.get(memory_activation)

    def build(self, input_shape: Any) -> None:
        """Make the matrices, for windows of as many inputs as these."""
        self.window, n_inputs = _window_of(input_shape)
        self.cell = Architecture(
            n_inputs=n_inputs,
            hidden_size=self.units,
            memory_size=self.memory_size or max(n_inputs, 1),
            accumulate=self.accumulate,
            activation_memory=self.activation_memory,
            memory_activation=cast(MemoryActivation, _name_of(self.memory_activation)),
        )
        for name, shape in self.cell.shapes.items():
            start = "zeros" if name.endswith("_bias") else "glorot_uniform"
            setattr(self, name, self.add_weight(shape=shape, initializer=start, name=name))

    def call(self, inputs: Any) -> Any:
        """Predict the last label of each window: x (B, W, D), y_past (B, W - 1) -> (B, 1)."""
        shapes = [tuple(one.shape) for one in inputs] if isinstance(inputs, list | tuple) else inputs.shape
        window, _ = _window_of(shapes, self.cell.n_inputs)
        x, y_past = inputs
        d, m, batch = self.cell.n_inputs, self.cell.memory_size, keras.ops.shape(x)[0]
        projected = x @ self.fusion[:d] + self.fusion_bias  # (B, W, K), of all rows at once
        h = keras.ops.zeros((batch, m), self.compute_dtype)
        u = keras.ops.zeros((batch, self.units), self.compute_dtype)
        for step in range(window):
            z = projected[:, step] + h @ self.fusion[d : d + m]
            if self.activation_memory:
                z = z + u @ self.fusion[d + m :]
            u = self.activation(z)
            y_hat = u @ self.readout + self.readout_bias  # (B, 1)
            if step < window - 1:  # the last row's label is what is asked for
                h = self._memory(y_past[:, step : step + 1], y_hat, h)
        return y_hat

    def _memory(self, y: Any, y_hat: Any, h: Any) -> Any:
        """Take the error of a row into the memory: (B, 1), (B, 1), (B, M) -> (B, M)."""
        missing = keras.ops.isnan(y)
        error = keras.ops.where(missing, keras.ops.zeros_like(y_hat), y - y_hat)
        z = error @ self.error + self.error_bias
        if self.accumulate:
            z = z + h @ self.carry
        return keras.ops.where(missing, h, self.memory_activation(z))

    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, int]:
        """One label for each window."""
        return input_shape[0][0], 1

    def get_config(self) -> dict[str, Any]:
        """What the layer is made with, for ``.keras`` files."""
        plain = ("units", "memory_size", "accumulate", "activation_memory")
        named = ("activation", "memory_activation")
        config: dict[str, Any] = super().get_config() | {name: getattr(self, name) for name in plain}
        return config | {name: keras.activations.serialize(getattr(self, name)) for name in named}


def _name_of(activation: Any) -> str:
    """Keras' name of an activation; another function may have such a name, and is called custom."""
    name = getattr(activation, "__name__", type(activation).__name__)
    own = (getattr(place, name, None) for place in (keras.activations, keras.ops))
    return name if any(activation is one for one in own) else f"custom {name}"


def _window_of(shapes: Any, n_inputs: int | None = None) -> tuple[int, int]:
    """Rows and inputs of windows of these shapes; refuses what is no window, or has other inputs."""
    both = [tuple(one) if isinstance(one, list | tuple) else () for one in shapes]
    x, y_past = both if len(both) == 2 else ((), ())
    if len(x) != 3 or len(y_past) != 2 or None in x[1:] or y_past[1] != x[1] - 1:
        raise DataError(
            "VARNN takes a list [x, y_past] of shapes (B, W, D) and (B, W - 1), W and D being numbers; got "
            f"{list(shapes)}. The last label is predicted, and no part of y_past; windows(panel) cuts both."
        )
    if n_inputs not in (None, x[2]):
        raise DataError(f"this layer was built for {n_inputs} inputs; got windows of shape {x}.")
    return x[1], x[2]


def windows(panel: Panel, length: int = 5) -> tuple[list[FloatArray], FloatArray]:
    """Cut a panel into its windows with a known last label: ``[x, y_past], y``, as ``model.fit`` takes them.

    Windows never cross series. Rows must be in the units that the layer shall see, inputs complete;
    ``Scaling.fit(train, "minmax").apply(panel)`` of `varnn.data.preparation` scales them.

    Examples
    --------
    >>> (x, y_past), y = windows(Panel.from_arrays([[1.0], [2.0], [3.0]], [10.0, 20.0, 30.0]), length=2)
    >>> x[:, :, 0].tolist(), y_past.tolist(), y.tolist()
    ([[1.0, 2.0], [2.0, 3.0]], [[10.0], [20.0]], [[20.0], [30.0]])
    """
    if np.isnan(panel.inputs).any():
        hint = "varnn.data.preparation.fill_gaps(panel, 'forward')"
        raise DataError(f"inputs of windows must be known; some are missing. Fill them with {hint}.")
    rows = rows_of(training_ends(panel, length), length)
    return [panel.inputs[rows], panel.target[rows[:, :-1]]], panel.target[rows[:, -1:]]


def from_regressor(model: VARNNRegressor) -> VARNN:
    """Give the network of a fitted ``VARNNRegressor.paper(...)`` as a layer; it sees scaled rows.

    Examples
    --------
    >>> panel = Panel.from_arrays(np.random.default_rng(0).normal(size=(60, 2)), np.arange(60.0))
    >>> model = VARNNRegressor.paper("ARM", hidden_size=4, epochs=1).fit(panel, validation=panel)
    >>> window, label = windows(model.fitted_.prepared(panel).panel)
    >>> from_regressor(model)(window).shape == label.shape
    True
    """
    check_is_fitted(model)
    fitted, cell = model.fitted_, model.fitted_.architecture
    pipeline = fitted.pipeline
    as_they_are = pipeline.linear is None and not pipeline.calendar and pipeline.use_inputs
    alone = as_they_are and fitted.experts is None and fitted.n_members == 1
    if not alone or cell.residual != "projected" or cell.horizon != 1:
        raise ConfigError(
            "a layer is the paper's network alone, one member of VARNNRegressor.paper(...); this model is an "
            "ablation, or has members, a linear part, a calendar or more. Fit VARNNRegressor.paper(...)."
        )
    same = ("memory_size", "accumulate", "activation_memory", "memory_activation")
    layer = VARNN(cell.hidden_size, **{name: getattr(cell, name) for name in same})
    layer.build([(None, fitted.window, cell.n_inputs), (None, fitted.window - 1)])
    layer.set_weights([matrix[0] for matrix in fitted.weights.as_dict().values()])
    return layer


def to_regressor(layer: VARNN, panel: Panel, scale: Scale = "minmax") -> VARNNRegressor:
    """Give a layer as a fitted regressor, of the window it was built for: to predict, stream and save with.

    ``panel`` holds the rows it was trained on, in their own units; ``scale`` says how it saw them.

    Examples
    --------
    >>> panel = Panel.from_arrays(np.random.default_rng(0).normal(size=(60, 2)), np.arange(60.0))
    >>> model = VARNNRegressor.paper("ARM", hidden_size=4, epochs=1).fit(panel, validation=panel)
    >>> again = to_regressor(from_regressor(model), panel)
    >>> bool((again.predict(panel) == model.predict(panel)).all())
    True
    """
    n_inputs = layer.cell.n_inputs if layer.built else "none yet"
    if n_inputs != panel.n_inputs:
        was = f"layer has {n_inputs}, the panel {panel.n_inputs}"
        raise DataError(f"the rows must be those the layer was trained on; of inputs the {was}.")
    cell, activation = layer.cell, _name_of(layer.activation)
    if activation != "relu" or cell.memory_activation not in ("relu", "tanh"):
        raise ConfigError(
            "a regressor's hidden layer must be relu, its memory relu or tanh; this layer has "
            f"{activation} and {cell.memory_activation}. Train one with these."
        )
    variant = ("ARM" if cell.accumulate else "RM") + ("+AM" if cell.activation_memory else "")
    same = {name: getattr(cell, name) for name in ("hidden_size", "memory_size", "memory_activation")}
    model = VARNNRegressor.paper(cast(Variant, variant), window=layer.window, scale=scale, **same)
    pipeline = FeaturePipeline.fit(panel, None, scale=scale, fill=model.fill)
    model.fitted_ = Fitted(
        architecture=cell,
        weights=Weights(*(one[None].astype(np.float32) for one in layer.get_weights())),
        pipeline=pipeline,
        window=layer.window,
        input_names=panel.input_names,
        target_name=panel.target_name,
        time_name=panel.time_name,
        series_name=panel.series_name,
        label_range=(float(np.nanmin(panel.target)), float(np.nanmax(panel.target))),
        last_rows=last_rows_of(panel, pipeline, layer.window + 1),
        training=TrainingRecord(rows=len(panel), series=panel.n_series),
    )
    model.forecaster_, model.history_, model.n_features_in_ = None, [], panel.n_inputs
    keep_names(model, panel.input_names)
    return model
