"""What the kernel and this side both know: its constants, and how a member lies in memory."""

from typing import NamedTuple

import numpy as np

from varnn.network.cell import Architecture
from varnn.network.training.config import TrainConfig

MOST_AT_ONCE = 128  # windows of a batch: more need more code, and gain nothing
TILE = 8  # windows that one instruction takes

# `struct Member` of train.cu, field by field.
MEMBER = np.dtype(
    [
        ("x", np.uint64),  # rows (N, D)
        ("y", np.uint64),  # labels (N,), NaN is missing
        ("order", np.uint64),  # window ends of all epochs, end to end
        ("first", np.uint64),  # where the windows of each epoch begin in it, and the end of the last
        ("vx", np.uint64),  # validation rows, and windows; 0 where there are none
        ("vy", np.uint64),
        ("vends", np.uint64),
        ("state", np.uint64),  # (STATES, P)
        ("losses", np.uint64),  # (epochs,), written as epochs end
        ("vlosses", np.uint64),
        ("progress", np.uint64),  # PROGRESS numbers
        ("stop", np.uint64),  # not 0 ends the training
        ("vwindows", np.int32),
        ("batch", np.int32),
        ("epochs", np.int32),  # of the schedule
        ("last", np.int32),  # epochs to go through
        ("patience", np.int32),  # 0 is never
        ("cosine", np.int32),
        ("rate", np.float32),
        ("clip", np.float32),  # 0 is none
        ("keep", np.float32),  # of the average of weights; 0 is none
    ],
    align=True,
)
WEIGHTS, MEAN, SQUARE, AVERAGE, BEST = range(5)  # rows of `state`
STATES = 6  # the last one is the kernel's own, for sums
DONE, BEST_EPOCH, ENDED = range(3)  # numbers of `progress`
PROGRESS = 4  # one more than is used, so that each member has 16 bytes


class Shape(NamedTuple):
    """What a kernel is compiled for."""

    inputs: int
    hidden: int
    memory: int
    activation_memory: bool
    accumulate: bool
    relu: bool
    window: int
    loss_rows: int

    @classmethod
    def of(cls, architecture: Architecture, config: TrainConfig) -> "Shape":
        """Shape of a cell on windows."""
        return cls(
            architecture.n_inputs,
            architecture.hidden_size,
            architecture.memory_size,
            architecture.activation_memory,
            architecture.accumulate,
            architecture.memory_activation == "relu",
            int(config.window),
            int(config.loss_rows),
        )

    def constants(self, at_once: int) -> dict[str, int]:
        """Constants of the source, by name.

        Examples
        --------
        >>> Shape(3, 8, 4, True, False, True, 6, 2).constants(12)["N_B"]
        12
        """
        names = ("N_D", "N_K", "N_M", "N_AM", "N_ACC", "N_RELU", "N_WIN", "N_LOSS")
        return {**dict(zip(names, map(int, self), strict=True)), "N_B": at_once}


def windows_at_once(batch: int) -> tuple[int, ...]:
    """Windows of a batch that a block may take at once, most first: as even shares of it, in whole tiles.

    Examples
    --------
    >>> windows_at_once(9), windows_at_once(20), windows_at_once(64)
    ((16, 8), (24, 16, 8), (64, 32, 24, 16, 8))
    """
    fewest = -(-batch // MOST_AT_ONCE)
    shares = (-(-batch // (passes * TILE)) * TILE for passes in range(fewest, -(-batch // TILE) + 1))
    return tuple(dict.fromkeys(shares))
