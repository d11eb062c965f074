"""Ring buffer of the latest rows of a stream, which a forecast from its end is made from."""

from typing import Any

import numpy as np
import numpy.typing as npt

from varnn._types import FloatArray
from varnn.data.panel import Panel
from varnn.errors import DataError
from varnn.model.calendar import has_times

_NO_TIME = np.datetime64("NaT", "us")  # microseconds: nanoseconds end in the year 2262


class Recent:
    """Ring buffer of the last rows of n series in step.

    Parameters
    ----------
    rows : int
        How many to keep.
    n_series, n_inputs : int
        Series in step, and inputs a row has.
    input_rows : int or None, default None
        How many to keep the inputs of; None is as many. Seasons look back on labels alone, and much further:
        rows before those have the inputs of the first of them.

    Examples
    --------
    >>> recent = Recent(rows=2, n_series=1, n_inputs=1)
    >>> for step in range(3):
    ...     recent.add(np.array([step]), step + 0.5, None)
    >>> panel = recent.panel(("heat",), "load")
    >>> panel.inputs.ravel().tolist(), panel.target.tolist()
    ([1.0, 2.0], [1.5, 2.5])
    """

    def __init__(self, rows: int, n_series: int, n_inputs: int, input_rows: int | None = None) -> None:
        self.inputs = np.zeros((input_rows or rows, n_series, n_inputs))
        self.labels = np.full((rows, n_series), np.nan)
        self.last = np.full(n_series, np.nan)  # label known, however long ago
        self.times = np.full(rows, _NO_TIME)
        self.seen = 0  # rows so far

    def add(self, inputs: FloatArray, labels: Any, time: Any) -> None:
        """Take in a row of each series, gaps in its inputs filled."""
        place = self.seen % len(self.times)
        if self.seen >= len(self.times):  # what is about to be dropped may be the last label known
            dropped = self.labels[place]
            self.last = np.where(np.isnan(dropped), self.last, dropped)
        self.inputs[self.seen % len(self.inputs)] = inputs
        self.labels[place] = labels
        self.times[place] = _NO_TIME if time is None else np.datetime64(time, "us")
        self.seen += 1

    def panel(self, input_names: tuple[str, ...], target_name: str) -> Panel:
        """Return the rows, oldest first, as a panel of n series; the first of it holds the label before."""
        kept = min(self.seen, len(self.times))
        if kept == 0:
            raise DataError("a forecast goes on from rows that were observed; there are none yet.")
        rows = np.arange(self.seen - kept, self.seen)
        order = rows % len(self.times)
        inputs = self.inputs[np.maximum(rows, self.seen - len(self.inputs)) % len(self.inputs)]
        n_series = len(self.last)
        labels = self.labels[order].T.copy()  # (n, kept)
        labels[:, 0] = np.where(np.isnan(labels[:, 0]), self.last, labels[:, 0])
        time: npt.NDArray[Any] | None = self.times[order]
        if np.isnat(self.times[order]).any() or not has_times(time):
            time = None
        return Panel(
            inputs=inputs.transpose(1, 0, 2).reshape(n_series * kept, -1),
            target=labels.ravel(),
            starts=np.arange(n_series + 1) * kept,
            ids=tuple(str(index) for index in range(n_series)),
            input_names=input_names,
            target_name=target_name,
            time=None if time is None else np.tile(time, n_series),
        )

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return everything as arrays."""
        return {
            "inputs": self.inputs,
            "labels": self.labels,
            "last": self.last,
            "microseconds": self.times.view(np.int64),
            "seen": np.array([self.seen]),
        }

    def restore(self, state: dict[str, npt.NDArray[Any]]) -> None:
        """Take over what :meth:`state` gave."""
        self.inputs, self.labels = state["inputs"].copy(), state["labels"].copy()
        self.last = state["last"].copy()
        if "times" in state:  # a snapshot of an earlier version
            self.times = state["times"].view("datetime64[ns]").astype(self.times.dtype)
        else:
            self.times = state["microseconds"].copy().view(self.times.dtype)
        self.seen = int(state["seen"][0])
