"""The work of ``varnn stream``: lines in, answers out, a group at a time."""

import sys
import time
from typing import Any

from varnn.cli._counters import Counters
from varnn.cli._lines import TOO_LONG, Lines, Signals, send
from varnn.streaming.json_text import read, write
from varnn.streaming.store import Store


def serve(store: Store, lines: Lines, signals: Signals, stats: float | None) -> None:
    """Answer groups of lines, until a signal asks for the end; answers are kept, then sent."""
    counters = Counters()
    for group in lines.groups(stats):
        begun, answers, errors = time.perf_counter(), [], 0
        for line in group:
            if signals.stop is not None:
                break
            counters.lines += 1
            if line and not line.isspace():
                answer, wrong = answer_line(line, counters.lines, store)
                errors += wrong
                answers.append(answer)
        store.commit()
        if answers:
            answers.append(b"")  # a line ends in an end of line
            send(b"\n".join(answers), signals)
            counters.add(errors=errors, seconds=time.perf_counter() - begun)
        if signals.tell or counters.is_due(stats):
            signals.tell = False
            sys.stderr.write(counters.said(store.n_series) + "\n")
        if signals.stop is not None:
            return


def answer_line(line: bytes, number: int, store: Store) -> tuple[bytes, int]:
    """Answer a line, as JSON, and count the errors."""
    if line is TOO_LONG:
        return _refused(f"line {number} is longer than --longest-line, and was passed over")
    try:
        message = read(line)
    except (ValueError, RecursionError) as error:
        return _refused(f"line {number} is not JSON: {str(error)[:200]}")
    if type(message) is dict and ("x" in message or "y" in message):
        answer, text = store.reply(message, line)
        if text is not None:
            return text.encode(), 0
        if "error" in answer:
            return write(_placed(answer, number)), 1
        return write(answer), 0
    if isinstance(message, list) and message and all(isinstance(one, dict) for one in message):
        found = store.answer_all(message)
        if isinstance(found, dict):
            return write(_placed(found, number)), 1
        return write([_placed(one, number) for one in found]), sum("error" in one for one in found)
    return _refused(f"line {number} must be an object with 'x', 'y' or both, or a list of such")


def _refused(why: str) -> tuple[bytes, int]:
    return write({"error": why}), 1


def _placed(answer: dict[str, Any], number: int) -> dict[str, Any]:
    """Say in an error which line it is about."""
    return answer | {"error": f"line {number}: {answer['error']}"} if "error" in answer else answer
