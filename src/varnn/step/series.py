"""Series at work: n of them in step (`SeriesStep`), or the rows of one after the other (`SeriesRows`).

Both call `varnn.step.loops.run`, compiled where numba is installed, and own the memory it works in.
"""

from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from varnn._types import BoolArray, DoubleArray
from varnn.data.blas import one_blas_thread
from varnn.jobs import cores
from varnn.step.intervals import level_weights
from varnn.step.kernel import DIMENSIONS, address_table, spellings, use_compiled
from varnn.step.layout import BLOCK, Block, StepModel, StepState
from varnn.step.loops import Taps, run

Levels = tuple[float, ...]

_THREADED = 1024  # series of which each core gets a share
_MAX_LEVELS = 64  # sets of levels whose arrays are kept, so that ever new ones do not fill the memory
_SINGLE = ("hidden", "memory")  # taps in single precision
_TEACH, _LOOK = np.ones(1, np.bool_), np.zeros(1, np.bool_)


def _runner() -> tuple[Callable[..., Any], Callable[[Any], Any]]:
    """Return the loop over rows, and what turns its records into arguments."""
    return (_compiled_run(), address_table) if use_compiled() else (run, lambda values: values)


@cache
def _compiled_run() -> Callable[..., Any]:
    """Compile the loop over rows, or load what was compiled before."""
    from varnn.step import compiling  # late: it imports numba

    loop = compiling.compiled(run, cached=True)
    compiling.announce(loop)
    try:
        _compile(loop)
    except OSError:  # the cache cannot be written: compile in memory
        loop = compiling.dispatcher(*spellings[run], cached=False)
        _compile(loop)
    return loop


def _compile(loop: Callable[..., Any]) -> None:
    """Call a loop with no rows: its arguments have the same types with any model."""
    records = (
        np.zeros((len(kind._fields), 1 + DIMENSIONS), np.int64) for kind in (StepModel, StepState, Taps)
    )
    nothing = np.zeros((0, 1, 0))
    loop(*records, nothing, nothing, nothing[:, 0], _TEACH, level_weights(()), True, True)


def warm_up() -> None:
    """Compile the step ahead of its first use, for images and CI; without numba there is nothing to do."""
    if use_compiled():
        _compiled_run()


def new_taps(
    model: StepModel, n_rows: int, n_series: int = 1, n_levels: int = 0, wanted: Collection[str] = ()
) -> Taps:
    """Return arrays for what is wanted of some rows; predictions always are.

    ``wanted`` holds names of `varnn.step.loops.Taps`; "hidden" is the hidden layer of all members, "first
    hidden" that of the first one.
    """
    members, _, hidden = model.to_hidden.shape
    widths = {
        "experts": len(model.prior),
        "weights": len(model.prior),
        "regressors": len(model.linear_weights),
        "columns": len(model.input_offset),
    }
    shapes: dict[str, tuple[int, ...]] = {}
    for name in Taps._fields:
        rows = n_rows if name in wanted else 0
        shapes[name] = (rows, widths[name]) if name in widths else (rows,)
    shapes |= {
        "prediction": (n_rows, n_series),
        "lower": (n_rows, n_series, n_levels),
        "upper": (n_rows, n_series, n_levels),
        "hidden": (members if "hidden" in wanted else int("first hidden" in wanted), n_rows, hidden),
        "memory": (members if "memory" in wanted else 0, n_rows, model.to_memory.shape[2]),
    }
    kinds = {name: np.float32 if name in _SINGLE else np.float64 for name in shapes}
    return Taps(**{name: np.empty(shape, kinds[name]) for name, shape in shapes.items()})


class SeriesRows:
    """Rows of series, one series after the other, many rows with each call.

    Parameters
    ----------
    model : StepModel
        The model.
    levels : tuple of float, default=()
        Levels of intervals.
    wanted : collection of str, default=()
        What is wanted besides predictions; see `new_taps`.
    """

    def __init__(self, model: StepModel, *, levels: Levels = (), wanted: Collection[str] = ()) -> None:
        self.model, self.wanted = model, wanted
        self._levels = level_weights(levels)
        self._n_levels = len(levels)
        self._run, self._passed = _runner()
        self._block = Block(model)
        self._fresh = self._block.memory.copy()
        self._records = self._passed(model), self._passed(self._block.state)

    def begin(self) -> None:
        """Begin a series: forget the one before."""
        self._block.memory[:] = self._fresh

    def __call__(self, x: DoubleArray, extra: DoubleArray, labels: DoubleArray, teach: BoolArray) -> Taps:
        """Predict and observe the next rows of the series.

        Parameters
        ----------
        x, extra : arrays of shape (N, D) and (N, C)
            Inputs, and those of the calendar and of peers; contiguous.
        labels, teach : arrays of shape (N,)
            Labels, NaN where missing, and which rows teach.

        Returns
        -------
        Taps
            What is wanted of each row.
        """
        taps = new_taps(self.model, len(labels), 1, self._n_levels, self.wanted)
        self._run(
            *self._records,
            self._passed(taps),
            x[:, None],
            extra[:, None],
            labels[:, None],
            teach,
            self._levels,
            True,
            True,
        )
        return taps


class _Calls(NamedTuple):
    """Arguments of the loop for rows that are predicted with some levels: a call for each block."""

    taps: Taps  # what is written, of all series
    predict: list[tuple[Any, ...]]
    teach: list[tuple[Any, ...]]
    look: list[tuple[Any, ...]]
    parts: list[Taps]  # of each block; arguments hold mere addresses


class SeriesStep:
    """n series in step: a row of each is predicted, then its label observed.

    Parameters
    ----------
    model : StepModel
        The model.
    n_series : int, default=1
        Series, n; they are computed in blocks of up to `BLOCK`.
    """

    def __init__(self, model: StepModel, n_series: int = 1) -> None:
        self.model, self.n_series = model, n_series
        self._run, self._passed = _runner()
        slices = [slice(first, min(first + BLOCK, n_series)) for first in range(0, n_series, BLOCK)]
        self.blocks = [Block(model, some.stop - some.start) for some in slices]
        self._slices = slices
        self.x = np.zeros((n_series, model.inputs))
        n_extra = len(model.input_offset) - (model.inputs if model.use_inputs else 0) - 2 * model.has_linear
        self.extra = np.zeros((n_series, n_extra))
        self.labels = np.zeros(n_series)
        self._record = self._passed(model)
        self._states = [self._passed(block.state) for block in self.blocks]
        self._asked: dict[Levels, _Calls] = {}
        self._open = self._ask(())
        self._alone = len(slices) == 1

    def _ask(self, levels: Levels) -> "_Calls":
        """Make arrays for predictions with these levels, and the arguments of all calls that fill them."""
        whole, weights, calls = new_taps(self.model, 1, self.n_series, len(levels)), level_weights(levels), []
        for some, state in zip(self._slices, self._states, strict=True):
            taps = whole._replace(
                **{name: getattr(whole, name)[:, some] for name in ("prediction", "lower", "upper")}
            )
            rows = (self.x[None, some], self.extra[None, some], self.labels[None, some])
            calls.append((self._record, state, self._passed(taps), *rows, taps))
        predict, teach, look = (
            [(*call[:-1], which, weights, predicts, not predicts) for call in calls]
            for which, predicts in ((_TEACH, True), (_TEACH, False), (_LOOK, False))
        )
        if len(self._asked) >= _MAX_LEVELS:
            self._asked.clear()
        self._asked[levels] = found = _Calls(whole, predict, teach, look, [call[-1] for call in calls])
        return found

    def predict(self, levels: Levels = ()) -> bool:
        """Predict the rows with inputs ``x`` and ``extra``; return False if an input cannot be used."""
        self._open = self._asked.get(levels) or self._ask(levels)
        if self._alone:
            return bool(self._run(*self._open.predict[0]))
        return all(self._on_all(self._open.predict))

    def observe(self, *, teach: bool = True) -> None:
        """Observe ``labels`` of the rows predicted last; without ``teach`` they are only looked back on."""
        calls = self._open.teach if teach else self._open.look
        if self._alone:
            self._run(*calls[0])
        else:
            self._on_all(calls)

    def _on_all(self, calls: list[tuple[Any, ...]]) -> list[int]:
        """Make a call for each block, on all cores if there are many series."""
        threads = min(cores.usable(), cores.named_in("OMP_NUM_THREADS"))
        if self.n_series < _THREADED or threads < 2:
            return [self._run(*call) for call in calls]
        with one_blas_thread(), ThreadPoolExecutor(threads) as pool:
            return list(pool.map(lambda call: self._run(*call), calls))

    @property
    def prediction(self) -> DoubleArray:
        """Predictions of the open row: (n,), a view."""
        predictions: DoubleArray = self._open.taps.prediction[0]
        return predictions

    @property
    def bounds(self) -> tuple[DoubleArray, DoubleArray]:
        """Bounds of the open row, of the levels it was predicted with: (n, L) each, views."""
        return self._open.taps.lower[0], self._open.taps.upper[0]

    def reach(self, levels: Levels) -> tuple[DoubleArray, DoubleArray]:
        """Return how far intervals of the open row reach below and above its prediction: (n, L) each."""
        quantiles, scale = self.field("quantiles"), self.field("expected_scale") * self.field("inflation")
        found = np.dot(quantiles, level_weights(levels)) * scale[:, None]
        return np.minimum(found[:, : len(levels)], 0.0), np.maximum(found[:, len(levels) :], 0.0)

    def field(self, name: str) -> npt.NDArray[Any]:
        """Return a field of the state whose first axis is the series, of all of them."""
        if self._alone:
            field: npt.NDArray[Any] = getattr(self.blocks[0].state, name)
            return field
        return np.concatenate([getattr(block.state, name) for block in self.blocks])

    @property
    def first_hidden(self) -> npt.NDArray[np.float32]:
        """Hidden layers of the first member: (n, K)."""
        sizes = [len(block.state.prediction) for block in self.blocks]
        parts = [block.state.hidden[0, :size] for block, size in zip(self.blocks, sizes, strict=True)]
        return np.concatenate(parts)

    def weights(self) -> DoubleArray:
        """Return the weights of experts in the next prediction: (n, X)."""
        weights: DoubleArray = self.field("weights").copy()
        return weights

    def checkpoint(self) -> list[npt.NDArray[np.uint8]]:
        """Return all numbers of all series, those of the open row included."""
        return [block.memory.copy() for block in self.blocks]

    def rollback(self, saved: list[npt.NDArray[np.uint8]]) -> None:
        """Be again as a checkpoint was; it may be returned to any number of times."""
        for block, memory in zip(self.blocks, saved, strict=True):
            block.memory[:] = memory

    def snapshot(self) -> DoubleArray:
        """Return all that later rows depend on: the bytes of the state, as numbers of eight."""
        width = len(self.model.input_offset)
        for block in self.blocks:  # inputs of a row that was peeked at are not carried
            block.state.seen[:, :, block.state.seen.shape[2] - width :] = 0
        return np.concatenate([block.carried for block in self.blocks]).view(np.float64)

    def restore(self, snapshot: DoubleArray) -> None:
        """Continue from a snapshot of as many series."""
        ends = np.cumsum([len(block.carried) for block in self.blocks])
        parts = np.split(np.ascontiguousarray(snapshot).view(np.uint8), ends[:-1])
        for block, part in zip(self.blocks, parts, strict=True):
            block.carried[:] = part
