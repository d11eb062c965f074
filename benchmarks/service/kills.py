"""A service killed in the middle of its work, and gone on with: what is lost, doubled or different.

Some clients, each with series of its own, send messages with keys to a real process, ``varnn serve``. At
moments drawn at random, also while it starts, it is killed without a chance to do anything, and started
again with the same folder. The clients then send again what they have no answer to, and some of what they
have one to. At the end all of it is sent once more, and everything the service said and kept is compared
with a run of the same messages that nothing happened to.
"""

import http.client
import json
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.service.process import PATIENCE, Served
from benchmarks.service.script import Script, Sent
from benchmarks.service.whole_run import Kept, kept_in, said_without_kills
from varnn.errors import VarnnError
from varnn.service.live_stream import StreamSettings

CHAMPION, CHALLENGER = "champion", "challenger"
LINES = "application/x-ndjson"
_LATEST = 0.03  # seconds after the last of these, at most
_AT_START = 0.2  # share of kills while the service starts
_BATCH = 40  # messages in a request, at most
_AGAIN = 3  # answered messages that are sent again after a kill
_PAUSE = 0.002  # seconds between two requests of a client, so that answers do not fill the disk


@dataclass
class Killed:
    """What came of some kills."""

    kills: int = 0
    kills_at_start: int = 0  # of these, before it answered
    series: int = 0
    messages: int = 0  # that were answered
    answers: int = 0  # received, those to messages sent again too
    changed: int = 0  # messages that were answered differently when they were sent again
    lost: int = 0  # labels that were acknowledged, and are not in the history as they were said
    doubled: int = 0  # rows, or messages, that count more than once
    differing: int = 0  # answers that are not those of a run without kills
    tables_differing: list[str] = field(default_factory=list)  # what is kept otherwise than by such a run
    states_differing: int = 0  # series whose state is another
    tracebacks: int = 0
    exit_code: int = 0  # of the last process, which was asked to end
    seconds_to_go_on: list[float] = field(default_factory=list, repr=False)  # from start to first answer

    @property
    def is_sound(self) -> bool:
        """Whether nothing was lost, doubled or different."""
        wrong = self.changed + self.lost + self.doubled + self.differing + self.states_differing
        return not wrong and not self.tables_differing and not self.tracebacks and self.exit_code == 0


def summed_up(found: Killed) -> dict[str, Any]:
    """What came of it, as plain values."""
    told = asdict(found)
    seconds = sorted(told.pop("seconds_to_go_on"))
    told["median seconds from start to first answer"] = (
        round(seconds[len(seconds) // 2], 2) if seconds else None
    )
    return told | {"sound": found.is_sound}


class Line:
    """Where the service is at the moment, and how many answers came."""

    def __init__(self) -> None:
        self._port: int | None = None
        self._changed = threading.Condition()
        self.answers = 0
        self.first: float | None = None  # when the first answer came since it is there
        self.ended = False

    def put(self, port: int | None) -> None:
        """Say where it is now; None for nowhere."""
        with self._changed:
            self._port, self.first = port, None
            self._changed.notify_all()

    def wait(self, besides: int | None = None) -> int:
        """Wait for a service, other than that which is gone."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._port not in (None, besides), 2 * PATIENCE):
                raise VarnnError("no service came back")
            return int(self._port or 0)

    def count(self, answers: int) -> None:
        """Hear of answers."""
        with self._changed:
            self.answers += answers
            self.first = self.first or time.monotonic()
            self._changed.notify_all()

    def wait_for(self, answers: int) -> None:
        """Wait until so many answers came in all."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.answers >= answers, PATIENCE):
                raise VarnnError("no answers came")


class Voice(threading.Thread):
    """A client with series of its own, that talks until it is told to end.

    Parameters
    ----------
    line
        Where the service is.
    scripts
        Its series.
    seed
        Of what is drawn.
    """

    def __init__(self, line: Line, scripts: Sequence[Script], seed: int) -> None:
        super().__init__(daemon=True)
        self._line, self._scripts = line, scripts
        self._random = np.random.default_rng([seed, 99])
        self._connection: http.client.HTTPConnection | None = None
        self._port: int | None = None
        self.sent: list[Sent] = []
        self.got: list[bytes] = []  # the first answer to each
        self.changed = 0
        self.error: BaseException | None = None

    def run(self) -> None:
        """Talk."""
        try:
            while not self._line.ended:
                size = 1 if self._random.random() < 0.3 else int(self._random.integers(1, _BATCH))
                picks = self._random.integers(len(self._scripts), size=size)
                for some in by_verb([next(self._scripts[pick]) for pick in picks]):
                    self.got += self._exchanged(some)
                    self.sent += some
                    self._line.count(len(some))
                time.sleep(_PAUSE)
        except BaseException as error:
            self.error = error
        finally:
            self._leave()

    def again(self) -> None:
        """Send all that was answered once more, and count what is answered differently."""
        for first in range(0, len(self.sent), 1000):
            part = list(zip(self.sent[first : first + 1000], self.got[first : first + 1000], strict=True))
            for verb in ("step", "observe"):
                self._compare([pair for pair in part if pair[0].verb == verb])
        self._leave()

    def _compare(self, pairs: Sequence[tuple[Sent, bytes]]) -> None:
        """Send messages again, and see whether they are answered as before; what was refused may differ."""
        good = [pair for pair in pairs if pair[0].is_good]
        if good:
            answers = self._exchanged([one for one, _ in good])
            self.changed += sum(new != old for new, (_, old) in zip(answers, good, strict=True))
            self._line.count(len(good))

    def _exchanged(self, some: Sequence[Sent]) -> list[bytes]:
        """Send messages of one verb until they are answered."""
        while True:
            try:
                if self._connection is None:
                    self._port = self._line.wait()
                    self._connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
                    self._look_back()
                return self._asked(some)
            except (OSError, http.client.HTTPException):
                self._leave()
                self._line.wait(besides=self._port)

    def _look_back(self) -> None:
        """After the service came back: it has to know what was said last."""
        for place in range(max(0, len(self.sent) - _AGAIN), len(self.sent)):
            if self.sent[place].is_good:
                self.changed += self._asked([self.sent[place]]) != [self.got[place]]

    def _asked(self, some: Sequence[Sent]) -> list[bytes]:
        if self._connection is None:
            raise ConnectionError
        path, alone = f"/v1/streams/{CHAMPION}/{some[0].verb}", len(some) == 1
        body = b"\n".join(one.line for one in some)
        kind = "application/json" if alone else LINES
        self._connection.request("POST", path, body, {"Content-Type": kind})
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status not in (200, 422):
            raise VarnnError(f"{answer.status}: {content[:300]!r}")
        found = [content] if alone else content.splitlines()
        for one, text in zip(some, found, strict=True):
            if one.is_good == (b'"error"' in text):
                raise VarnnError(f"{one.line!r} was answered by {text!r}")
        return found

    def _leave(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def by_verb(sent: Sequence[Sent]) -> list[list[Sent]]:
    """Put messages together that can be one request: of one verb, and each series in its own order.

    Examples
    --------
    >>> row, label = Sent("step", {"series": "a"}), Sent("observe", {"series": "a"})
    >>> [len(some) for some in by_verb([row, label, Sent("step", {"series": "b"})])]
    [2, 1]
    """
    waiting: dict[str, deque[Sent]] = {}
    for one in sent:
        waiting.setdefault(one.message["series"], deque()).append(one)
    together: list[list[Sent]] = []
    for verb in cycle(("step", "observe")):
        some = [one for queue in waiting.values() for one in _first(queue, verb)]
        if some:
            together.append(some)
        if not any(waiting.values()):
            return together
    return together


def _first(queue: "deque[Sent]", verb: str) -> Iterator[Sent]:
    while queue and queue[0].verb == verb:
        yield queue.popleft()


def killed(
    models: tuple[Path, Path],
    folder: Path,
    *,
    kills: int,
    clients: int = 4,
    series: int = 6,
    wanted: int = 600,
    n_inputs: int = 3,
    seed: int = 0,
) -> Killed:
    """Kill and go on so many times.

    Parameters
    ----------
    models
        Files of the champion and of a challenger.
    folder
        Where all is kept.
    kills, clients, series
        How often; clients that talk at the same time, and series of each.
    wanted
        Answers before a kill, at most.
    n_inputs
        Inputs of the models.
    seed
        Of what is drawn.
    """
    random, found, line = np.random.default_rng(seed), Killed(series=clients * series), Line()
    scripts = [
        [Script(f"s{client}.{one}", n_inputs, seed, timed=one % 3 > 0) for one in range(series)]
        for client in range(clients)
    ]
    voices = [Voice(line, some, seed + client) for client, some in enumerate(scripts)]
    data = folder / "killed.service"
    # Fewer in memory than there are, so that series come from the disk all the time.
    options = ["--in-memory", str(max(1, found.series * 2 // 3)), "--answers", "1000000"]
    start = _set_up(models, data, options)
    for voice in voices:
        voice.start()
    for _ in range(kills):
        with Served(data, options) as served:
            if random.random() < _AT_START:
                time.sleep(float(random.uniform(0, start)))
                found.kills_at_start += served.process.poll() is None
            else:
                line.put(served.address())
                line.wait_for(line.answers + int(random.integers(1, wanted)))
                found.seconds_to_go_on.append((line.first or 0.0) - served.started)
                time.sleep(float(random.uniform(0, _LATEST)))
            found.kills += served.process.poll() is None
            served.kill()
            line.put(None)
            found.tracebacks += served.words.count("Traceback")
        _check(voices)
    with Served(data, options) as served:
        line.put(served.address())
        line.wait_for(line.answers + 10)
        line.ended = True
        for voice in voices:
            voice.join(PATIENCE)
        _check(voices)
        for voice in voices:
            voice.again()
        client = served.client(stream=CHAMPION)
        names = [one.series for some in scripts for one in some]
        states = {name: client.get(f"/v1/streams/{CHAMPION}/series/{name}/snapshot") for name in names}
        client.close()
        found.exit_code = served.end()
        found.tracebacks += served.words.count("Traceback")
    found.answers, found.messages = line.answers, sum(len(voice.sent) for voice in voices)
    found.changed = sum(voice.changed for voice in voices)
    _judge(models, folder, voices, states, found)
    _count(kept_in(data / "streams" / f"{CHAMPION}.state"), [one for some in scripts for one in some], found)
    return found


def _set_up(models: tuple[Path, Path], data: Path, options: Sequence[str]) -> float:
    """Begin the stream with its challenger; gives how many seconds a start takes."""
    with Served(data, [models[0], *options]) as served:
        client = served.client()
        start = time.monotonic() - served.started
        client.request("PUT", f"/v1/models/{CHALLENGER}", models[1].read_bytes(), "application/octet-stream")
        body = json.dumps({"model": CHALLENGER}).encode()
        client.request("POST", f"/v1/streams/{CHAMPION}/challengers", body)
        client.close()
    return start


def _check(voices: Sequence[Voice]) -> None:
    for voice in voices:
        if voice.error is not None:
            raise voice.error


def _judge(
    models: tuple[Path, Path],
    folder: Path,
    voices: Sequence[Voice],
    states: dict[str, bytes],
    found: Killed,
) -> None:
    """Compare with a run that nothing happened to."""
    whole = folder / "whole.service"
    sent = [voice.sent for voice in voices]
    answers, states_of_whole = said_without_kills(
        models[0], models[1], whole, sent, StreamSettings(answers=10**6)
    )
    for voice, expected in zip(voices, answers, strict=True):
        pairs = zip(voice.sent, voice.got, expected, strict=True)
        found.differing += sum(got != text for one, got, text in pairs if one.is_good)
    found.states_differing = sum(states[name] != blob for name, blob in states_of_whole.items())
    mine, other = (
        kept_in(one / "streams" / f"{CHAMPION}.state") for one in (folder / "killed.service", whole)
    )
    found.tables_differing = [name for name in mine._fields if getattr(mine, name) != getattr(other, name)]


def _count(kept: Kept, scripts: Sequence[Script], found: Killed) -> None:
    """See that each label that was said is in the history, once, and as it was said."""
    for script in scripts:
        rows = [one for one in kept.history if one[0] == script.series]
        found.doubled += len(rows) - len({one[1] for one in rows})
        found.lost += abs(len(script.times) - len({one[1] for one in rows}))
        labels = {one[1]: one[2] for one in rows}
        found.lost += sum(labels.get(row) != label for row, label in script.labels.items())
        found.doubled += sum(label is not None and row not in script.labels for row, label in labels.items())
