"""Damaged files by the thousand: each is refused in words, or gives finite numbers, soon and in little room.

Good files of several kinds of model, and snapshots of their streams, are damaged in one way each and read
again in processes of their own, whose time and memory are watched. Checksums fit what they are beside: it is
the checks of contents that are tested, not the checksum.
"""

import json
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.fresh import run_module
from benchmarks.record import Measured, Row, significant
from benchmarks.robustness.damage import DAMAGES, RAW
from benchmarks.robustness.fuzz_case import LARGE, MEGABYTES, NAN, OUTCOMES, READY, SECONDS, SLOW, rows_for
from benchmarks.robustness.fuzz_case import RAW as RAISED
from varnn.data.panel import Panel
from varnn.errors import VarnnError
from varnn.estimator.details import Details
from varnn.estimator.regressor import VARNNRegressor
from varnn.streaming.by_name import Streams
from varnn.streaming.linked import LinkedStreams

BAD = (RAISED, NAN, SLOW, LARGE)
_AT_A_TIME = 1000  # files that one process reads
_KEPT = 20  # bad outcomes that are told in full


@dataclass
class Found:
    """What became of damaged files."""

    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)  # source, damage, outcome
    slowest: float = 0.0
    bad: list[str] = field(default_factory=list)

    @property
    def files(self) -> int:
        """How many there were."""
        return sum(self.counts.values())

    def of(self, *outcomes: str) -> int:
        """Count those that ended so."""
        return sum(count for (*_, outcome), count in self.counts.items() if outcome in outcomes)


def run(files: int, *, on_done: Callable[[int], None] | None = None, first: int = 0) -> Found:
    """Read so many damaged files.

    Parameters
    ----------
    files
        How many.
    on_done
        Called with the number of files done, now and then.
    first
        Number of the first: the damage of a file follows from its number alone.
    """
    found, index, end = Found(), first, first + files
    with tempfile.TemporaryDirectory() as name:
        sources = write_sources(Path(name))
        while index < end:
            index = _read_some(Path(name), sources, index, min(_AT_A_TIME, end - index), found)
            if on_done is not None:
                on_done(index - first)
    return found


def write_sources(folder: Path) -> list[str]:
    """Write good files, and give their names: "<kind of model> <kind of file>"."""
    generator = np.random.default_rng(1)
    X = generator.normal(size=(360, 2))
    y = X[:, 0] + generator.normal(size=360).cumsum() / 5
    hours = np.datetime64("2026-01-01T00", "h") + np.arange(180)
    panel = Panel.from_arrays(X, y, series=["a"] * 180 + ["b"] * 180, time=np.tile(hours, 2))
    small: dict[str, Any] = {"epochs": 1, "hidden_size": 6, "ensemble": 2, "details": Details(memory_size=4)}
    models = {
        "default": VARNNRegressor(**small | {"details": Details(memory_size=4, context="series")}),
        "far": VARNNRegressor(**small, horizon=3, known_inputs=["x1"], calendar=["day"]),
        "paper": VARNNRegressor.paper("ARM", hidden_size=6, epochs=1),
        "peers": VARNNRegressor(**small, peers=True),
        "boosted": VARNNRegressor(**small, experts=["boosting"]),
    }
    written = []
    for name, model in models.items():
        model.fit(panel)
        for kind, blob in {"model": None, **_snapshots(model)}.items():
            place = folder / f"{name} {kind}.file"
            if blob is None:
                model.save(place)
            else:
                place.write_bytes(blob)
            written.append(f"{name} {kind}")
    return written


def _snapshots(model: VARNNRegressor) -> dict[str, bytes]:
    """Take snapshots of streams of a model, each with a row that waits for its label."""
    panel = rows_for(model)
    half = len(panel) // 2
    moments = [None] * half if panel.time is None else list(panel.time[:half])
    fleet = model.stream(2)
    for row in range(3):
        fleet.predict(panel.inputs[[row, half + row]], time=moments[row])
        fleet.observe(panel.target[[row, half + row]])
    group = LinkedStreams(model) if model.peers else Streams(model)
    for name in ("a", "b"):
        group[name] = group.begin()
    for row in range(3):
        for name, start in (("a", 0), ("b", half)):
            group[name].predict(panel.inputs[start + row], time=moments[row])
            group[name].observe(panel.target[start + row])
    taken = {"fleet": fleet.snapshot(), "linked" if model.peers else "streams": group.snapshot()}
    if model.peers:
        return taken
    live = model.stream()
    live.watch()
    for row in range(4):
        live.predict(panel.inputs[row], time=moments[row])
        if row < 3:
            live.observe(panel.target[row])
    return {**taken, "stream": live.snapshot()}


def _read_some(folder: Path, sources: list[str], first: int, count: int, found: Found) -> int:
    """Read files in a process of its own; give the number of the next."""
    words = (str(folder), json.dumps(sources), str(first), str(count))
    done = run_module("benchmarks.robustness.fuzz_case", *words)
    ready, *lines = done.stdout.splitlines() or [""]
    if ready != READY:
        last = " ".join(done.stderr.strip().splitlines()[-1:])
        raise VarnnError(f"a process that reads damaged files must read good ones first; it did not: {last}")
    index = first
    for line in lines:
        index, source, damage, outcome, seconds, detail = json.loads(line)
        _count(found, index, source, damage, outcome, detail)
        found.slowest = max(found.slowest, seconds)
        index += 1
    if index < first + count:  # it was ended in the middle of a file
        hung = "dump_traceback_later" in done.stderr or "Timeout" in done.stderr
        last = " ".join(done.stderr.strip().splitlines()[-3:])
        _count(found, index, sources[index % len(sources)], "any", SLOW if hung else RAISED, last)
        index += 1
    return index


def _count(found: Found, index: int, source: str, damage: str, outcome: str, detail: str) -> None:
    found.counts[source, damage, outcome] += 1
    if outcome in BAD and len(found.bad) < _KEPT:
        found.bad.append(f"{outcome}: file {index}, {source}, {damage}: {detail}")


def tables(found: Found) -> list[Measured]:
    """Lay out what was found: by kind of damage, and by kind of file."""
    title = (
        f"{found.files:,} damaged files, most of them with checksums that fit, read and used: at most "
        f"{SECONDS:g} s of the processor and {MEGABYTES} MB each; the slowest took "
        f"{significant(found.slowest)} s"
    )
    kinds = [*DAMAGES, *RAW, *(["any"] if any(one[1] == "any" for one in found.counts) else [])]
    checks = [f"{found.of(*BAD)} of {found.files:,} ended badly", *found.bad]
    return [
        Measured(
            name=f"fuzz by {what}",
            title=title,
            threads=1,
            rows=[_row(found, what, place, name) for name in names],
            checks=checks,
        )
        for what, place, names in (
            ("damage", 1, kinds),
            ("file", 0, sorted({source for source, *_ in found.counts})),
        )
    ]


def _row(found: Found, what: str, place: int, name: str) -> Row:
    counts = Counter[str]()
    for key, count in found.counts.items():
        if key[place] == name:
            counts[key[2]] += count
    row: Row = {what: name, "files": float(sum(counts.values()))}
    return row | {one: float(counts[one]) for one in OUTCOMES}
