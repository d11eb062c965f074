"""State files of earlier versions, which held one snapshot of all series, as journals."""

from pathlib import Path

from varnn.streaming._journal import is_journal, make
from varnn.streaming.by_name import Streams
from varnn.streaming.kept import Group, Known, State
from varnn.streaming.linked import LinkedStreams

_ALL = 0  # scope of series that are linked


def take_over(streams: Streams, path: Path) -> None:
    """Turn a snapshot at a path, of the kind of these streams, into a journal in its place."""
    if is_journal(path):
        return
    model = streams.model
    old = type(streams).restore(model, path.read_bytes(), f"{str(path)!r}")
    group = Group({}, [], [], [], {})
    for index, (name, live) in enumerate(old.items(), start=1):
        group.series[name] = Known(index, 0)
        if not isinstance(streams, LinkedStreams):
            group.states.append(State(index, 0, live.snapshot()))
    if isinstance(streams, LinkedStreams):
        group.states.append(State(_ALL, 0, old.snapshot()))
    make(path, model.fingerprint, [group])
