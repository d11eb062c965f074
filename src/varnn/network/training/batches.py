"""Which windows a member learns from, in which order and at which learning rate: all from its seed."""

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from varnn.data.panel import Panel
from varnn.data.windows import Rows, loss_window_ends, training_ends
from varnn.network.training.config import TrainConfig

_FEW = 1 << 20  # rows whose windows are kept from one epoch to the next


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
    listed: dict[int, Rows] = {}  # by their shift
    for epoch in range(1, config.epochs + 1):
        shift = _shift(epoch, config.loss_rows)
        ends = listed[shift] if shift in listed else _windows(training, config, shift)
        if len(training) <= _FEW:
            listed[shift] = ends
        yield generator.permutation(ends)


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


@lru_cache(maxsize=1 << 14)
def _shift(epoch: int, loss_rows: int) -> int:
    """Rows by which an epoch's windows are shifted; of the epoch alone, so that members have equally many."""
    return int(np.random.default_rng(epoch).integers(loss_rows)) if loss_rows > 1 else 0


def _windows(training: Panel, config: TrainConfig, shift: int) -> Rows:
    """List the windows of an epoch: all of them, or (several loss rows) a shifted comb of them."""
    if config.loss_rows == 1:
        return training_ends(training, config.window)
    ends = loss_window_ends(training, config.window, config.loss_rows, shift)
    if len(ends) == 0:  # shifted beyond the end of the only windows there are
        ends = loss_window_ends(training, config.window, config.loss_rows, 0)
    return ends
