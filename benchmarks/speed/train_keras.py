"""Training steps on Keras with TensorFlow: VARNN as a custom model, and Keras' recurrent layers.

Each is measured as one compiled step that gathers its own windows; two of them also through ``fit``, as
people train, which adds its own work around the step.
"""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.speed.rounds import Contender
from benchmarks.speed.train_case import LEARNING_RATE, Case
from varnn.data.windows import rows_of
from varnn.network.cell import Architecture, Weights

STEPS_OF_A_FIT = 100
VARNN_STEP = "Keras VARNN, step"
MODELS = ("VARNN", "SimpleRNN", "GRU", "LSTM")
FITTED = ("VARNN", "LSTM")  # the rest would only make the benchmark longer


def contenders(case: Case) -> list[Contender]:
    """Keras' models; ImportError where TensorFlow is not installed."""
    tensorflow: Any = importlib.import_module("tensorflow")
    keras: Any = importlib.import_module("keras")
    steps = [Contender(f"Keras {name}, step", _step(case, tensorflow, keras, name)) for name in MODELS]
    fits = [
        Contender(f"Keras {name}, fit()", _fit(case, keras, name), steps=STEPS_OF_A_FIT, calls=1)
        for name in FITTED
    ]
    return steps + fits


def _model(case: Case, keras: Any, name: str) -> Any:
    if name == "VARNN":
        return varnn_model(keras, case.architecture, case.weights(), case.window)
    layer = getattr(keras.layers, name)
    inputs = keras.Input((case.window, case.n_inputs))
    labels = keras.Input((case.window,))  # not used, so that all models are called alike
    options = {"activation": "relu"} if name == "SimpleRNN" else {}
    outputs = keras.layers.Dense(1)(layer(case.hidden_size, **options)(inputs))
    return keras.Model([inputs, labels], outputs)


def varnn_model(keras: Any, cell: Architecture, weights: Weights, window: int) -> Any:
    """Write VARNN as a custom model: the cell as Keras layers, its window as an unrolled loop."""
    ops, layers = keras.ops, keras.layers

    class Varnn(keras.Model):  # type: ignore[misc]  # Keras ships no types
        def __init__(self) -> None:
            super().__init__()
            self.fusion = layers.Dense(cell.hidden_size, activation="relu")
            self.readout = layers.Dense(1)
            self.error = layers.Dense(cell.memory_size)
            self.carry = layers.Dense(cell.memory_size, use_bias=False) if cell.accumulate else None

        def call(self, both: Any) -> Any:
            x, y = both  # (B, w, D), (B, w)
            h = ops.zeros((ops.shape(x)[0], cell.memory_size))
            u = ops.zeros((ops.shape(x)[0], cell.hidden_size))
            for step in range(window):
                parts = [x[:, step], h, u] if cell.activation_memory else [x[:, step], h]
                u = self.fusion(ops.concatenate(parts, axis=1))
                y_hat = self.readout(u)
                z = self.error(y[:, step : step + 1] - y_hat)
                h = ops.relu(z if self.carry is None else z + self.carry(h))
            return y_hat

    model = Varnn()
    model([np.zeros((1, window, cell.n_inputs), np.float32), np.zeros((1, window), np.float32)])
    model.fusion.set_weights([weights.fusion, weights.fusion_bias[0]])
    model.readout.set_weights([weights.readout, weights.readout_bias[0]])
    model.error.set_weights([weights.error, weights.error_bias[0]])
    if model.carry is not None:
        model.carry.set_weights([weights.carry])
    return model


def _step(case: Case, tensorflow: Any, keras: Any, name: str) -> Callable[[int], Any]:
    model = _model(case, keras, name)
    optimiser = keras.optimizers.Adam(LEARNING_RATE)
    optimiser.build(model.trainable_variables)
    inputs, target = tensorflow.constant(case.inputs), tensorflow.constant(case.target)
    ends = tensorflow.constant(case.ends)
    offsets = tensorflow.range(1 - case.window, 1, dtype=tensorflow.int64)

    @tensorflow.function  # type: ignore[untyped-decorator]  # TensorFlow ships no types
    def compiled(batch: Any) -> Any:
        rows = batch[:, None] + offsets
        x, y = tensorflow.gather(inputs, rows), tensorflow.gather(target, rows)
        with tensorflow.GradientTape() as tape:
            y_hat = model([x, y], training=True)
            loss = tensorflow.reduce_mean(tensorflow.square(y[:, -1:] - y_hat))
        gradients = tape.gradient(loss, model.trainable_variables)
        pairs = zip(gradients, model.trainable_variables, strict=True)
        optimiser.apply_gradients([pair for pair in pairs if pair[0] is not None])
        return loss

    batches = list(ends)
    return lambda number: compiled(batches[number % len(batches)]).numpy()


def _fit(case: Case, keras: Any, name: str) -> Callable[[int], Any]:
    model = _model(case, keras, name)
    model.compile(optimizer=keras.optimizers.Adam(LEARNING_RATE), loss="mse")
    rows = rows_of(case.ends[:STEPS_OF_A_FIT].ravel(), case.window)
    x, y = case.inputs[rows], case.target[rows]

    def fit(number: int) -> Any:
        history = model.fit([x, y], y[:, -1:], batch_size=case.batch, epochs=1, verbose=0, shuffle=True)
        return history.history["loss"][-1]

    return fit
