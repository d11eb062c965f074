"""Influx line protocol on standard input and output, as Telegraf's ``execd`` speaks it.

::

    power,house=a heat=20.5,wind=3 1763280000000000000              a row: x, and its time
    power,house=a load=61 1763280000000000000                       its label, then or later: the same time
    power,house=b heat=20.5,wind=3,load=61 1763280000000000000      both at once: predicted before y is shown

Each is answered by a line ``power_varnn`` with the same tags and time and the fields ``prediction``,
``lower``, ``upper``, ``innovation`` and ``alarm``, as far as there are any. The time is the key of a row, so
that a line that is sent again changes nothing. Lines that are there together are asked together, and written
once their answers are on disk; the end of the input is the end.
"""

import logging
import os
import select
from collections.abc import Callable, Iterator, Sequence
from threading import Event, Thread
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from varnn.data.categories import input_name
from varnn.data.rules import shown
from varnn.errors import ConfigError, DataError
from varnn.service.connectors._patience import ask
from varnn.service.connectors.line_protocol import Point, read, write
from varnn.service.connectors.settings import InfluxSettings
from varnn.service.errors import NotFound
from varnn.service.live_stream import LiveStream
from varnn.service.service import Service

_log = logging.getLogger(__name__)
_AT_ONCE = 1 << 16  # bytes that are read together
_LONGEST = 1 << 20  # bytes of a line; what is longer is cut, and both parts are refused
_LOOK, _PATIENCE = 0.2, 5.0  # seconds: between looks for an end, and until it must have come
_ANSWERED = ("prediction", "lower", "upper", "innovation")


class Rows:
    """Points -> messages, and answers -> points.

    Parameters
    ----------
    settings : InfluxSettings
        Which points are rows, and what of them is what.
    inputs : sequence of str
        Fields that are inputs.
    target : str
        Field that is the label, unless the settings name another.

    Examples
    --------
    >>> rows = Rows(InfluxSettings(measurement="power"), ["heat", "wind"], "load")
    >>> for message in rows.messages(Point("power", {"house": "a"}, {"heat": 20.5, "load": 61.0}, 10**18)):
    ...     print(message)
    {'series': 'house=a', 'key': '1000000000000000000', 'time': '2001-09-09T01:46:40.000000000',
     'x': {'heat': 20.5, 'wind': None}}
    {'series': 'house=a', 'key': 'y 1000000000000000000', 'for': '1000000000000000000', 'y': 61.0}
    """

    def __init__(self, settings: InfluxSettings, inputs: Sequence[str], target: str) -> None:
        self._settings, self._inputs = settings, inputs
        self._target = settings.target or target

    def messages(self, point: Point) -> list[dict[str, Any]]:
        """What a point says of its series: that a row begins, has its label, or both; nothing for others."""
        if point.measurement != self._settings.measurement:
            return []
        opens = any(name in point.fields for name in self._inputs) or not self._inputs
        labels = self._target in point.fields
        if not (opens or labels):
            return []
        if point.time is None:
            raise DataError("a line must have a time, which tells rows apart; got none.")
        series, key = self._series(point), str(point.time)
        said: list[dict[str, Any]] = []
        if opens:
            time = str(np.array(point.time, f"datetime64[{self._settings.precision}]"))
            x = {name: _number(point.fields.get(name)) for name in self._inputs}
            said.append({"series": series, "key": key, "time": time, "x": x})
        if labels:
            y = _number(point.fields[self._target])
            said.append({"series": series, "key": f"y {key}", "for": key, "y": y})
        return said

    def point(self, asked: Point, answers: Sequence[dict[str, Any]]) -> Point | None:
        """What was answered, as a point beside the one that asked; None where there is nothing to say."""
        fields: dict[str, float | int | str | bool] = {}
        for answer in answers:
            fields |= {name: float(answer[name]) for name in _ANSWERED if answer.get(name) is not None}
            if answer.get("events"):
                fields["alarm"] = ", ".join(one["kind"] for one in answer["events"])
        return asked._replace(measurement=f"{asked.measurement}_varnn", fields=fields) if fields else None

    def _series(self, point: Point) -> str | None:
        chosen = self._settings.series
        if chosen is None:
            return ",".join(f"{key}={point.tags[key]}" for key in sorted(point.tags)) or None
        missing = [name for name in chosen if name not in point.tags]
        if missing:
            raise DataError(f"a line must have the tags that name its series; it lacks {missing}.")
        if len(chosen) == 1:
            return point.tags[chosen[0]]
        return ",".join(f"{key}={point.tags[key]}" for key in chosen)


class _Line(NamedTuple):
    text: bytes
    number: int
    point: Point | None
    messages: list[dict[str, Any]]


class InfluxConnector:
    """A stream of a service by lines, from :meth:`start` to the end of the input or :meth:`close`.

    Parameters
    ----------
    service : Service
        Whose stream it is.
    settings : InfluxSettings
        Which lines are rows.
    source, sink : binary file
        Where lines come from, and where they go.
    on_end : callable
        Called once no more lines can come, or nobody reads what is said; not by :meth:`close`.
    """

    def __init__(
        self,
        service: Service,
        settings: InfluxSettings,
        source: BinaryIO,
        sink: BinaryIO,
        on_end: Callable[[], None],
    ) -> None:
        self._service, self._settings = service, settings
        self._source, self._sink, self._on_end = source, sink, on_end
        live = _stream(service, settings)
        self._stream = live.name
        self._rows = Rows(settings, _columns(live), live.target)
        self._count = 0
        self._stop = Event()
        self._thread = Thread(target=self._work, name="influx", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def close(self) -> None:
        """Answer what is in hand, and read no more."""
        self._stop.set()
        self._thread.join(_PATIENCE)  # it may be writing to someone who does not read

    def _work(self) -> None:
        try:
            for lines in self._groups():
                if not self._answer(lines):
                    break
        except BrokenPipeError:  # nobody reads any more
            pass
        finally:
            if not self._stop.is_set():
                self._on_end()

    def _groups(self) -> Iterator[list[bytes]]:
        """Lines that are there together; the last may lack its end."""
        rest, file = b"", self._source.fileno()
        while not self._stop.is_set():
            if not select.select([file], [], [], _LOOK)[0]:
                continue
            chunk = os.read(file, _AT_ONCE)
            if not chunk:
                yield [rest] if rest else []
                return
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > _LONGEST:
                lines, rest = [*lines, rest[:_LONGEST]], b""
            yield lines

    def _answer(self, texts: Sequence[bytes]) -> bool:
        """Answer lines; False where the service ends first."""
        lines = [self._line(text) for text in texts]
        messages = [message for line in lines for message in line.messages]
        try:
            answers = ask(self._service, self._stream, messages, self._stop) if messages else []
        except NotFound as error:
            _log.error("%s", error)
            return False
        if answers is None:
            return False
        rest, said = iter(answers), []
        for line in lines:
            found = [next(rest) for _ in line.messages]
            wrong = next((one["error"] for one in found if "error" in one), None)
            if wrong is not None:
                _log.warning("line %d: %s", line.number, wrong)
            if self._settings.echo:
                said.append(line.text)
            point = None if line.point is None else self._rows.point(line.point, found)
            if point is not None:
                said.append(write(point).encode())
        if said:
            self._sink.write(b"\n".join([*said, b""]))
            self._sink.flush()
        return True

    def _line(self, text: bytes) -> _Line:
        self._count += 1
        try:
            point = read(text.decode())
            return _Line(text, self._count, point, [] if point is None else self._rows.messages(point))
        except UnicodeDecodeError:
            _log.warning("line %d: a line must be UTF-8; got %s.", self._count, shown(text))
        except DataError as error:
            _log.warning("line %d: %s", self._count, error)
        return _Line(text, self._count, None, [])


def _stream(service: Service, settings: InfluxSettings) -> LiveStream:
    """The stream that lines are of."""
    if settings.stream is not None:
        return service.stream(settings.stream)
    streams = service.streams()
    if len(streams) != 1:
        names = [one.name for one in streams]
        raise ConfigError(
            f"there must be one stream for lines to go to, or a name: stream=NAME; got {names}."
        )
    return streams[0]


def _columns(live: LiveStream) -> list[str]:
    """Columns that a model is told: a text stands for all inputs that are made of it."""
    categories = live.model.categories
    made = {input_name(column, one) for column, known in categories.items() for one in known}
    return [*(name for name in live.inputs if name not in made), *categories]


def _number(value: float | int | str | bool | None) -> float | int | str | None:
    return float(value) if isinstance(value, bool) else value
