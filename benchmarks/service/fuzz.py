r"""A service asked all kinds of things: it answers each in words, soon, and what it refuses changes nothing.

Requests are made over the OpenAPI document (`benchmarks.service.wild_requests`), and bytes that are none
(`benchmarks.service.raw_bytes`). Each answer is held against the document. That nothing changes is seen in
three ways:

- after each request that was refused, or that only reads, no state file has a new transaction, and no file
  came or went;
- around some of them, the whole content is compared: states, history, events, answers;
- a second service gets what the first one has taken, and nothing else: at the end both hold the same, to the
  last bit.

Schemathesis looks for other things over the same document. In an environment of its own (it needs packages
that are not wanted here), with a service at work that has seen a row of the series "a" ::

    varnn serve house.varnn --port 8000
    printf '[parameters]\nstream = "house"\nmodel = "rival"\nseries = "a"\n' > schemathesis.toml
    schemathesis --config-file schemathesis.toml run http://127.0.0.1:8000/v1/openapi.json \
        --exclude-path '/v1/streams/{stream}/live' --exclude-path '/v1/streams/{stream}' --max-examples 200

(the first path has no end, and the second retires the stream). It finds no error of the server's. What it
says is wrong is meant so: lists are answered by 200 with an error in its place, a schema cannot say what a
model file or a time is (ST201, ST202), and DELETE .../series/a/history forgets a series "a/history" (ST204).
"""

import http.client
import json
import random as randomness
import socket
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np

from benchmarks.record import Measured, Row, significant
from benchmarks.service.content import Stamp, content
from benchmarks.service.process import Served
from benchmarks.service.raw_bytes import send_raw
from benchmarks.service.schema import wrong_with_answer
from benchmarks.service.slow import send_slowly
from benchmarks.service.wild_requests import HOST, Material, Request, made
from varnn.data.panel import Panel
from varnn.estimator.regressor import VARNNRegressor
from varnn.service.client import Client
from varnn.service.http.route_table import find_route
from varnn.streaming.json_text import read

SECONDS = 10.0  # until an answer must be there
_RAW = 0.1  # share of what is no request
_COMPARED = 0.004  # share of requests around which the whole content is compared
_AGREED_EVERY = 5000  # requests after which the two services are compared
_KEPT = 30  # things that went wrong and are told in full
_CHANGES = {"POST", "PUT", "DELETE"}


class Place(NamedTuple):
    """Where a service is: its port, and its folder."""

    port: int
    folder: Path


class Answer(NamedTuple):
    """What came back."""

    status: int
    kind: str
    body: bytes
    seconds: float


@dataclass
class Found:
    """What became of requests."""

    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)  # kind of request, status
    taken: int = 0  # messages
    refused: int = 0
    compared: int = 0
    differs: bool = False  # from what a service holds that got only what was taken
    slow: int = 0  # callers who sent a byte now and then
    slowest: float = 0.0
    wrong: list[str] = field(default_factory=list)
    wrongs: int = 0

    @property
    def requests(self) -> int:
        """How many there were."""
        return sum(self.statuses.values())

    def note(self, words: str) -> None:
        """Keep in mind that something went wrong."""
        self.wrongs += 1
        if len(self.wrong) < _KEPT:
            self.wrong.append(words[:1000])


class Connection:
    """One connection that is kept alive, and made anew when it was closed."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None

    def close(self) -> None:
        """Close it."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def ask(self, request: Request) -> Answer:
        """Send a request and read its answer; of one without an end, its beginning."""
        begun = time.perf_counter()
        while True:
            reused = self._socket is not None
            if self._socket is None:
                self._socket = socket.create_connection(("127.0.0.1", self._port), timeout=SECONDS)
            try:
                self._socket.sendall(_bytes(request))
                answer = http.client.HTTPResponse(self._socket, method=request.method)
                answer.begin()
                break
            except (ConnectionError, http.client.BadStatusLine):
                self.close()
                if not reused:  # else it was closed while nothing went over it
                    raise
        kind = answer.getheader("Content-Type", "")
        if kind.startswith("text/event-stream"):
            body = b"" if request.method == "HEAD" else answer.readline()
            self.close()
        else:
            body = answer.read()
            if answer.will_close:
                self.close()
        return Answer(answer.status, kind, body, time.perf_counter() - begun)


def _bytes(request: Request) -> bytes:
    given = {name.lower() for name, _ in request.headers}
    headers = [(b"Host", HOST), *request.headers]
    if (request.body or request.method in _CHANGES) and b"content-length" not in given:
        headers.append((b"Content-Length", str(len(request.body)).encode()))
    lines = [f"{request.method} ".encode() + request.target + b" HTTP/1.1"]
    lines += [name + b": " + value for name, value in headers]
    return b"\r\n".join([*lines, b"", request.body])


def run(
    place: Place,
    shadow: Place,
    material: Material,
    requests: int,
    *,
    first: int = 0,
    seed: int = 0,
    on_done: Callable[[int], None] = lambda done: None,
) -> Found:
    """Ask a service so many things, and a second one what the first has taken.

    Parameters
    ----------
    place, shadow
        Two services that hold the same, in folders of their own.
    material
        Good model files and snapshots.
    requests
        How many.
    first
        Number of the first: each follows from its number.
    seed
        Another one makes other requests.
    on_done
        Called with the number of those done, now and then.
    """
    found, stamp = Found(), Stamp(place.folder)
    connection, other = Connection(place.port), Connection(shadow.port)
    random = randomness.Random(f"{seed}/{first}")
    try:
        for number in range(first, first + requests):
            compared = random.random() < _COMPARED
            before = content(place) if compared else None
            try:
                if random.random() < _RAW:
                    sent = send_raw(place.port, number, seed=seed)
                    found.statuses[f"bytes: {sent.kind}", sent.statuses[0] if sent.statuses else 0] += 1
                    if sent.wrong or any(one >= 500 for one in sent.statuses):
                        found.note(f"raw {number}: {sent.wrong or sent.statuses}")
                    changed = False
                else:
                    changed = _one(found, number, made(number, material, seed), connection, other)
            except (OSError, http.client.HTTPException) as error:
                found.note(f"request {number}: {type(error).__name__}: {error}")
                connection.close()
                other.close()
                changed = True
            if stamp.changed() and not changed:
                found.note(f"request {number} was refused, or reads, and changed something on disk")
            if before is not None and not changed:
                found.compared += 1
                if content(place) != before:
                    found.note(f"request {number} was refused, or reads, and changed the content")
            if number % 100 == 99:
                on_done(number + 1 - first)
            if number % _AGREED_EVERY == _AGREED_EVERY - 1:
                _agree(found, number, place, shadow)
        _agree(found, first + requests - 1, place, shadow)
    finally:
        connection.close()
        other.close()
        stamp.close()
    return found


def _agree(found: Found, number: int, place: Place, shadow: Place) -> None:
    """Compare what both services hold."""
    mine, others = content(place, own=False), content(shadow, own=False)
    differing = sorted(name for name in mine.keys() | others.keys() if mine.get(name) != others.get(name))
    if differing and not found.differs:
        found.differs = True
        found.note(f"up to {number}: a service that got only what was taken holds another {differing[:10]}")


def _one(found: Found, number: int, request: Request, connection: Connection, other: Connection) -> bool:
    """Send one request, look at its answer, let the other service have what was taken; whether any was."""
    answer = connection.ask(request)
    found.statuses[request.kind, answer.status] += 1
    found.slowest = max(found.slowest, answer.seconds)
    where = f"request {number}, {request.method} {request.target[:120]!r}"
    if answer.status >= 500:
        found.note(f"{where}: {answer.status} {answer.body[:300]!r}")
    if answer.seconds > SECONDS:
        found.note(f"{where}: took {answer.seconds:.1f} s")
    told, wrong = _told(request, answer)
    if wrong:
        found.note(f"{where}: {answer.status} {wrong[:3]}; {answer.body[:200]!r}")
    if answer.status >= 400 or request.method not in _CHANGES:
        found.refused += answer.status >= 400
        return False
    template = find_route(request.method, unquote(request.path)).template
    if template.endswith(("/predict", "/backup")) or template in ("/login", "/logout"):
        return False
    again = request
    if template.endswith(("/observe", "/step")):
        again, taken, refused = _taken(request, told)
        found.taken += taken
        found.refused += refused
        if not taken:
            return False
    same = other.ask(again)
    if same.status != answer.status or (again is request and _stable(same) != _stable(answer)):
        said = f"{same.status} {same.body[:200]!r}"
        found.note(f"{where}: the other service answered {said}, not {answer.body[:200]!r}")
    elif b'"error"' in same.body and again is not request:
        found.note(f"{where}: the other service refused what the first one took: {same.body[:300]!r}")
    return True


def _told(request: Request, answer: Answer) -> tuple[Any, list[str]]:
    """Content of an answer, and what is wrong with it."""
    told: Any = None
    try:
        if answer.kind == "application/json" and request.method != "HEAD":
            told = json.loads(answer.body, parse_constant=_no_constant)
        elif answer.kind == "application/x-ndjson":
            told = [json.loads(line, parse_constant=_no_constant) for line in answer.body.splitlines()]
    except ValueError as error:
        return None, [f"the answer is no JSON: {error}"]
    if answer.status == 400 and answer.kind.startswith("text/plain"):
        return None, []  # the server's own: it was no HTTP
    if answer.kind == "text/html; charset=utf-8":
        return None, []  # a page
    if request.method == "HEAD" and answer.status >= 400:
        return None, []  # nothing is said in it
    checked = None if answer.kind == "application/x-ndjson" else told
    return told, wrong_with_answer(request.method, unquote(request.path), answer.status, answer.kind, checked)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _taken(request: Request, told: Any) -> tuple[Request, int, int]:
    """The messages of a request that were taken, as a request; and how many were, and were not."""
    if isinstance(told, dict):
        return request, 1, 0
    if b"ndjson" in dict(request.headers).get(b"Content-Type", b""):
        messages = []
        for line in request.body.split(b"\n"):
            if line.strip():
                try:
                    messages.append(read(line))
                except (ValueError, RecursionError):
                    messages.append(None)
    else:
        messages = read(request.body)
    taken = [one for one, answer in zip(messages, told, strict=True) if "error" not in answer]
    again = request._replace(
        body=json.dumps(taken).encode(), headers=[(b"Content-Type", b"application/json")]
    )
    return again, len(taken), len(messages) - len(taken)


def _stable(answer: Answer) -> Any:
    """An answer without what depends on when it was given."""
    if answer.kind != "application/json":
        return answer.body
    return json.loads(answer.body)


def gather(place: Place, model_files: list[Path]) -> Material:
    """Bring a service, and what is to be sent to it, to where the fuzz begins."""
    with Client(f"http://127.0.0.1:{place.port}", stream="house") as client:
        for path in model_files:
            client.add_model(path.stem, path)
        client.add_challenger("rival")
        rows = [{"series": "a", "x": [0.1 * n, 0.2], "y": 0.1 * n} for n in range(40)]
        client.step([*rows, {"series": "a", "x": [1.0, 2.0]}])
        client.step([{"series": "b", "x": [1.0, 2.0]}, {"series": "b", "x": [2.0, 2.0]}])
        snapshots = [client.snapshot("a"), client.snapshot("b")]
    return Material([path.read_bytes() for path in model_files], snapshots)


def measure(
    requests: int, *, first: int = 0, slow: int = 0, on_done: Callable[[int], None] = lambda done: None
) -> Found:
    """Make models, start two services as processes of their own, and ask them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        house, *others = write_models(folder)
        with (
            Served(folder / "one", [house, "--history", "300"]) as one,
            Served(folder / "two", [house, "--history", "300", "--in-memory", "5"]) as two,
        ):
            place = Place(one.address(300.0), folder / "one")
            shadow = Place(two.address(300.0), folder / "two")
            for each in (place, shadow):
                _wait_until_ready(each.port)
            material = gather(place, others)
            gather(shadow, others)
            found = run(place, shadow, material, requests, first=first, on_done=on_done)
            if slow:
                left, longest = send_slowly(place.port, slow)
                found.slow = slow
                found.slowest = max(found.slowest, longest)
                if left:
                    found.note(f"{left} of {slow} callers who send a byte now and then were not let go")
            for served in (one, two):
                code = served.end()
                if code != 0 or "raceback" in served.words:
                    found.note(f"a service ended with {code} and said: {served.words[-500:]}")
    return found


def write_models(folder: Path) -> list[Path]:
    """Fit small models and save them; the first is the one to serve."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(300, 2))
    y = X[:, 0] + 0.1 * generator.normal(size=300)
    written = []
    for seed, (name, inputs) in enumerate({"house": 2, "rival": 2, "narrow": 1}.items()):
        names = ["heat", "wind"][:inputs]
        panel = Panel.from_arrays(X[:, :inputs], y, input_names=names, target_name="load")
        written.append(folder / f"{name}.varnn")
        model = VARNNRegressor(ensemble=1, epochs=1, hidden_size=4, random_state=seed)
        model.fit(panel).save(written[-1])
    return written


def _wait_until_ready(port: int) -> None:
    with Client(f"http://127.0.0.1:{port}", patience=300.0) as client:
        client.get("/readyz")


def tables(found: Found) -> list[Measured]:
    """Lay out what was found: by kind of request and status."""
    kinds = sorted({kind for kind, _ in found.statuses})
    statuses = sorted({status for _, status in found.statuses})
    rows: list[Row] = []
    for kind in kinds:
        counts = {status: found.statuses[kind, status] for status in statuses}
        row: Row = {"requests": kind, "in all": sum(counts.values())}
        rows.append(row | {str(status) if status else "closed": count for status, count in counts.items()})
    title = (
        f"{found.requests:,} requests; {found.taken:,} messages were taken, {found.refused:,} messages or "
        f"requests refused; the slowest answer took {significant(found.slowest)} s"
    )
    checks = [
        f"{found.wrongs} went wrong: answered by 500 or more, not answered in {SECONDS:g} s, answered "
        "otherwise than the OpenAPI document says, or refused and yet of effect",
        f"the whole content was compared around {found.compared:,} of them, and at the end with that of a "
        "service that got only what was taken",
        f"{found.slow} callers who sent a byte now and then were let go, and held up nobody",
        *found.wrong,
    ]
    return [Measured(name="service fuzz", title=title, threads=1, rows=rows, checks=checks)]
