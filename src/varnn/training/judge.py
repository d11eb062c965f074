"""The error on validation rows, by which the epoch to keep is chosen."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from varnn.cell import Architecture, look_ahead
from varnn.engine import unpack
from varnn.engine.scoring import score
from varnn.errors import DataError
from varnn.panel import Panel
from varnn.training.config import put_on
from varnn.windows import window_ends


class Judge:
    """Mean squared error of a panel's one-step predictions; of a cell that looks ahead, of those too."""

    def __init__(
        self,
        architecture: Architecture,
        panel: Panel,
        window: int,
        device: torch.device,
        ahead: npt.NDArray[np.float32] | None = None,
    ) -> None:
        self.architecture = architecture
        self.window = window
        # Rows with a full window, as in training; where a part is too short for any, all its rows.
        scored = window_ends(panel, window)
        if len(scored) == 0:
            scored = window_ends(panel, 1)
        if len(scored) == 0:
            raise DataError(
                "the validation rows must hold at least one known target, and they hold none. "
                "Change validation_fraction, or give a `validation` panel."
            )
        self.scored = scored
        self.on_host = device.type == "cpu"
        arrays = (panel.inputs, panel.target, panel.first_rows)
        self.arrays: tuple[Any, ...] = (
            arrays if self.on_host else tuple(put_on(device, one) for one in arrays)
        )
        self.target: npt.NDArray[np.float64] = panel.target[scored].astype(np.float64)
        self.ahead = None if ahead is None else ahead[scored]

    def __call__(self, flat: torch.Tensor) -> list[float]:
        """Score the weights in ``flat``, ([E,] P); on the CPU in NumPy, on views of the same memory."""
        members = flat.reshape(-1, flat.shape[-1])
        weights = unpack(self.architecture, members.numpy() if self.on_host else members)
        inputs, target, first_rows = self.arrays
        rows = (inputs, target, first_rows)
        kept = self.ahead is not None
        scores = score(self.architecture, weights, *rows, self.window, keep_hidden=kept)
        losses = np.square(self.target - self._scored(scores.predictions)).mean(axis=1)
        if self.ahead is not None:
            later = np.square(self.ahead - self._scored(look_ahead(weights, scores.hidden)))
            losses += np.nansum(later, axis=(1, 2)) / max(1, np.count_nonzero(~np.isnan(self.ahead)))
        return [float(one) for one in losses]

    def _scored(self, values: Any) -> npt.NDArray[np.float32]:
        """Bring values (E, N, ...) home, and keep those of the rows that are scored."""
        return np.asarray(values if self.on_host else values.cpu().numpy())[:, self.scored]
