"""One-step predictions of every row of a long panel: both of ours against windows made as copies."""

import gc
import importlib
from collections.abc import Callable
from dataclasses import asdict
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.fresh import call, peak_above
from benchmarks.record import Measured, significant, timed_rows
from benchmarks.speed.model import untrained
from benchmarks.speed.rounds import Contender, agree, interleave
from varnn.network import cell
from varnn.network.cell import Architecture, Weights
from varnn.network.scoring import score

ROWS, INPUTS, HIDDEN, WINDOW = 1_000_000, 27, 128, 5
STEPWISE = "varnn NumPy"
NUMPY, TORCH, KERAS = "copies, NumPy", "copies, torch module", "copies, Keras predict()"
NEEDS = {STEPWISE: "numpy", NUMPY: "numpy", TORCH: "torch", KERAS: "tensorflow"}
WINDOWS_AT_ONCE = 1024  # so that a layer of them stays in a core's cache, as it does in ours

Floats = npt.NDArray[np.float32]


def measure(*, threads: int, rounds: int, rows: int = ROWS) -> dict[str, Any]:
    """Time the scoring of all rows, and take its peak of memory in processes of their own.

    Parameters
    ----------
    threads
        Threads the process was started with.
    rounds, rows
        Interleaved rounds, and rows to score.
    """
    names = [name for name, package in NEEDS.items() if find_spec(package) is not None]
    contenders = [_contender(name, rows, threads) for name in names]
    difference = agree(contenders, calls=1, tolerance=1e-4)
    timings = interleave(contenders, rounds=rounds, calls=1)
    lines = timed_rows(timings, [STEPWISE])
    peaks = {
        name: call("benchmarks.speed.score:peak", threads=threads, name=name, rows=rows) for name in names
    }
    for line, one in zip(lines, timings, strict=True):
        del line["median us"], line["best us"]
        line["rows per s"] = significant(rows / one.best)
        most = peaks[one.name]
        line["peak MB"] = None if most is None else significant(most / 1e6)
        line[f"memory / {STEPWISE}"] = None if most is None else significant(most / peaks[STEPWISE])
    measured = Measured(
        name="score",
        title=f"Scoring {rows:,} rows: RM, {INPUTS} inputs, {HIDDEN} hidden, window {WINDOW}; "
        "memory beyond that of the rows themselves",
        threads=threads,
        rows=lines,
        checks=[f"predictions at all full windows agree to {difference:.1g} of the largest"],
        absent=[f"{name} ({package})" for name, package in NEEDS.items() if name not in names],
    )
    return asdict(measured)


def peak(*, threads: int, name: str, rows: int) -> float | None:
    """Most memory one contender takes beyond the rows themselves, in bytes."""
    work = _contender(name, rows, threads).call
    _contender(name, 2 * WINDOW, threads).call(0)  # what is loaded on first use is not the work's own
    gc.collect()
    return peak_above(lambda: work(0))[1]


def _contender(name: str, rows: int, threads: int) -> Contender:
    """Contender that predicts the last row of every full window, (N - w + 1,)."""
    generator = np.random.default_rng(0)
    inputs = generator.uniform(-1, 1, (rows, INPUTS)).astype(np.float32)
    target = inputs[:, 0] * inputs[:, 1]
    fitted = untrained("RM", INPUTS, HIDDEN, WINDOW)
    architecture = fitted.architecture
    arguments = (architecture, fitted.weights, inputs, target, np.zeros(rows, np.int64), WINDOW)
    if name == STEPWISE:
        return Contender(name, lambda number: score(*arguments).predictions[0, WINDOW - 1 :])
    weights = Weights(**{name: matrix[0] for name, matrix in fitted.weights.as_dict().items()})
    make = {NUMPY: _numpy, TORCH: _torch, KERAS: _keras}[name]
    predict = make(architecture, weights, threads)

    def copied(number: int) -> Floats:
        view = np.lib.stride_tricks.sliding_window_view(inputs, WINDOW, axis=0)  # (N - w + 1, D, w)
        windows = np.ascontiguousarray(view.transpose(0, 2, 1))
        labels = np.lib.stride_tricks.sliding_window_view(target, WINDOW).copy()
        return predict(windows, labels)

    return Contender(name, copied)


Predict = Callable[[Floats, Floats], Floats]  # windows (n, w, D) and labels (n, w) -> (n,)


def _numpy(architecture: Architecture, weights: Weights, threads: int) -> Predict:
    def predict(windows: Floats, labels: Floats) -> Floats:
        answers = []
        for begin in range(0, len(windows), WINDOWS_AT_ONCE):
            here = slice(begin, begin + WINDOWS_AT_ONCE)
            x, y = windows[here], labels[here]
            state = None
            for step in range(WINDOW):
                projected = cell.project(architecture, weights, x[:, step])
                state = cell.initial_state(architecture, projected) if state is None else state
                y_hat, u = cell.predict(architecture, weights, projected, state)
                state = cell.update(architecture, weights, y[:, step : step + 1] - y_hat, u, state)
            answers.append(y_hat[:, 0])
        return np.concatenate(answers)

    return predict


def _torch(architecture: Architecture, weights: Weights, threads: int) -> Predict:
    import torch

    from benchmarks.speed.train_torch import PlainVarnn

    torch.set_num_threads(threads)
    module = PlainVarnn(architecture, weights)

    def predict(windows: Floats, labels: Floats) -> Floats:
        both = (torch.split(torch.from_numpy(one), WINDOWS_AT_ONCE) for one in (windows, labels))
        with torch.inference_mode():
            answers = [module(x, y)[:, 0] for x, y in zip(*both, strict=True)]
            return np.asarray(torch.cat(answers).numpy())

    return predict


def _keras(architecture: Architecture, weights: Weights, threads: int) -> Predict:
    from benchmarks.speed.train_keras import varnn_model

    model = varnn_model(importlib.import_module("keras"), architecture, weights, WINDOW)

    def predict(windows: Floats, labels: Floats) -> Floats:
        answers = model.predict([windows, labels], batch_size=WINDOWS_AT_ONCE, verbose=0)
        return np.asarray(answers[:, 0])

    return predict
