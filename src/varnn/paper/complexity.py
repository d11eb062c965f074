"""The paper's complexity section as a table: parameters and multiplies by formula and by count, and time."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from varnn.errors import require
from varnn.network import cell
from varnn.network.cell import VARIANTS, Architecture, initial_weights

HIDDEN = 128
WARM_UP = 5  # steps of each model before any is timed
INPUTS = {"appliances": 27, "bidmc": 375, "beijing": 9}


def formula(model: str, d: int, k: int, m: int) -> tuple[str, int]:
    """Multiplies per step without the readout, as the paper counts them, in letters and numbers.

    Examples
    --------
    >>> formula("RM", 27, 128, 27), formula("feed-forward", 27, 128, 0)
    (('k(d + m) + m', 6939), ('kd', 3456))
    """
    if model == "feed-forward":
        return "kd", k * d
    carried = m * m if model.startswith("ARM") else 0
    if model in VARIANTS:
        letters, count = "k(d + m) + m", k * (d + m) + m
        if model.endswith("+AM"):
            letters, count = "k(d + m + k) + m", k * (d + m + k) + m
        return (f"{letters} + m^2", count + carried) if carried else (letters, count)
    gates = {"rnn": 1, "gru": 3, "lstm": 4}[model]
    return f"{gates if gates > 1 else ''}k(d + k)", gates * k * (d + k)


def table(dataset: str, *, batch: int = 128, repeats: int = 200) -> list[dict[str, Any]]:
    """Count parameters and multiplies, and time one step of a batch, forward only, on one thread.

    Parameters
    ----------
    dataset : str
        Whose number of inputs to take.
    batch, repeats : int
        Rows of a step, and how often each model is timed.
    """
    torch = require("torch", extra="train", purpose="timing recurrent networks")
    d, k = INPUTS[dataset], HIDDEN
    steps: dict[str, Callable[[], object]] = {}
    # The predictor that sees inputs alone: what the paper counts the overhead of its memory from.
    letters, multiplies = formula("feed-forward", d, k, 0)
    network = torch.nn.Sequential(torch.nn.Linear(d, k), torch.nn.ReLU(), torch.nn.Linear(k, 1))
    steps["feed-forward"] = partial(network, torch.randn(batch, d))
    lines: dict[str, dict[str, Any]] = {
        "feed-forward": {
            "model": "feed-forward",
            "multiplies (formula)": letters,
            "multiplies": multiplies,
            "weights counted": network[0].weight.numel(),
            "parameters": sum(one.numel() for one in network.parameters()),
        }
    }
    for variant in VARIANTS:
        architecture = Architecture.of(variant, n_inputs=d, hidden_size=k)
        weights = initial_weights(architecture, seed=0).as_dict()
        steps[variant] = _varnn_step(architecture, torch, batch)
        letters, multiplies = formula(variant, d, k, architecture.memory_size)
        matrices = [name for name in weights if name not in ("readout", "readout_bias")]
        counted = sum(weights[name].size for name in matrices if not name.endswith("_bias"))
        lines[variant] = {
            "model": f"VARNN {variant}",
            "multiplies (formula)": letters,
            "multiplies": multiplies,
            "weights counted": counted,
            "parameters": sum(matrix.size for matrix in weights.values()),
        }
    for name, kind in (("rnn", torch.nn.RNN), ("gru", torch.nn.GRU), ("lstm", torch.nn.LSTM)):
        network = kind(d, k, batch_first=True)
        letters, multiplies = formula(name, d, k, 0)
        steps[name] = _recurrent_step(network, torch, batch, d, k, name)
        lines[name] = {
            "model": name.upper(),
            "multiplies (formula)": letters,
            "multiplies": multiplies,
            "weights counted": sum(one.numel() for one in network.parameters() if one.dim() == 2),
            "parameters": sum(one.numel() for one in network.parameters()) + k + 1,
        }
    for name, seconds in _timed(steps, torch, repeats).items():
        lines[name]["microseconds per step"] = round(seconds * 1e6, 1)
    return [{"data set": dataset, **line} for line in lines.values()]


def _varnn_step(architecture: Architecture, torch: Any, batch: int) -> Callable[[], object]:
    weights = cell.Weights(
        **{name: torch.tensor(one) for name, one in initial_weights(architecture, seed=0).as_dict().items()}
    )
    x = torch.randn(batch, architecture.n_inputs)
    state = cell.initial_state(architecture, torch.zeros(batch, architecture.hidden_size))
    y = torch.randn(batch, 1)

    def step() -> object:
        projected = cell.project(architecture, weights, x)
        y_hat, u = cell.predict(architecture, weights, projected, state)
        return cell.update(architecture, weights, y - y_hat, u, state)

    return step


def _recurrent_step(network: Any, torch: Any, batch: int, d: int, k: int, name: str) -> Callable[[], object]:
    x, head = torch.randn(batch, 1, d), torch.nn.Linear(k, 1)
    state = torch.zeros(1, batch, k)
    states = (state, state) if name == "lstm" else state

    def step() -> object:
        output, after = network(x, states)
        return head(output[:, 0]), after

    return step


def _timed(steps: Mapping[str, Callable[[], object]], torch: Any, repeats: int) -> dict[str, float]:
    """Time the steps, all of them warm, in a new order each round; give medians."""
    # In one order, or one that is rotated, each would always find the caches as the same model left them.
    draw = np.random.default_rng(0)
    spent: dict[str, list[float]] = {name: [] for name in steps}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.inference_mode():
        for step in steps.values():
            for _ in range(WARM_UP):
                step()
        for _ in range(repeats):
            for name in draw.permutation(list(steps)):
                step = steps[name]
                began = time.perf_counter()
                step()
                spent[name].append(time.perf_counter() - began)
    torch.set_num_threads(threads)
    return {name: float(np.median(values)) for name, values in spent.items()}
