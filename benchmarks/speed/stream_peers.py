"""The peers of one streamed step: the same cell in torch and onnxruntime, and two online ARIMA models."""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from varnn._types import DoubleArray
from varnn.model.fitted import Fitted
from varnn.network import cell
from varnn.network.cell import Weights

Step = Callable[[int], float]


def eager(fitted: Fitted, X: DoubleArray, y: DoubleArray) -> Step:
    """Run the cell over the last rows anew for each prediction, in torch on one thread."""
    import torch

    torch.set_num_threads(1)
    architecture = fitted.architecture
    weights = Weights(**{name: torch.tensor(matrix[0]) for name, matrix in fitted.weights.as_dict().items()})

    def step(row: int) -> float:
        with torch.inference_mode():
            state = None
            for now in range(max(0, row - fitted.window + 1), row + 1):
                x = torch.tensor(X[now], dtype=torch.float32)[None]
                projected = cell.project(architecture, weights, x)
                state = cell.initial_state(architecture, projected) if state is None else state
                y_hat, u = cell.predict(architecture, weights, projected, state)
                state = cell.update(architecture, weights, float(y[now]) - y_hat, u, state)
            return float(y_hat)

    return step


def onnx(fitted: Fitted, X: DoubleArray, y: DoubleArray) -> Step:
    """Run the window as one onnxruntime graph on one thread, fed with the last rows.

    The graph has a fixed length, so the first rows, whose windows are short, get windows of their own.
    """
    runtime: Any = importlib.import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    sessions = [
        runtime.InferenceSession(_window_graph(fitted, length), options, providers=["CPUExecutionProvider"])
        for length in range(1, fitted.window + 1)
    ]
    inputs, target = X.astype(np.float32), y.astype(np.float32)[:, None]

    def step(row: int) -> float:
        length = min(row + 1, fitted.window)
        here = slice(row + 1 - length, row + 1)
        (answer,) = sessions[length - 1].run(["y_hat"], {"x": inputs[here], "y": target[here]})
        return float(answer[0, 0])

    return step


def _window_graph(fitted: Fitted, length: int) -> bytes:
    """Write an RM window as an ONNX graph: x (w, D), y (w, 1) -> y_hat (1, 1)."""
    package: Any = importlib.import_module("onnx")
    helper, from_array = package.helper, package.numpy_helper.from_array
    n_inputs = fitted.architecture.n_inputs
    fusion = fitted.weights.fusion[0]
    weights = {name: matrix[0] for name, matrix in fitted.weights.as_dict().items()}
    weights |= {"from_inputs": fusion[:n_inputs], "from_memory": fusion[n_inputs:]}
    constants = [from_array(np.ascontiguousarray(matrix), name) for name, matrix in weights.items()]
    nodes = []

    def add(kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def split(name: str) -> list[str]:
        if length == 1:
            return [name]
        rows = [f"{name}{step}" for step in range(length)]
        nodes.append(helper.make_node("Split", [name], rows, axis=0, num_outputs=length))
        return rows

    add("Gemm", ["x", "from_inputs", "fusion_bias"], "projected")
    memory = None
    for step, (z, label) in enumerate(zip(split("projected"), split("y"), strict=True)):
        last = step == length - 1
        if memory is not None:
            z = add("Gemm", [memory, "from_memory", z], f"z{step}")
        u = add("Relu", [z], f"u{step}")
        y_hat = add("Gemm", [u, "readout", "readout_bias"], "y_hat" if last else f"y_hat{step}")
        if not last:
            error = add("Sub", [label, y_hat], f"e{step}")
            memory = add("Relu", [add("Gemm", [error, "error", "error_bias"], f"m{step}")], f"h{step}")
    floats = package.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "window",
        [
            helper.make_tensor_value_info("x", floats, [length, n_inputs]),
            helper.make_tensor_value_info("y", floats, [length, 1]),
        ],
        [helper.make_tensor_value_info("y_hat", floats, [1, 1])],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    return bytes(model.SerializeToString())


def river(fitted: Fitted, X: DoubleArray, y: DoubleArray) -> Step:
    """Forecast and learn with river's online ARIMA, on the same inputs and three lags."""
    from river import linear_model, optim, preprocessing, time_series

    model = time_series.SNARIMAX(
        p=3,
        d=0,
        q=3,
        regressor=preprocessing.StandardScaler() | linear_model.LinearRegression(optimizer=optim.SGD(1e-4)),
    )
    names = fitted.input_names
    rows = [dict(zip(names, row.tolist(), strict=True)) for row in X]
    model.learn_one(float(y[0]), rows[0])

    def step(row: int) -> float:
        (forecast,) = model.forecast(horizon=1, xs=[rows[row]])
        model.learn_one(float(y[row]), rows[row])
        return float(forecast)

    return step


def statsmodels(fitted: Fitted, X: DoubleArray, y: DoubleArray) -> Step:
    """Forecast with a state-space ARIMA(3, 0, 3) and extend it by each row; nothing is estimated anew."""
    from statsmodels.tsa.statespace.sarimax import SARIMAX

    model = SARIMAX(y[:50], exog=X[:50], order=(3, 0, 3))
    parameters = np.zeros(len(model.param_names))
    parameters[-7:] = (0.5, 0.1, 0.1, 0.2, 0.1, 0.1, 1.0)  # three lags, three errors, the variance
    results = model.smooth(parameters)

    def step(row: int) -> float:
        nonlocal results
        forecast = results.forecast(1, exog=X[row : row + 1])
        results = results.extend(y[row : row + 1], exog=X[row : row + 1])
        return float(forecast[0])

    return step
