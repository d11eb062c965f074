"""One step in compiled code, for one series and for a fleet; needs numba (``varnn[fast]``)."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from varnn._types import BoolArray, DoubleArray, FloatArray
from varnn.errors import DataError
from varnn.model.calendar import calendar_of
from varnn.model.fitted import Fitted
from varnn.model.intervals import Interval
from varnn.model.intervals.error_scale import ErrorScale
from varnn.model.intervals.levels import between, quantile_bounds
from varnn.network import compiled_code
from varnn.network.compiled_carried import BEFORE, CELLS
from varnn.network.jit import announce
from varnn.streaming import _compiled_layout as lay
from varnn.streaming._cell import Workspace
from varnn.streaming._step import Levels, Step, missing_where
from varnn.streaming._values import without_gaps
from varnn.streaming.compiled_kernel import observe_rows, predict_rows, weigh_rows

_FEWEST = 1024  # series of which each core gets a share
_MOST_ASKED = 64  # levels whose arrays are kept; who asks for others with every row would fill the memory
_RECIPE = slice(lay.RESIDUAL, lay.SCORES)  # parts of what is carried, by the arrays of a snapshot
_EXPERTS = slice(lay.SCORES, lay.TRACKER)


def handles(model: Fitted) -> bool:
    """Tell whether a model's steps can be done in compiled code: the default's, and of its relatives."""
    experts = model.experts
    return (
        model.carried
        and model.architecture in CELLS
        and experts is not None
        and experts.linear is not None
        and experts.trees is None
        and not model.pipeline.peers
        and (model.calibrator is None or type(model.calibrator) is ErrorScale)
    )


@lru_cache(maxsize=64)
def _places(level: float) -> list[tuple[int, float]]:
    """Where the bounds of a level lie between quantiles, as plain numbers: the lower, and the upper one."""
    right, share = between((level,))
    return list(zip(right.tolist(), share.tolist(), strict=True))


class CompiledStep(Step):
    """A step whose numbers lie in few arrays, one row of each for a series.

    Parameters
    ----------
    model, n_series : Fitted, int or None
        As of :class:`Step`; a model that is handled.
    workspace : Workspace
        What streams of the model share.
    """

    def __init__(self, model: Fitted, n_series: int | None, workspace: Workspace) -> None:
        super().__init__(model, n_series)
        announce(predict_rows, observe_rows)
        if workspace.layout is None:
            workspace.layout = lay.layout_of(model)
        self._layout: lay.Layout = workspace.layout
        sizes, width = self._layout.sizes, self.width
        members, columns = int(sizes[lay.MEMBERS]), int(sizes[lay.COLUMNS])
        self._state = int(sizes[lay.STATE])
        self._carried = np.tile(self._layout.fresh, (width, 1))
        self._rows = np.zeros((width, members, BEFORE + self._state + columns), np.float32)
        self._rows[:, :, 1] = 1
        hidden: npt.NDArray[np.float32] = np.zeros((width, members, sizes[lay.HIDDEN]), np.float32)
        self._opened = np.zeros((width, self._layout.open_at[-1]))
        # Buffers of one layout for all that comes in: compiled code is compiled anew for each other one.
        self._given, self._labels = np.zeros((width, len(model.input_names))), np.zeros(width)
        self._calendar = np.zeros(columns - 2 - sizes[lay.GIVEN])
        self._cycles = model.pipeline.calendar
        self._series = series = (self._carried, self._rows, hidden, self._opened)
        parts = compiled_code.shares(width) if width >= _FEWEST else [slice(0, width)]
        self._shares = [(some, [array[some] for array in series]) for some in parts]
        self._alone = len(parts) == 1
        self._told: Any = [(self._labels[some], *self._layout[:6], *own) for some, own in self._shares]
        self._asked: dict[Levels, tuple[DoubleArray, list[Any]]] = {}
        filled = self._opened[:, : len(model.input_names)]
        self.x: FloatArray = filled[0] if n_series is None else filled
        self.answer: Any = np.nan
        self._bounds = np.empty((width, 1))

    def advance(self, given: FloatArray, time: Any, levels: Levels = ()) -> None:
        """Do it in one call."""
        self._given[:] = given
        if self._cycles:
            self._calendar[:] = calendar_of(time, self._cycles)
        self._bounds, calls = self._asked.get(levels) or self._ask(levels)
        if self._alone:
            usable = predict_rows(*calls[0])
        else:
            usable = all(compiled_code.on_all_cores(lambda call: predict_rows(*call), calls))
        if not usable:
            self._refuse()
        self.answer = self._bounds.item(0) if self.n_series is None else self._bounds[:, 0]

    def _refuse(self) -> None:
        """Say which input cannot be used."""
        known = self._part(slice(lay.KNOWN, lay.KNOWN + 1))
        without_gaps(self._given.reshape(self.shape), known.reshape(self.shape), self.model.pipeline.fill)
        raise DataError("x holds an input that cannot be used.")

    def _ask(self, levels: Levels) -> tuple[DoubleArray, list[Any]]:
        """Make an array for what is found with these levels, and what fills it: a call for each core."""
        right, share = between(levels)
        found = np.empty((self.width, 1 + 2 * len(levels)))
        calls = [
            (self._given[some], self._calendar, right, share, *self._layout[:6], *series, found[some])
            for some, series in self._shares
        ]
        if len(self._asked) >= _MOST_ASKED:
            self._asked.clear()
        self._asked[levels] = found, calls
        return found, calls

    def bounds(self, levels: Levels) -> tuple[DoubleArray, DoubleArray]:
        """Read what was found."""
        found = self._bounds
        return found[:, 1 : 1 + len(levels)].copy(), found[:, 1 + len(levels) :].copy()

    def covered(self, level: float, innovation: Any) -> Any:
        """Compare the label with the bounds of that level."""
        if self.n_series is None:
            return self._covers_one(level, innovation)
        errors = np.atleast_1d(innovation)
        below, above = self._reach(level)
        return missing_where(errors, (below <= errors) & (errors <= above))

    def _covers_one(self, level: float, error: float) -> float:
        """Do the same for one series in Python: in a tenth of the time."""
        if error != error:
            return np.nan
        quantile, item = self._layout.carried_at.item(lay.TRACKER), self._carried.item
        scale = self._opened.item(self._layout.open_at.item(lay.NOW) + 3)
        scale *= item(self._layout.carried_at.item(lay.LIFTED) - 1)
        below, above = (
            ((item(quantile + right) - item(quantile + right - 1)) * share + item(quantile + right - 1))
            * scale
            for right, share in _places(level)
        )
        return float(min(below, 0.0) <= error <= max(above, 0.0))

    def _reach(self, level: float) -> tuple[DoubleArray, DoubleArray]:
        """How far below and above the predictions an interval reaches: (n,) each."""
        tracker = self._part(slice(lay.TRACKER, lay.LIFTED))
        scales = self._opened[:, self._layout.open_at[lay.NOW] + 3] * tracker[:, -1]
        below, above = quantile_bounds(tracker, np.array([level]), scales)
        return below[:, 0], above[:, 0]

    def observe(self, labels: Any, *, learn: bool = True) -> None:
        """Do it in one call."""
        self._labels[:] = labels
        if self._alone:
            observe_rows(learn, *self._told[0])
        else:
            compiled_code.on_all_cores(lambda share: observe_rows(learn, *share), self._told)

    def interval(self, levels: Levels, *, several: bool) -> Interval:
        """Give the answer with its bounds, quickly where there is one."""
        if several or self.n_series is not None:
            return super().interval(levels, several=several)
        return Interval(self.answer, self._bounds[0, 1], self._bounds[0, 2])

    @property
    def weights(self) -> DoubleArray:
        """Weights of the experts in the next prediction: (n, K)."""
        prior = self._layout.numbers[self._layout.at[lay.PRIOR] : self._layout.at[lay.PRIOR + 1]]
        weights = np.empty((self.width, len(prior)))
        weigh_rows(np.ascontiguousarray(self._part(slice(lay.SCORES, lay.SCALE))), prior, weights)
        return weights

    @property
    def lifted(self) -> BoolArray:
        """Whether a label of each series was below zero: (n,)."""
        return self._part(slice(lay.LIFTED, lay.KNOWN))[:, 0] > 0

    def _part(self, parts: slice) -> DoubleArray:
        """Some parts of what the series carry: (n, any), a view."""
        at = self._layout.carried_at
        return self._carried[:, at[parts.start] : at[parts.stop]]

    def _places(self) -> dict[str, DoubleArray]:
        """Arrays of a snapshot that lie in what the series carry, as views."""
        places = {"recipe": self._part(_RECIPE), "learning": self._part(_EXPERTS)}
        if self.model.calibrator is not None:
            places["tracker"] = self._part(slice(lay.TRACKER, lay.LIFTED))
        if self.model.positive:
            places["lifted"] = self._part(slice(lay.LIFTED, lay.KNOWN))[:, 0]
        known = self._part(slice(lay.KNOWN, lay.KNOWN + 1))
        return {**places, "known": known[0] if self.n_series is None else known}

    def states(self) -> dict[str, npt.NDArray[Any]]:
        """All that later steps depend on, as arrays of a snapshot."""
        states = self._rows[:, :, BEFORE : BEFORE + self._state].swapaxes(0, 1)
        return {
            "states": np.ascontiguousarray(states),
            **{name: place.copy() for name, place in self._places().items()},
        }

    def restore(self, tensors: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over what :meth:`states` gave."""
        self._rows[:, :, BEFORE : BEFORE + self._state] = tensors["states"].swapaxes(0, 1)
        if self.model.calibrator is not None:  # it alone knows what it cannot have given
            self.model.calibrator.tracker(self.width).restore(tensors["tracker"])
        for name, place in self._places().items():
            if name in tensors:  # a snapshot of streams that refused gaps does not say what is known
                place[...] = tensors[name]

    def kept(self) -> Any:
        """All arrays of the series as they are, those of the open step among them."""
        return [array.copy() for array in self._series], self.answer

    def go_back(self, kept: Any, given: FloatArray | None, time: Any) -> None:
        """Copy them back: nothing has to be computed again."""
        arrays, self.answer = kept
        for array, was in zip(self._series, arrays, strict=True):
            array[...] = was
