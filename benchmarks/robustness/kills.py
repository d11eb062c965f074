"""Streams killed in the middle of their work, and gone on with: what is lost, doubled, torn or different.

A client sends lines with their numbers to a real process, ``varnn stream --state``, in batches; it waits for
the answers of a batch before it sends the next. At a moment drawn at random the process gets a signal. The
client then begins another process with the same file, and sends again from the first line it has no answer
to, or from a little before that. At the end every answer is compared with those of a run that nothing
happened to.
"""

import contextlib
import json
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from varnn.streaming.store import Store

COMMAND = [sys.executable, "-c", "from varnn.cli.app import main; main()", "stream"]
SIGNALS = ("SIGKILL", "SIGTERM", "SIGINT")
BATCHES = (1, 50, 10_000)
_ENDS = {"SIGKILL": -9, "SIGTERM": 143, "SIGINT": 130}
_ANSWERS = {1: 25, 50: 400, 10_000: 2500}  # at most so many before the signal
_LATEST = 0.02  # seconds after the last of these, at most
_PATIENCE = 120.0  # seconds without an answer


@dataclass
class Killed:
    """What came of some kills."""

    kills: int = 0
    lines: int = 0  # answered
    answers: int = 0  # received, those to lines sent again too
    lost: int = 0  # lines that were answered, and that a later process did not know
    doubled: int = 0  # lines that count twice in the file
    torn: int = 0  # answers that are no JSON, but for the last one of a process that was cut off
    differing: int = 0  # answers that are not those of a run without kills
    other_ends: int = 0  # processes that ended with another code than their signal's
    seconds_to_go_on: list[float] = field(default_factory=list, repr=False)  # from start to first answer


def lines_for(
    n_inputs: int, count: int, *, series: int = 5, seed: int = 0, lists: bool = False
) -> list[bytes]:
    """Make lines of some series, each with its number: x and y at once, or moments of all series as lists."""
    random = np.random.default_rng(seed)
    lines = []
    for index in range(count):
        rows = []
        for one in range(series) if lists else [index % series]:
            number = index + 1 if lists else index // series + 1
            x, y = random.normal(size=n_inputs).round(4).tolist(), round(float(random.normal()), 4)
            rows.append(
                {"series": f"s{one}", "x": x, "y": y if random.random() > 0.1 else None, "seq": number}
            )
        lines.append(json.dumps(rows if lists else rows[0]).encode() + b"\n")
    return lines


def lines_needed(kills: int, batch: int) -> int:
    """How many lines are enough for so many kills: answers on their way come beside those waited for."""
    return int(kills * (0.8 * _ANSWERS[batch] + min(20 * batch, 1500))) + 2 * batch + 500


def killed(
    model_path: Path,
    model: Any,
    folder: Path,
    lines: Sequence[bytes],
    *,
    kills: int,
    batch: int,
    signals: Sequence[str] = SIGNALS,
    seed: int = 0,
    options: Sequence[str] = (),
) -> Killed:
    """Kill and go on so many times.

    Parameters
    ----------
    model_path, model
        The model, as a file for the processes and loaded for the run that nothing happens to.
    folder
        Where the state is kept.
    lines
        What is sent; enough for all kills.
    kills, batch, signals
        How often, lines sent at once, and the signals in turn.
    seed
        Of what is drawn.
    options
        More options of the command.
    """
    random = np.random.default_rng(seed)
    state, found = folder / "killed.state", Killed()
    got: dict[int, str] = {}  # the answer to each line, the first time
    position = 0
    for kill in range(kills + 1):  # after the last kill, once more, to the end of a batch
        name = signals[kill % len(signals)] if kill < kills else None
        begin = max(0, position - int(random.integers(4)))
        wanted = int(random.integers(_ANSWERS[batch] + 1)) if name else min(100, len(lines) - begin)
        client = _Client([*COMMAND, str(model_path), "--state", str(state), *options], lines, begin, batch)
        client.run(wanted, name, float(random.uniform(0, _LATEST)))
        found.kills += name is not None
        found.other_ends += name is not None and client.code != _ENDS[name]
        if client.first is not None:
            found.seconds_to_go_on.append(client.first)
        _judge(client, begin, got, found)
        while position in got:
            position += 1
        if position >= len(lines) - batch:
            raise ValueError(f"{len(lines)} lines are not enough for {kills} kills in batches of {batch}")
    found.lines = len(got)
    _compare(model, state, lines, got, found)
    return found


class _Client:
    """One process, the lines sent to it, and its answers."""

    def __init__(self, command: list[str], lines: Sequence[bytes], begin: int, batch: int) -> None:
        self.answers: list[bytes] = []
        self.rest = b""  # of an answer that was cut off
        self.first: float | None = None
        self.code = 0
        self._over = False  # whether the last answer came
        self._lines, self._begin, self._batch = lines, begin, batch
        self._came = threading.Condition()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
        )
        self._started = time.monotonic()

    def run(self, wanted: int, name: str | None, delay: float) -> None:
        """Send batch after batch; once so many answers came, wait a moment and send the signal."""
        threads = [threading.Thread(target=one, daemon=True) for one in (self._send, self._read)]
        for thread in threads:
            thread.start()
        self._wait_for(wanted)
        if name is not None:
            time.sleep(delay)
            self._process.send_signal(getattr(signal, name))
        else:
            self._process.terminate()
        threads[1].join(_PATIENCE)
        self.code = self._process.wait(_PATIENCE)
        threads[0].join(_PATIENCE)

    def _wait_for(self, answers: int) -> None:
        with self._came:
            self._came.wait_for(lambda: len(self.answers) >= answers or self._over, _PATIENCE)

    def _send(self) -> None:
        pipe, sent = self._process.stdin, 0
        if pipe is None:
            return
        try:
            while (
                some := self._lines[self._begin + sent : self._begin + sent + self._batch]
            ) and not self._over:
                rest = memoryview(b"".join(some))
                while rest:
                    rest = rest[pipe.write(rest) or 0 :]
                sent += len(some)
                self._wait_for(sent)
            with self._came:
                self._came.wait_for(lambda: self._over, _PATIENCE)
        except BrokenPipeError:
            pass
        finally:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def _read(self) -> None:
        pipe = self._process.stdout
        while pipe is not None and (block := pipe.read(1 << 16)):
            *whole, self.rest = (self.rest + block).split(b"\n")
            with self._came:
                if whole and self.first is None:
                    self.first = time.monotonic() - self._started
                self.answers += whole
                self._came.notify_all()
        with self._came:
            self._over = True
            self._came.notify_all()
        if pipe is not None:
            pipe.close()


def _judge(client: _Client, begin: int, got: dict[int, str], found: Killed) -> None:
    """Put answers with the lines they are to; the same line is answered the same every time."""
    for place, text in enumerate(client.answers, start=begin):
        found.answers += 1
        try:
            answer = json.loads(text, parse_constant=_refuse)
        except ValueError:
            found.torn += 1
            continue
        errors = [one for one in (answer if isinstance(answer, list) else [answer]) if "error" in one]
        if errors:
            found.lost += any("has seq" in one["error"] for one in errors)
            found.differing += 1
        elif got.setdefault(place, text.decode()) != text.decode():
            found.differing += 1


def _compare(model: Any, state: Path, lines: Sequence[bytes], got: dict[int, str], found: Killed) -> None:
    """Compare with a run that nothing happened to, and with what the file says of its series."""
    sent: Counter[str] = Counter()
    with Store(model) as whole:
        for place in range(len(got)):
            message = json.loads(lines[place])
            rows = message if isinstance(message, list) else [message]
            numbers = [row.pop("seq") for row in rows]
            sent.update(row["series"] for row in rows)
            answers: Any = whole.answer_all(rows) if isinstance(message, list) else [whole.answer(rows[0])]
            for one, number in zip(answers, numbers, strict=True):
                one["seq"] = number
            answered = json.loads(got[place])
            found.differing += (answered if isinstance(answered, list) else [answered]) != answers
    with Store(model, state) as kept:
        for name, count in sent.items():
            line = {"series": name, "x": [], "seq": 2**60}  # refused, with the number that comes next
            coming = int(kept.answer(line)["error"].split("has seq ")[1].split(";")[0])
            found.lost += max(0, count + 1 - coming)
            total = len(lines) if lines[0].startswith(b"[") else sum(1 for _ in lines[:: len(sent)])
            found.doubled += max(0, coming - 1 - total)


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def summed_up(cases: dict[str, Killed]) -> dict[str, Any]:
    """All cases and their sums as plain values."""
    rows = []
    for name, one in cases.items():
        row = asdict(one)
        seconds = sorted(row.pop("seconds_to_go_on"))
        row["median seconds from start to first answer"] = (
            round(seconds[len(seconds) // 2], 2) if seconds else None
        )
        rows.append({"case": name} | row)
    names = ("kills", "lines", "answers", "lost", "doubled", "torn", "differing", "other_ends")
    return {"cases": rows, "total": {name: sum(row[name] for row in rows) for name in names}}
