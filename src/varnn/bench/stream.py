"""One streamed step, predict + observe: ours, the same cell in eager torch, and river's SNARIMAX."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from varnn import cell
from varnn.bench.rounds import Timing, interleave
from varnn.cell import Architecture, Weights, initial_weights
from varnn.errors import VarnnError
from varnn.fitted import Fitted
from varnn.preparation import Scaling
from varnn.stream import Stream

INPUTS, HIDDEN, WINDOW = 27, 128, 5


def run(*, rounds: int = 7, calls: int = 300) -> tuple[list[Timing], list[str]]:
    """Time every contender that is installed; also say which are not.

    The streams get the same rows, and the eager step is checked to give the same predictions.
    """
    generator = np.random.default_rng(0)
    rows = 1000 + rounds * calls
    X = generator.normal(size=(rows, INPUTS))
    y = X[:, 0] + np.cumsum(generator.normal(size=rows)) / 10
    fitted = untrained("RM", INPUTS, HIDDEN, WINDOW)
    contenders: dict[str, Callable[[int], object]] = {"varnn Stream": _ours(fitted, X, y)}
    absent = []
    for name, make in (("torch, eager window of 5", _eager), ("river SNARIMAX(3, 0, 3)", _river)):
        try:
            contenders[name] = make(fitted, X, y)
        except ImportError:
            absent.append(name)
    return interleave(contenders, rounds=rounds, calls=calls, warm_up=200), absent


def untrained(variant: Any, n_inputs: int, hidden_size: int, window: int) -> Fitted:
    """Give a model with drawn weights and no scaling; speed does not depend on what was learnt."""
    architecture = Architecture.of(variant, n_inputs=n_inputs, hidden_size=hidden_size)
    weights = initial_weights(architecture, seed=0).as_dict()
    return Fitted(
        architecture=architecture,
        weights=Weights(**{name: matrix[None] for name, matrix in weights.items()}),
        scaling=Scaling(
            input_offset=np.zeros(n_inputs),
            input_scale=np.ones(n_inputs),
            input_lead=np.zeros(n_inputs),
            target_offset=0.0,
            target_scale=1.0,
        ),
        fill="forward",
        window=window,
        input_names=tuple(f"x{index}" for index in range(n_inputs)),
        target_name="y",
    )


Floats = npt.NDArray[np.float64]


def _ours(fitted: Fitted, X: Floats, y: Floats) -> Callable[[int], float]:
    live = Stream(fitted)

    def step(row: int) -> float:
        predicted = live.predict(X[row])
        live.observe(y[row])
        return float(predicted)

    return step


def _eager(fitted: Fitted, X: Floats, y: Floats) -> Callable[[int], float]:
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

    ours = _ours(fitted, X, y)
    for row in range(20):
        if abs(ours(row) - step(row)) > 1e-4:
            raise VarnnError("the contenders disagree: a benchmark of different answers means nothing.")
    return step


def _river(fitted: Fitted, X: Floats, y: Floats) -> Callable[[int], float]:
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
