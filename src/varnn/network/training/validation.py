"""The error on validation rows, by which the epoch to keep is chosen."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from varnn.data.chunks import chunks
from varnn.data.panel import Panel
from varnn.data.windows import Rows, window_ends
from varnn.errors import DataError
from varnn.network.cell import Architecture, look_ahead
from varnn.network.engines.engine import unpack
from varnn.network.scoring import score
from varnn.network.training.config import put_on

_HIDDEN_AT_ONCE = 1 << 14  # rows


class _Part(NamedTuple):
    """Some rows, with those before them that their windows begin in."""

    arrays: tuple[Any, Any, Any]  # inputs, target and first rows
    scored: Rows  # which of them are scored
    target: npt.NDArray[np.float64]  # theirs
    ahead: npt.NDArray[np.float32] | None  # and that of the rows after each


class ValidationLoss:
    """Mean squared error of a panel's one-step predictions; of a cell that looks ahead, of those too."""

    def __init__(
        self,
        architecture: Architecture,
        panel: Panel,
        window: int,
        device: torch.device,
        ahead: npt.NDArray[np.float32] | None = None,
    ) -> None:
        self.architecture, self.window = architecture, window
        # Rows with a full window, as in training; where a part is too short for any, all its rows.
        scored = window_ends(panel, window)
        if len(scored) == 0:
            scored = window_ends(panel, 1)
        if len(scored) == 0:
            raise DataError(
                "the validation rows must hold at least one known target, and they hold none. "
                "Change validation_fraction, or give a `validation` panel."
            )
        self.on_host = device.type == "cpu"
        self.known = len(scored)
        self.parts = []
        # Looking ahead, hidden layers are needed: of so many rows at a time.
        most = len(panel) if ahead is None else _HIDDEN_AT_ONCE
        for one in chunks(panel, most=most, context=window - 1):
            first, last = np.searchsorted(scored, [one.rows.start, one.rows.stop])
            here = scored[first:last]
            arrays: tuple[Any, Any, Any] = (one.panel.inputs, one.panel.target, one.panel.first_rows)
            if not self.on_host:
                arrays = (put_on(device, arrays[0]), put_on(device, arrays[1]), put_on(device, arrays[2]))
            within, target = here - one.rows.start + one.context, panel.target[here].astype(np.float64)
            self.parts.append(_Part(arrays, within, target, None if ahead is None else ahead[here]))
        self.known_ahead = 0 if ahead is None else np.count_nonzero(~np.isnan(ahead[scored]))

    def __call__(self, flat: torch.Tensor) -> list[float]:
        """Score the weights in ``flat``, ([E,] P); on the CPU in NumPy, on views of the same memory."""
        members = flat.reshape(-1, flat.shape[-1])
        weights = unpack(self.architecture, members.numpy() if self.on_host else members)
        squares, later = np.zeros(len(members)), np.zeros(len(members))
        for part in self.parts:
            rows, looks_ahead = part.arrays, part.ahead is not None
            scores = score(self.architecture, weights, *rows, self.window, keep_hidden=looks_ahead)
            errors = part.target - self._kept(scores.predictions, part)
            squares += np.square(errors).sum(axis=1)
            if part.ahead is not None:
                beyond = part.ahead - self._kept(look_ahead(weights, scores.hidden), part)
                later += np.nansum(np.square(beyond), axis=(1, 2))
        return [float(one) for one in squares / self.known + later / max(1, self.known_ahead)]

    def _kept(self, values: Any, part: _Part) -> npt.NDArray[np.float32]:
        """Bring values (E, N, ...) home, and keep those of the rows that are scored."""
        return np.asarray(values if self.on_host else values.cpu().numpy())[:, part.scored]
