"""Which windows a member learns from, in which order and at which learning rate: all from its seed."""

import math
from collections.abc import Iterator
from functools import cache

import numpy as np

from varnn.data.panel import Panel
from varnn.data.windows import Rows, loss_window_ends, training_ends
from varnn.network.training.config import TrainConfig

_FEW_ROWS = 1 << 17


def orders(training: Panel, config: TrainConfig, seed: int) -> Iterator[Rows]:
    """Windows of one epoch after the other, each in the order a member goes through them.

    Examples
    --------
    >>> panel = Panel.from_arrays(None, np.arange(6.0))
    >>> first, second = orders(panel, TrainConfig(window=3, epochs=2), seed=1)
    >>> sorted(first.tolist()), first.tolist() == second.tolist()
    ([2, 3, 4, 5], False)
    """
    generator = np.random.default_rng([seed, 1])  # apart from the stream the weights came from
    known: dict[int, Rows] = {}
    for epoch in range(1, config.epochs + 1):
        offset = 0 if config.loss_rows == 1 else _offset(epoch, config.loss_rows)
        windows = known[offset] if offset in known else _windows(training, config, offset)
        if len(training) <= _FEW_ROWS:  # there are few offsets; of many rows they would take much room
            known[offset] = windows
        yield generator.permutation(windows)


def learning_rate_at(config: TrainConfig, epoch: int, batch: int, batches: int) -> float:
    """Learning rate of one of an epoch's batches; epochs count from 1, batches from 0.

    Examples
    --------
    >>> config = TrainConfig(epochs=2, schedule="cosine", learning_rate=0.1)
    >>> [round(learning_rate_at(config, epoch, 0, 9), 3) for epoch in (1, 2)]
    [0.1, 0.05]
    """
    if config.schedule != "cosine":
        return config.learning_rate
    done = (epoch - 1 + batch / batches) / config.epochs
    return config.learning_rate * 0.5 * (1 + math.cos(math.pi * done))


@cache
def _offset(epoch: int, loss_rows: int) -> int:
    """Draw the shift of an epoch's windows, from the epoch alone: members have the same number of windows."""
    return int(np.random.default_rng(epoch).integers(loss_rows))


def _windows(training: Panel, config: TrainConfig, offset: int) -> Rows:
    """List the windows of an epoch: all of them, or (several loss rows) a shifted comb of them."""
    if config.loss_rows == 1:
        return training_ends(training, config.window)
    ends = loss_window_ends(training, config.window, config.loss_rows, offset)
    if len(ends) == 0:  # shifted beyond the end of the only windows there are
        ends = loss_window_ends(training, config.window, config.loss_rows, 0)
    return ends
