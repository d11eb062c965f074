"""The Keras layer against Algorithm 2, the reference engine's gradients, and the regressors it comes from."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

os.environ.setdefault("KERAS_BACKEND", "torch")  # which is here anyway; to be said before keras is imported
pytest.importorskip("keras", reason="the Keras layer needs varnn[keras]")

import keras

import varnn
from tests.cases import Case, random_panel, random_weights
from tests.oracle import predict_window
from varnn import VARNNRegressor
from varnn._types import FloatArray
from varnn.data.panel import Panel
from varnn.data.preparation import Scaling
from varnn.data.windows import rows_of, window_ends
from varnn.errors import ConfigError, DataError
from varnn.network.cell import VARIANTS, Architecture, Variant, Weights
from varnn.network.engines.engine import Task, pack, unpack
from varnn.network.engines.reference import ReferenceEngine
from varnn.paper.keras import VARNN, from_regressor, to_regressor, windows

CASES = [Case(variant, activation=rho) for variant in VARIANTS for rho in ("relu", "tanh")]
CLOSE = {"float32": 1e-5} | ({} if keras.backend.backend() == "jax" else {"float64": 1e-12})
on_torch = pytest.mark.skipif(keras.backend.backend() != "torch", reason="gradients are taken by torch")


def _own(name: str) -> Any:
    """Give an activation of somebody's own, of some name, whose source cannot be read."""
    scope: dict[str, Any] = {"keras": keras}
    exec(f"def {name}(z): return keras.ops.tanh(2 * z)", scope)
    return scope[name]


def layer_of(cell: Architecture, weights: Weights, window: int, dtype: str) -> VARNN:
    layer = VARNN(
        cell.hidden_size,
        cell.memory_size,
        accumulate=cell.accumulate,
        activation_memory=cell.activation_memory,
        memory_activation=cell.memory_activation,
        dtype=dtype,
    )
    layer.build([(None, window, cell.n_inputs), (None, window - 1)])
    layer.set_weights(list(weights.as_dict().values()))
    return layer


def computed(layer: VARNN, x: FloatArray, y_past: FloatArray) -> FloatArray:
    numbers: FloatArray = keras.ops.convert_to_numpy(layer([x, y_past]))
    return numbers


@pytest.mark.parametrize("case", CASES, ids=str)
@settings(max_examples=15, deadline=None)
@given(
    batch=st.integers(1, 4),
    window=st.integers(1, 7),
    n_inputs=st.integers(0, 4),
    hidden_size=st.integers(1, 8),
    memory_size=st.integers(1, 5),
    missing=st.sampled_from([0.0, 0.3, 1.0]),
    dtype=st.sampled_from(sorted(CLOSE)),
    seed=st.integers(0, 1000),
)
def test_a_window_is_predicted_as_algorithm_2_does(
    case: Case,
    batch: int,
    window: int,
    n_inputs: int,
    hidden_size: int,
    memory_size: int,
    missing: float,
    dtype: str,
    seed: int,
) -> None:
    cell = case.architecture(n_inputs, hidden_size, memory_size)
    weights = random_weights(cell, seed)
    random = np.random.default_rng(seed)
    x, y = random.normal(size=(batch, window, n_inputs)), random.normal(size=(batch, window))
    y[random.random(y.shape) < missing] = np.nan
    ours = computed(layer_of(cell, weights, window, dtype), x, y[:, :-1])
    oracle = [
        predict_window(
            weights.as_dict(),
            *one,
            variant=case.variant,
            activation=case.activation,
            memory_size=memory_size,
        )
        for one in zip(x, y, strict=True)
    ]
    assert ours.dtype == dtype
    np.testing.assert_allclose(ours[:, 0], oracle, rtol=CLOSE[dtype], atol=CLOSE[dtype])


@on_torch
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradients_are_those_of_the_reference_engine(case: Case, missing: float) -> None:
    cell = case.architecture()
    panel = random_panel([12, 9], missing=missing, seed=4)
    weights = random_weights(cell, 3)
    ends = window_ends(panel, 5).astype(np.int64)
    engine = ReferenceEngine(Task(cell, torch.tensor(panel.inputs), torch.tensor(panel.target), window=5))
    loss, gradient = engine.loss_and_gradient(torch.tensor(pack(weights)), torch.tensor(ends))

    layer, rows = layer_of(cell, weights, 5, "float64"), rows_of(ends, 5)
    y_hat = layer([panel.inputs[rows], panel.target[rows[:, :-1]]])
    ours = (torch.tensor(panel.target[ends])[:, None] - y_hat).square().mean()
    ours.backward()
    assert ours.item() == pytest.approx(loss.item(), rel=1e-12)
    slopes = dict(zip(weights.as_dict(), (one.value.grad for one in layer.weights), strict=True))
    for name, slope in unpack(cell, gradient).as_dict().items():
        np.testing.assert_allclose(slopes[name], slope, rtol=1e-10, atol=1e-12, err_msg=name)


def test_weights_begin_as_in_the_cell_of_this_library() -> None:
    keras.utils.set_random_seed(2)
    layer = VARNN(64, accumulate=True, activation_memory=True)
    layer.build([(None, 5, 20), (None, 4)])
    # None is a memory as wide as the inputs.
    assert layer.cell == Architecture.of("ARM+AM", n_inputs=20, hidden_size=64, memory_size=20)
    named = dict(zip(Weights._fields, layer.get_weights(), strict=False))
    assert {name: one.shape for name, one in named.items()} == layer.cell.shapes
    for name, matrix in named.items():
        limit = 0.0 if name.endswith("_bias") else np.sqrt(6 / sum(matrix.shape))
        assert 0.7 * limit <= np.abs(matrix).max() <= 1.000001 * limit  # of 20 draws at least


def model_of(window: int, n_inputs: int, layer: VARNN) -> Any:
    inputs = [keras.Input((window, n_inputs)), keras.Input((window - 1,))]
    model = keras.Model(inputs, layer(inputs))
    model.compile(keras.optimizers.Adam(3e-3), "mse")
    return model


def a_stream() -> tuple[Panel, Scaling]:
    """Make a target that follows its inputs and a level that no input shows, and how to scale both."""
    random = np.random.default_rng(0)
    inputs = random.normal(size=(800, 2))
    level = 3 * np.sin(np.arange(800) / 8) + random.normal(scale=0.1, size=800)
    panel = Panel.from_arrays(inputs, inputs[:, 0] + level)
    return panel, Scaling.fit(panel, "minmax")


def test_trained_by_fit_it_beats_a_network_without_memory() -> None:
    keras.utils.set_random_seed(1)
    panel, scaling = a_stream()
    (x, y_past), y = windows(scaling.apply(panel))
    static = keras.Sequential([keras.layers.Dense(32, "relu"), keras.layers.Dense(1)])
    static.compile(keras.optimizers.Adam(3e-3), "mse")
    losses = []
    for model, seen in ((static, x[:, -1]), (model_of(5, 2, VARNN(32, 8)), [x, y_past])):
        history = model.fit(seen, y, epochs=25, batch_size=64, verbose=0).history["loss"]
        assert history[-1] < history[0]
        losses.append(history[-1])
    assert losses[1] < 0.5 * losses[0]


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_keras_file_gives_the_same_predictions(variant: Variant, tmp_path: Path) -> None:
    sizes: dict[str, Any] = {"units": np.int64(7), "memory_size": np.int64(4)}
    layer = VARNN(
        **sizes,
        accumulate=variant.startswith("ARM"),
        activation_memory=variant.endswith("+AM"),
        activation="elu",
        memory_activation="tanh",
        name="memory",
    )
    model = model_of(5, 3, layer)
    seen, label = windows(random_panel([30]))
    model.fit(seen, label, verbose=0)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again.predict(seen, verbose=0), model.predict(seen, verbose=0))
    assert again.get_layer("memory").window == 5
    assert again.get_layer("memory").get_config() == layer.get_config()
    assert VARNN.from_config(layer.get_config()).get_config() == layer.get_config()


@pytest.mark.parametrize("scale", ["minmax", "standard"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_network_trained_here_runs_in_keras_and_back(variant: Variant, scale: Any) -> None:
    panel = random_panel([60, 45], missing=0.1, seed=2)
    model = VARNNRegressor.paper(
        variant, scale=scale, hidden_size=6, memory_size=4, memory_activation="tanh", epochs=2, window=4
    ).fit(panel, validation=panel)
    layer = from_regressor(model)
    seen, _ = windows(model.fitted_.prepared(panel).panel, 4)
    predicted = model.fitted_.pipeline.scaling.restore(computed(layer, *seen))[:, 0]
    there = model.predict(panel)
    np.testing.assert_allclose(predicted, there[window_ends(panel, 4)], rtol=1e-5, atol=1e-5)
    again = to_regressor(layer, panel, scale)
    np.testing.assert_array_equal(again.predict(panel), there)
    assert again.fitted_.fingerprint == model.fitted_.fingerprint


def test_a_layer_trained_in_keras_streams_and_is_saved_as_a_regressor(tmp_path: Path) -> None:
    panel, scaling = a_stream()
    layer = VARNN(16, accumulate=True)
    model = model_of(5, 2, layer)
    seen, label = windows(scaling.apply(panel))
    model.fit(seen, label, verbose=0)
    regressor = to_regressor(layer, panel)
    in_keras = scaling.restore(model.predict(seen, verbose=0))[:, 0]
    np.testing.assert_allclose(regressor.predict(panel)[4:], in_keras, atol=1e-5)
    assert np.isfinite(regressor.predict(panel.inputs[:3])).all()  # in closed loop, after the training rows
    regressor.save(tmp_path / "model.varnn")
    live = varnn.load(tmp_path / "model.varnn").stream()
    streamed = []
    for x, y in zip(panel.inputs[:50], panel.target[:50], strict=True):
        streamed.append(live.predict(x))
        live.observe(y)
    np.testing.assert_allclose(streamed, regressor.predict(panel)[:50], atol=1e-5)


def test_windows_stay_in_their_series_and_end_in_a_label() -> None:
    target = [1.0, 2.0, np.nan, 4.0, 10.0, 20.0, 30.0]
    panel = Panel.from_arrays(np.arange(7.0)[:, None], target, series=list("aaaabbb"))
    (x, y_past), y = windows(panel, 3)
    assert x[:, :, 0].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert y[:, 0].tolist() == [4, 30]
    np.testing.assert_array_equal(y_past, [[2, np.nan], [10, 20]])
    with pytest.raises(DataError, match="must be known; some are missing"):
        windows(Panel.from_arrays([[1.0], [np.nan], [3.0]], [1.0, 2.0, 3.0]), 2)


@pytest.mark.parametrize(
    "sizes",
    [
        {"units": 0},
        {"units": 1.5},
        {"units": True},
        {"memory_size": 0},
        {"memory_size": "d"},
        {"memory_size": True},
    ],
)
def test_sizes_that_cannot_be_are_refused(sizes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"{next(iter(sizes))} must be a whole number, at least 1"):
        VARNN(**sizes)


@pytest.mark.parametrize(
    "shapes",
    [
        [(2, 5, 3)],
        [(2, 5), (2, 4)],
        [(2, 5, 3), (2, 5)],
        [(2, 5, 3), (2, 4, 1)],
        [(2, 5, 3), (2, 4), (2, 4)],
    ],
    ids=str,
)
@pytest.mark.parametrize("built", [False, True])
def test_what_is_no_window_is_refused(shapes: list[tuple[int, ...]], built: bool) -> None:
    layer = VARNN(4)
    if built:
        layer.build([(None, 5, 3), (None, 4)])
    arrays = [np.zeros(shape) for shape in shapes]
    with pytest.raises(DataError, match=r"takes a list \[x, y_past\] of shapes \(B, W, D\) and \(B, W - 1\)"):
        layer(arrays if len(arrays) > 1 else arrays[0])


def test_windows_of_no_fixed_length_or_of_other_inputs_are_refused() -> None:
    with pytest.raises(DataError, match="W and D being numbers"):
        VARNN(4)([keras.Input((None, 3)), keras.Input((None,))])
    layer = VARNN(4)
    layer([np.zeros((2, 5, 3)), np.zeros((2, 4))])
    with pytest.raises(DataError, match="built for 3 inputs"):
        layer([np.zeros((2, 5, 2)), np.zeros((2, 4))])


def test_models_and_layers_without_a_counterpart_are_refused() -> None:
    panel = random_panel([40])
    for model in (
        VARNNRegressor(ensemble=1, epochs=1, hidden_size=4),
        VARNNRegressor.paper(epochs=1, hidden_size=4, ensemble=2),
        VARNNRegressor.paper(epochs=1, hidden_size=4, residual="scalar"),
        VARNNRegressor.paper(epochs=1, hidden_size=4, adapt="constant-gain"),
    ):
        with pytest.raises(ConfigError, match="the paper's network alone"):
            from_regressor(model.fit(panel))
    with pytest.raises(NotFittedError):
        from_regressor(VARNNRegressor.paper())
    with pytest.raises(DataError, match="of inputs the layer has none yet, the panel 3"):
        to_regressor(VARNN(4), panel)
    layer = VARNN(4, memory_activation="sigmoid")
    layer.build([(None, 5, 3), (None, 4)])
    with pytest.raises(ConfigError, match="this layer has relu and sigmoid"):
        to_regressor(layer, panel)


def said(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )
    return done.stdout


def test_nothing_else_imports_keras() -> None:
    assert said("import sys, varnn, varnn.paper; print('keras' in sys.modules)").strip() == "False"


def test_a_backend_that_is_not_there_is_said_so() -> None:
    code = (
        "import sys; sys.modules['tensorflow'] = None\n"
        "try:\n    import varnn.paper.keras\n"
        "except ImportError as error:\n    print(type(error).__name__, error)"
    )
    message = said(code, KERAS_BACKEND="tensorflow")
    assert message.startswith("MissingExtraError Keras is set to a backend that needs 'tensorflow")
    assert "KERAS_BACKEND" in message


@pytest.mark.parametrize("name", ["steep", "tanh"])
def test_an_activation_of_ones_own_works_and_is_not_taken_for_another(name: str) -> None:
    panel = random_panel([30], 2)
    window, _ = windows(panel)
    layers = [VARNN(4, memory_activation=one) for one in ("tanh", _own(name))]
    for layer in layers:
        computed(layer, *window)
    layers[1].set_weights(layers[0].get_weights())
    tanh, own = (computed(layer, *window) for layer in layers)
    assert np.isfinite(own).all()
    assert np.abs(tanh - own).max() > 1e-4
    assert hash(layers[1].cell) != hash(layers[0].cell)
    with pytest.raises(ConfigError, match=f"this layer has relu and custom {name}. Train one with these."):
        to_regressor(layers[1], panel)
    hidden = VARNN(4, activation=_own("relu"))
    computed(hidden, *window)
    with pytest.raises(ConfigError, match="this layer has custom relu and relu"):
        to_regressor(hidden, panel)
