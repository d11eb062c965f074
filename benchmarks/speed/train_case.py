"""What every contender of the training benchmark is given: sizes, rows, batches and first weights."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from varnn.network.cell import Architecture, Variant, Weights, initial_weights

LEARNING_RATE = 3e-3
ROWS = 15_788  # training rows of the Appliances data
BATCHES = 512  # drawn beforehand, then used again and again


@dataclass(frozen=True)
class Case:
    """One setting of the training benchmark.

    Examples
    --------
    >>> case = Case("RM", n_inputs=3, window=4, batch=8)
    >>> case.ends.shape, case.inputs.shape
    ((512, 8), (15788, 3))
    """

    variant: Variant = "RM"
    n_inputs: int = 27
    window: int = 5
    batch: int = 128
    hidden_size: int = 128

    @property
    def title(self) -> str:
        """Say the sizes."""
        return (
            f"{self.variant}, {self.n_inputs} inputs, {self.hidden_size} hidden, "
            f"window {self.window}, batch {self.batch}"
        )

    @cached_property
    def architecture(self) -> Architecture:
        """The cell."""
        return Architecture.of(self.variant, n_inputs=self.n_inputs, hidden_size=self.hidden_size)

    @cached_property
    def inputs(self) -> npt.NDArray[np.float32]:
        """All rows' inputs, (N, D), scaled as min-max scaling leaves them."""
        return np.random.default_rng(0).uniform(-1, 1, (ROWS, self.n_inputs)).astype(np.float32)

    @cached_property
    def target(self) -> npt.NDArray[np.float32]:
        """All rows' labels, (N,): some of the inputs, and a drift that only past errors tell of."""
        drift = np.sin(np.arange(ROWS) / 300)
        return (0.5 * self.inputs[:, 0] * self.inputs[:, 1] + 0.5 * drift).astype(np.float32)

    @cached_property
    def ends(self) -> npt.NDArray[np.int64]:
        """The last rows of the windows of each batch, (BATCHES, B)."""
        return np.random.default_rng(1).integers(self.window - 1, ROWS, (BATCHES, self.batch))

    def weights(self) -> Weights:
        """Draw the weights every VARNN starts from."""
        return initial_weights(self.architecture, seed=2025)
