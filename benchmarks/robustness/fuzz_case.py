"""Some damaged files, one after another, in a process that is watched, and what the reader makes of each.

A line of JSON for each file goes to standard output as soon as it is done, so that a process that hangs or is
ended leaves all it found.
"""

import faulthandler
import json
import math
import resource
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.robustness.damage import damaged
from varnn.data.panel import Panel
from varnn.errors import ModelFileError, VarnnError
from varnn.estimator.loading import load
from varnn.estimator.regressor import VARNNRegressor
from varnn.streaming.by_name import Streams
from varnn.streaming.linked import LinkedStreams
from varnn.streaming.stream import Stream

SECONDS = 1.0  # of the processor's time, that a file may take
MEGABYTES = 500  # beyond what the process had
HANGS = 60  # seconds by the clock, after which the process is ended
ROWS = 40
READY = "ready"  # the first line a process prints

REFUSED, SAME, OTHER = "refused as a file", "same numbers", "other finite numbers"
SAID, RAW, NAN = "refused in words when used", "raw exception", "NaN"
SLOW, LARGE = f"over {SECONDS:g} s", f"over {MEGABYTES} MB"
OUTCOMES = (REFUSED, SAME, OTHER, SAID, RAW, NAN, SLOW, LARGE)


def rows_for(model: VARNNRegressor) -> Panel:
    """Make rows for a model: two series, whatever it was fitted on."""
    generator, fitted = np.random.default_rng(0), model.fitted_
    n_inputs = len(fitted.input_names)
    inputs = generator.normal(size=(2 * ROWS, n_inputs))
    hours = np.datetime64("2026-11-15T00", "h") + np.arange(ROWS)
    return Panel(
        inputs=inputs,
        target=inputs.sum(axis=1) + generator.normal(size=2 * ROWS).cumsum() / 3,
        starts=np.array([0, ROWS, 2 * ROWS]),
        ids=("a", "b"),
        input_names=fitted.input_names,
        target_name=fitted.target_name,
        time=np.tile(hours, 2).astype("datetime64[s]"),
    )


def numbers_of_model(path: Path) -> list[float]:
    """Load a model and use it in every way: one row ahead, with intervals, in a stream and several ahead."""
    model = load(path)
    panel = rows_for(model)
    found = [model.predict(panel)]
    if model.fitted_.calibrator is not None:
        found += [*model.predict(panel, interval=0.9)]
    if not model.fitted_.pipeline.peers:
        found.append(_streamed(model.stream(), panel))
    if model.forecaster_ is not None:
        steps, known = model.forecaster_.horizon, len(model.forecaster_.known)
        future = np.zeros((2, steps, known)) if known else None
        found.append(model.forecast(panel, inputs=future).prediction)
    return [float(one) for values in found for one in np.ravel(values)]


def numbers_of_snapshot(kind: str, model: VARNNRegressor, blob: bytes) -> list[float]:
    """Go on from a snapshot."""
    panel = rows_for(model)
    if kind == "stream":
        return _streamed(Stream.restore(model, blob), panel)
    if kind == "fleet":
        live, both = Stream.restore(model, blob), np.array([0, ROWS])
        found = []
        for row in range(5):
            found.append(live.predict(panel.inputs[both + row], time=_time(panel, row)))
            found.append(live.observe(panel.target[both + row]))
        return [float(one) for values in found for one in np.ravel(values)]
    group = (LinkedStreams if kind == "linked" else Streams).restore(model, blob)
    return [
        one
        for row in range(3)
        for name in sorted(group)
        for one in _streamed(group[name], panel, row, row + 1)
    ]


def _streamed(live: Stream, panel: Panel, first: int = 0, last: int = 12) -> list[float]:
    found = []
    for row in range(first, last):
        found.append(live.predict(panel.inputs[row], time=_time(panel, row)))
        found.append(live.observe(panel.target[row]))
    return [float(one) for values in found for one in np.ravel(values)]


def _time(panel: Panel, row: int) -> Any:
    # Later than any row that a snapshot was taken at: series that see each other go forward in time.
    return None if panel.time is None else panel.time[row] + np.timedelta64(30, "D")


class Source:
    """A good file, and what it gives."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name, self.kind = name, name.rpartition(" ")[2]
        self.draft = folder / f"damaged-{time.monotonic_ns()}.varnn"
        self.blob = (folder / f"{name}.file").read_bytes()
        model = folder / f"{name.rpartition(' ')[0]} model.file"
        self.model = None if self.kind == "model" else load(model)
        self.numbers = self.read(self.blob)

    def read(self, blob: bytes) -> list[float]:
        """Read it as a user would, and use it."""
        if self.model is not None:
            return numbers_of_snapshot(self.kind, self.model, blob)
        self.draft.write_bytes(blob)
        try:
            return numbers_of_model(self.draft)
        finally:
            self.draft.unlink()

    def outcome(self, blob: bytes) -> tuple[str, str]:
        """Say what became of a damaged file, with details where they are of use."""
        try:
            found = self.read(blob)
        except ModelFileError as error:
            return REFUSED, str(error)
        except VarnnError as error:
            return SAID, str(error)
        except MemoryError:
            return LARGE, "MemoryError"
        except Exception as error:  # this is what is looked for
            return RAW, repr(error)[:300]
        if not all(map(math.isfinite, found)):
            return NAN, ""
        return (SAME if found == self.numbers else OTHER), ""


def main(folder: str, names: str, first: int, count: int) -> None:
    """Damage and read files number ``first`` and after, and print what became of each."""
    warnings.simplefilter("ignore")
    sources = [Source(Path(folder), name) for name in json.loads(names)]
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (MEGABYTES << 20), resource.RLIM_INFINITY))
    print(READY, flush=True)  # noqa: T201  # to the process that started this one
    for index in range(first, first + count):
        generator = np.random.default_rng(index)
        source = sources[index % len(sources)]
        damage, blob = damaged(source.blob, generator)
        faulthandler.dump_traceback_later(HANGS, exit=True)
        began = time.process_time()
        outcome, detail = source.outcome(blob)
        seconds = time.process_time() - began
        faulthandler.cancel_dump_traceback_later()
        if seconds > SECONDS:
            outcome, detail = SLOW, f"{outcome} after {seconds:.1f} s"
        said = json.dumps([index, source.name, damage, outcome, seconds, detail])
        print(said, flush=True)  # noqa: T201  # to the process that started this one


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
