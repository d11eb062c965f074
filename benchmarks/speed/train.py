"""One training step, by all contenders: gather the windows, forward, backward, Adam."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from benchmarks.record import Measured, Row, significant, timed_rows
from benchmarks.speed.rounds import Contender, agree, interleave
from benchmarks.speed.train_case import ROWS, Case
from varnn.errors import require

CASES = {
    "train RM": Case("RM"),
    "train RM batch 1024": Case("RM", batch=1024),
    "train RM 375 inputs": Case("RM", n_inputs=375),
    "train ARM+AM window 24": Case("ARM+AM", window=24),
}
SAME_STEPS, SAME_TO = 20, 1e-3  # float32: rounding grows from step to step
# Loss and gradients are the same, but Keras' Adam adds its epsilon elsewhere and rounds its correction
# for the start at zero to single precision; rectifiers then tip over, and losses drift apart.
SAME_AS_KERAS_TO = 5e-3


def measure(name: str, *, threads: int, rounds: int, calls: int) -> dict[str, Any]:
    """Time a training step of one of `CASES`; runs in a process that has that many threads.

    Parameters
    ----------
    name
        Which case.
    threads
        Threads the process was started with.
    rounds, calls
        Interleaved rounds, and steps of each contender in one.
    """
    torch = require("torch", extra="train", purpose="the benchmark of training")
    from benchmarks.speed import train_torch

    torch.set_num_threads(threads)
    case = CASES[name]
    ours, absent = train_torch.engines(case)
    same = [*ours, train_torch.naive(case)]
    difference = agree(same, calls=SAME_STEPS, tolerance=SAME_TO)
    checks = [_check(difference, same)]
    peers = train_torch.peers(case)
    try:
        from benchmarks.speed import train_keras

        keras = train_keras.contenders(case)
    except ImportError:
        absent.append("Keras VARNN, SimpleRNN, GRU, LSTM (tensorflow)")
    else:
        (anew, *_), _ = train_torch.engines(case)  # from the first weights again
        pair = [anew, *(one for one in keras if one.name == train_keras.VARNN_STEP)]
        checks.append(_check(agree(pair, calls=SAME_STEPS, tolerance=SAME_AS_KERAS_TO), pair))
        peers += keras
    everyone = [*same, *peers, train_torch.products(case)]
    timings = interleave(everyone, rounds=rounds, calls=calls, warm_up=5, first=SAME_STEPS)
    compared = (train_torch.FUSED, train_torch.COMPILED, train_torch.PRODUCTS)
    measured = Measured(
        name=name,
        title=f"One training step: {case.title}",
        threads=threads,
        rows=timed_rows(timings, compared),
        checks=checks,
        absent=absent,
    )
    return asdict(measured)


def _check(difference: float, same: Sequence[Contender]) -> str:
    names = "; ".join(one.name for one in same)
    return f"losses of the first {SAME_STEPS} steps agree to {difference:.1g} of the largest: {names}"


def measure_fit(*, threads: int, rounds: int, epochs: int = 50, rows: int = ROWS * 5 // 4) -> dict[str, Any]:
    """Time whole fits on data of the Appliances set's size: 27 inputs, a fifth held out to validate.

    Parameters
    ----------
    threads
        Threads the process was started with; training itself keeps torch to one.
    rounds, epochs, rows
        Fits of each engine, passes over the rows, and rows.
    """
    require("torch", extra="train", purpose="the benchmark of training")
    from benchmarks.speed import train_torch
    from varnn.estimator.regressor import VARNNRegressor

    generator = np.random.default_rng(0)
    X = generator.uniform(-1, 1, (rows, 27))
    y = X[:, 0] * X[:, 1] + np.sin(np.arange(rows) / 300)
    engines, absent = train_torch.engines(Case("RM"))
    losses: dict[str, float] = {}

    def contender(name: str) -> Contender:
        engine = name.removeprefix("varnn ")

        def fit(number: int) -> float:
            model = VARNNRegressor.paper("RM", epochs=epochs, engine=engine).fit(X, y)
            losses[name] = model.history_[0]["loss"]
            return losses[name]

        return Contender(name, fit)

    contenders = [contender(one.name) for one in engines]
    VARNNRegressor.paper("RM", epochs=1).fit(X[:500], y[:500])  # compiles what is to be compiled
    timings = interleave(contenders, rounds=rounds, calls=1)
    spread = max(losses.values()) / min(losses.values()) - 1
    lines: list[Row] = [
        {"contender": one.name, "median s": significant(one.median), "best s": significant(one.best)}
        for one in timings
    ]
    measured = Measured(
        name="train fit",
        title=f"VARNNRegressor.paper('RM').fit: {epochs} epochs on {rows:,} rows of 27 inputs, "
        f"{rows * 4 // 5:,} of them to train on",
        threads=threads,
        rows=lines,
        checks=[f"losses of the first epoch agree to {spread:.1g}"],
        absent=absent,
    )
    return asdict(measured)
