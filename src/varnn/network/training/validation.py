"""The error on validation rows, by which the epoch to keep is chosen.

With one loss row, each row is predicted from a window of its own. With several, windows are those of
training, and each row but the first and the last few of a series is a loss row of one of them: that takes two
steps a row, not a whole window, and is as good to choose an epoch by. Networks that see other inputs are told
apart row by row, by `error_on_rows`.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch

from varnn.data.chunks import chunks
from varnn.data.panel import Panel
from varnn.data.windows import Rows, loss_window_ends, rows_of, window_ends
from varnn.errors import DataError
from varnn.network.cell import (
    Architecture,
    Weights,
    initial_state,
    look_ahead,
    predict,
    project,
    update,
)
from varnn.network.engines.engine import pack, unpack
from varnn.network.scoring import score
from varnn.network.training.config import TrainConfig, put_on

_HIDDEN_AT_ONCE = 1 << 14  # rows
_WINDOWS_AT_ONCE = 1 << 10


class _Part(NamedTuple):
    """Some rows, with those before them that their windows begin in."""

    arrays: tuple[Any, Any, Any]  # inputs, target and first rows
    scored: Rows  # which of them are scored
    target: npt.NDArray[np.float64]  # theirs
    ahead: npt.NDArray[np.float32] | None  # and that of the rows after each
    weights: npt.NDArray[Any] | float  # how much each counts


class ValidationLoss(Protocol):
    """Mean squared error of a panel's one-step predictions; of a cell that looks ahead, of those too."""

    def __call__(self, flat: torch.Tensor) -> list[float]:
        """Score the weights in ``flat``, ([E,] P)."""
        ...


def validation_loss_of(
    architecture: Architecture,
    panel: Panel,
    config: TrainConfig,
    device: torch.device,
    ahead: npt.NDArray[np.float32] | None = None,
) -> ValidationLoss:
    """Choose how to validate: on windows as of training, where they have several loss rows."""
    if config.loss_rows > 1:
        ends = validation_ends(panel, config)
        if len(ends):
            return LossOfWindows(architecture, panel, ends, config, device, ahead)
    return LossOfRows(architecture, panel, config.window, device, ahead)


def validation_ends(panel: Panel, config: TrainConfig) -> Rows:
    """List the whole windows whose loss rows are scored; none where the rows are too few for any."""
    if config.loss_rows > 1:
        return loss_window_ends(panel, config.window, config.loss_rows, 0)
    return window_ends(panel, config.window)


def error_on_rows(architecture: Architecture, weights: Weights, panel: Panel, window: int) -> float:
    """Mean squared error of one network on a scaled panel, each row predicted from its own window."""
    flat = torch.from_numpy(pack(weights))
    return LossOfRows(architecture, panel, window, flat.device)(flat)[0]


class LossOfRows:
    """Error of all rows, each predicted from its own window."""

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
        weights = panel.weights
        self.known = float(len(scored) if weights is None else weights[scored].sum())
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
            later = None if ahead is None else ahead[here]
            counts = 1.0 if weights is None else weights[here]
            self.parts.append(_Part(arrays, within, target, later, counts))
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
            squares += (part.weights * np.square(errors)).sum(axis=1)
            if part.ahead is not None:
                beyond = part.ahead - self._kept(look_ahead(weights, scores.hidden), part)
                later += np.nansum(np.square(beyond), axis=(1, 2))
        return [float(one) for one in squares / self.known + later / max(1, self.known_ahead)]

    def _kept(self, values: Any, part: _Part) -> npt.NDArray[np.float32]:
        """Bring values (E, N, ...) home, and keep those of the rows that are scored."""
        return np.asarray(values if self.on_host else values.cpu().numpy())[:, part.scored]


class LossOfWindows:
    """Error of the loss rows of some windows."""

    def __init__(
        self,
        architecture: Architecture,
        panel: Panel,
        ends: Rows,
        config: TrainConfig,
        device: torch.device,
        ahead: npt.NDArray[np.float32] | None = None,
    ) -> None:
        self.architecture, self.window, self.loss_rows = architecture, config.window, config.loss_rows
        self.on_host = device.type == "cpu"
        scored = rows_of(ends, self.loss_rows)
        known = ~np.isnan(panel.target[scored])
        self.weights = panel.weights
        counts = known if self.weights is None else self.weights[scored][known]
        self.known = float(counts.sum())
        self.known_ahead = 0 if ahead is None else np.count_nonzero(~np.isnan(ahead[scored]))
        self.any_missing = bool(np.isnan(panel.target).any())
        rows: list[Any] = [panel.inputs, panel.target[:, None], ends.astype(np.int64)]
        if ahead is not None:
            rows.append(ahead)
        if not self.on_host:
            rows = [put_on(device, one) for one in rows]
        self.inputs, self.target, self.ends = rows[:3]
        self.ahead = None if ahead is None else rows[3]

    def __call__(self, flat: torch.Tensor) -> list[float]:
        """Score the weights in ``flat``, ([E,] P); on the CPU in NumPy, on views of the same memory."""
        members = flat.reshape(-1, flat.shape[-1])
        weights = unpack(self.architecture, members.numpy() if self.on_host else members)
        squares = np.zeros((2, len(members)))
        for begin in range(0, len(self.ends), _WINDOWS_AT_ONCE):
            squares += self._squares(weights, self.ends[begin : begin + _WINDOWS_AT_ONCE])
        own, later = squares
        return [float(one) for one in own / self.known + later / max(1, self.known_ahead)]

    def _squares(self, weights: Weights, ends: Any) -> npt.NDArray[np.float64]:
        """Sums of squared errors of windows, their own rows' and those of the rows after: (2, E)."""
        squares, state = np.zeros((2, len(weights.fusion))), None
        for back in range(self.window - 1, -1, -1):
            rows = ends - back
            projected = project(self.architecture, weights, self.inputs[rows])  # (E, B, K)
            if state is None:
                state = initial_state(self.architecture, like=projected)
            y_hat, u = predict(self.architecture, weights, projected, state)
            labels = self.target[rows]  # (B, 1)
            if back < self.loss_rows:
                squares[0] += self._sum(labels, y_hat, self._weights(rows))
                if self.ahead is not None:
                    squares[1] += self._sum(self.ahead[rows], look_ahead(weights, u))
            if back > 0:
                missing = labels != labels if self.any_missing else None
                state = update(self.architecture, weights, labels - y_hat, u, state, missing)
        return squares

    def _weights(self, rows: Any) -> npt.NDArray[Any] | None:
        """How much rows (B,) count: (B, 1)."""
        if self.weights is None:
            return None
        return self.weights[rows if self.on_host else rows.cpu().numpy(), None]

    def _sum(
        self, labels: Any, predictions: Any, weights: npt.NDArray[Any] | None = None
    ) -> npt.NDArray[np.float64]:
        """Sum of squared errors of predictions (E, B, ...) where the label is known, by weight: (E,)."""
        errors = labels - predictions
        if not self.on_host:
            labels, errors = labels.cpu().numpy(), errors.cpu().numpy()
        # A prediction that is NaN must reach the loss, so it is the labels that say what is left out.
        known = np.where(np.isnan(labels), 0, errors)
        squares = np.square(known, dtype=np.float64)
        return np.asarray((squares if weights is None else squares * weights).sum(axis=(1, 2)))
