"""Messages of a service that nothing happens to, and what a state file holds, to be compared."""

import json
import sqlite3
import struct
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.service.script import Sent
from varnn.service.live_stream import StreamSettings
from varnn.service.service import Service
from varnn.streaming.json_text import write
from varnn.streaming.row_store import RowStore

_TOGETHER = 97  # messages that are handed in at once
_AT = slice(8, 16)  # of a packed summary: when its last row came


class Kept(NamedTuple):
    """What a state file holds, by names of series and in order; without what depends on a clock."""

    series: list[Any]  # name, last number
    history: list[Any]  # series, row, label, time, at, prediction and bounds
    events: list[Any]
    summaries: list[Any]
    challengers: list[Any]  # model, series, where it joined, score
    challenges: list[Any]  # its predictions


def said_without_kills(
    champion: Path,
    challenger: Path,
    folder: Path,
    sent: Sequence[Sequence[Sent]],
    settings: StreamSettings,
) -> tuple[list[list[bytes]], dict[str, bytes]]:
    """Answers to the messages of some clients, and the states of all series at the end.

    Parameters
    ----------
    champion, challenger
        Model files.
    folder
        Of the service that answers.
    sent
        Messages of each client.
    settings
        Of the stream.
    """
    with Service(folder, settings) as service:
        name = service.serve(champion).name
        service.add_model(challenger.stem, challenger.read_bytes())
        service.add_challenger(name, challenger.stem)
        live = service.stream(name)
        answers: list[list[bytes]] = []
        for some in sent:
            futures = [
                live.submit([json.loads(one.line) for one in some[first : first + _TOGETHER]])
                for first in range(0, len(some), _TOGETHER)
            ]
            answers.append([write(one) for future in futures for one in future.result()])
        names = sorted({one.message["series"] for some in sent for one in some if one.is_good})
        found = [live.call(partial(_state, name=name)) for name in names]
        return answers, dict(zip(names, (one.result() for one in found), strict=True))


def _state(store: RowStore, *, name: str) -> bytes:
    live = store.stream(json.dumps(name))
    return b"" if live is None else live.snapshot()


def kept_in(path: Path) -> Kept:
    """Read all that can be compared of a state file, which nobody has open."""
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
        rows = {name: database.execute(query).fetchall() for name, query in _QUERIES.items()}
    timed = {one[0] for one in rows["history"] if one[3] is not None}
    return Kept(
        series=_by_name(rows["series"]),
        history=_by_name((*one[:4], one[4] if one[3] else None, *one[5:]) for one in rows["history"]),
        events=_by_name(
            (*one[:5], one[5] if json.loads(one[0]) in timed else None) for one in rows["events"]
        ),
        summaries=_by_name(_without_clock(*one) for one in rows["summaries"]),
        challengers=_by_name(rows["challengers"]),
        challenges=_by_name(rows["challenges"]),
    )


_JOIN = "JOIN series ON series.id ="
_QUERIES = {
    "series": "SELECT name, seq FROM series ORDER BY name",
    "history": "SELECT name, row, y, time, at, prediction, lower, upper FROM history "
    f"{_JOIN} history.series ORDER BY name, row",
    "events": "SELECT name, row, kind, began, size, at FROM events "
    f"{_JOIN} events.series ORDER BY name, events.id",
    "summaries": f"SELECT name, numbers, alarms FROM summaries {_JOIN} summaries.series ORDER BY name",
    "challengers": "SELECT name, model, joined, first, score FROM challengers "
    f"{_JOIN} challengers.series ORDER BY name, model",
    "challenges": "SELECT name, model, row, prediction, lower, upper FROM challenges "
    f"{_JOIN} challenges.series ORDER BY name, model, row",
}


def _by_name(rows: Any) -> list[Any]:
    """Rows with names as they are said, not as JSON."""
    return [(json.loads(name), *others) for name, *others in rows]


def _without_clock(name: str, numbers: bytes, alarms: str) -> tuple[Any, ...]:
    """A summary without the moment its last row came."""
    places, event = json.loads(alarms)
    if event is not None:
        event = {field: value for field, value in event.items() if field not in ("at", "id")}
    numbers = numbers[: _AT.start] + struct.pack("<d", 0.0) + numbers[_AT.stop :]
    return name, numbers, places, event
