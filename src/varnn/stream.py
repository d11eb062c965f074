"""predict / observe, one step at a time, on NumPy alone.

A batch prediction of row t starts its memory at zero, w - 1 rows earlier. To give the same number
without going over w rows again, a stream carries w states side by side, one per window that is
under way: each step advances all of them as rows of one small product, reads the prediction from
the oldest, and starts a new one in the place of the one that is done.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from varnn import model_file
from varnn.errors import ConfigError, DataError, ModelFileError
from varnn.fitted import Fitted

Float32 = npt.NDArray[np.float32]


class Stream:
    """A fitted model at work on live data; made by ``model.stream()``.

    ``predict(x)`` may be called any number of times; ``observe(y)`` then closes the step with the
    label of the last x predicted. The results are those of ``model.predict`` on the same rows.

    Parameters
    ----------
    model
        A fitted ``VARNNRegressor``, or its ``fitted_``.
    n_series
        None for one series: x is (D,), y a number. Otherwise n series in step: (n, D) and (n,).

    Examples
    --------
    >>> import numpy as np
    >>> from varnn import VARNNRegressor
    >>> X, y = np.random.default_rng(0).normal(size=(2, 60, 1))
    >>> model = VARNNRegressor(epochs=1, hidden_size=4).fit(X, y[:, 0])
    >>> live = model.stream()
    >>> predictions = []
    >>> for x, label in zip(X, y[:, 0]):
    ...     predictions.append(live.predict(x))
    ...     innovation = live.observe(label)
    >>> bool(np.allclose(predictions, model.predict(X, y[:, 0]), atol=1e-5))
    True
    """

    def __init__(self, model: Any, n_series: int | None = None) -> None:
        if n_series is not None and n_series < 1:
            raise ConfigError(f"n_series must be at least 1; got {n_series}.")
        self.model: Fitted = getattr(model, "fitted_", model)
        self.n_series = n_series
        self.steps = 0  # rows observed so far
        self._width = 1 if n_series is None else n_series
        self._pending: Float32 | None = None  # the scaled x that was predicted last
        self._answer: Any = math.nan
        self._lay_out()

    @property
    def n_inputs(self) -> int:
        """Length of one x."""
        return self.model.architecture.n_inputs

    def predict(self, x: npt.ArrayLike | Mapping[str, float]) -> Any:
        """Predict the label of x from what was observed so far; changes nothing that is observed.

        Parameters
        ----------
        x
            Inputs in the order of ``model.feature_names_in_``, or (one series) a mapping by name:
            (D,) for one series, (n, D) for a fleet. All numbers must be finite.

        Returns
        -------
        float or array of shape (n,)
            In the target's units.
        """
        values = self._inputs(x)
        self._advance(self.model.scaling.inputs(values))
        # A fleet's caller gets an array of its own: writing into it must not change the innovation.
        return self._answer if self.n_series is None else self._answer.copy()

    def observe(self, y: Any) -> Any:
        """Take in the label of the last x predicted; NaN or None holds the memory.

        Returns
        -------
        float or array of shape (n,)
            The innovation y - y_hat in the target's units, NaN where the label is missing.
        """
        if self._pending is None:
            raise DataError(
                "observe(y) closes a step that predict(x) opened; no x was predicted since the last "
                "observe. Call predict(x) first."
            )
        labels = self._labels(y)
        innovation = labels - self._answer
        self._remember(labels)
        self.steps += 1
        self._pending = None
        fresh = self.steps % self.model.window
        self._residual[..., fresh, :, :] = 0
        if self._activation is not None:
            self._activation[..., fresh, :, :] = 0
        return innovation

    def snapshot(self) -> bytes:
        """Give the whole state as bytes, to go on elsewhere with :meth:`restore`."""
        tensors = {"residual": self._residual}
        if self._activation is not None:
            tensors["activation"] = self._activation
        if self._pending is not None:
            tensors["pending"] = self._pending
        header = {
            "format": model_file.FORMAT,
            "steps": self.steps,
            "n_series": self.n_series,
            "model": self.model.fingerprint,
        }
        return model_file.to_bytes(tensors, header)

    @classmethod
    def restore(cls, model: Any, blob: bytes) -> "Stream":
        """Go on from a snapshot, with the model it was taken from.

        Examples
        --------
        >>> import numpy as np
        >>> from varnn import VARNNRegressor
        >>> X = np.random.default_rng(0).normal(size=(60, 2))
        >>> model = VARNNRegressor(epochs=1, hidden_size=4).fit(X, X[:, 0])
        >>> live = model.stream()
        >>> y_hat = live.predict([0.1, 0.2])
        >>> Stream.restore(model, live.snapshot()).observe(0.3) == live.observe(0.3)
        True
        """
        tensors, header = model_file.from_bytes(blob, "the snapshot")
        fitted: Fitted = getattr(model, "fitted_", model)
        if header.get("model") != fitted.fingerprint:
            raise ModelFileError(
                "a snapshot can only go on with the model it was taken from; this one belongs to another. "
                "Load that model, or start a new stream."
            )
        stream = cls(fitted, header["n_series"])
        stream.steps = header["steps"]
        stream._residual[...] = tensors["residual"]
        if stream._activation is not None:
            stream._activation[...] = tensors["activation"]
        if "pending" in tensors:
            stream._advance(tensors["pending"])
        return stream

    # Layout: (members,) windows under way, series, size. The members' axis is there for ensembles
    # only, and every product sees windows x series as the rows of one matrix.

    def _lay_out(self) -> None:
        cell, weights = self.model.architecture, self.model.weights
        members = len(weights.fusion)
        self._members: tuple[int, ...] = (members,) if members > 1 else ()
        self._weights = {
            name: np.ascontiguousarray(array if members > 1 else array[0])
            for name, array in weights.as_dict().items()
        }
        fusion = self._weights["fusion"]
        memory_from, memory_to = cell.n_inputs, cell.n_inputs + cell.memory_size
        self._from_inputs = fusion[..., :memory_from, :]
        self._from_memory = fusion[..., memory_from:memory_to, :]
        self._from_activation = fusion[..., memory_to:, :]
        grid = (*self._members, self.model.window, self._width)
        self._residual: Float32 = np.zeros((*grid, cell.memory_size), np.float32)
        self._hidden: Float32 = np.zeros((*grid, cell.hidden_size), np.float32)
        self._predicted: Float32 = np.zeros((*grid, 1), np.float32)
        self._activation: Float32 | None = np.zeros_like(self._hidden) if cell.activation_memory else None

    def _oldest(self) -> int:
        """Give the place of the window that began first; the very first ones are still short."""
        window = self.model.window
        return 0 if self.steps < window else (self.steps + 1) % window

    def _inputs(self, x: Any) -> npt.NDArray[np.float64]:
        if isinstance(x, Mapping):
            missing = [name for name in self.model.input_names if name not in x]
            if missing:
                raise DataError(f"x must hold every input of the model; it lacks {missing[:5]}.")
            x = [x[name] for name in self.model.input_names]
        try:
            values = np.asarray(x, dtype=np.float64)
        except (TypeError, ValueError):
            raise DataError(f"x must hold numbers only; got {x!r}.") from None
        shape = (self.n_inputs,) if self.n_series is None else (self.n_series, self.n_inputs)
        if values.shape != shape:
            raise DataError(f"x must have shape {shape}; got {values.shape}.")
        if not np.isfinite(values).all():
            raise DataError(
                f"x must be finite; position {np.argwhere(~np.isfinite(values))[0].tolist()} is not. "
                "Fill it first, for example with the last known value."
            )
        return values.reshape(self._width, self.n_inputs)

    def _labels(self, y: Any) -> Any:
        if self.n_series is None:
            try:
                label = math.nan if y is None else float(y)
            except (TypeError, ValueError):
                raise DataError(f"y must be a number, None or NaN; got {y!r}.") from None
            if math.isinf(label):
                raise DataError("y must be finite, or NaN where the label is missing; got infinity.")
            return label
        try:
            labels = np.asarray(y, dtype=np.float64)
        except (TypeError, ValueError):
            raise DataError("y must hold numbers, None or NaN only.") from None
        if labels.shape != (self.n_series,):
            raise DataError(f"y must have shape ({self.n_series},); got {labels.shape}.")
        if np.isinf(labels).any():
            raise DataError("y must be finite, or NaN where the label is missing; it holds infinity.")
        return labels

    def _advance(self, scaled: Float32) -> None:
        """Compute the hidden layer and the prediction of every window under way."""
        cell, weights = self.model.architecture, self._weights
        rows = (*self._members, self.model.window * self._width)
        hidden = self._hidden.reshape(*rows, cell.hidden_size)
        np.matmul(self._residual.reshape(*rows, cell.memory_size), self._from_memory, out=hidden)
        if self._activation is not None:
            hidden += self._activation.reshape(*rows, cell.hidden_size) @ self._from_activation
        projected = scaled @ self._from_inputs + weights["fusion_bias"]  # (..., n, K)
        self._hidden += projected if self._width == 1 and not self._members else projected[..., None, :, :]
        np.maximum(hidden, 0, out=hidden)
        predicted = self._predicted.reshape(*rows, 1)
        np.matmul(hidden, weights["readout"], out=predicted)
        predicted += weights["readout_bias"]
        self._pending = scaled
        self._answer = self._read()

    def _read(self) -> Any:
        """Read the prediction of the oldest window, in the target's units."""
        now = self._predicted[..., self._oldest(), :, 0]  # (..., n)
        if self._members:
            now = now.mean(axis=0, dtype=np.float64)
        if self.n_series is None:
            scaling = self.model.scaling
            return float(now[0]) * scaling.target_scale + scaling.target_offset
        return self.model.scaling.restore(now)

    def _remember(self, labels: Any) -> None:
        """Turn the errors of every window under way into its next memory."""
        cell, weights = self.model.architecture, self._weights
        if self._activation is not None:
            self._hidden, self._activation = self._activation, self._hidden
        if cell.residual == "none":
            return
        if self.n_series is None:
            if math.isnan(labels):
                return
            missing = None
            labels = np.array([labels])
        else:
            missing = np.isnan(labels)
        error = self.model.scaling.target(labels)[:, None] - self._predicted  # (..., w, n, 1)
        if cell.residual == "scalar":
            memory = error
        else:
            memory = error * self._spread(weights["error"]) + self._spread(weights["error_bias"])
            if cell.accumulate:
                rows = (*self._members, self.model.window * self._width, cell.memory_size)
                memory += (self._residual.reshape(rows) @ weights["carry"]).reshape(memory.shape)
            if cell.memory_activation == "relu":
                np.maximum(memory, 0, out=memory)
            else:
                np.tanh(memory, out=memory)
        if missing is not None and missing.any():
            memory[..., missing, :] = self._residual[..., missing, :]
        self._residual = memory

    def _spread(self, matrix: Float32) -> Float32:
        """Give a member's one-row matrix the axes of the grid: (..., 1, M) -> (..., 1, 1, M)."""
        return matrix[..., None, :, :] if self._members else matrix
