"""What a store keeps of its series, as records: messages, answers, states."""

from typing import NamedTuple


class Known(NamedTuple):
    """A series that has a row."""

    id: int
    seq: int  # of its last message


class Answer(NamedTuple):
    """An answer to keep; its text is one line."""

    series: int
    seq: int
    key: str | None
    text: str


class Entry(NamedTuple):
    """A message to keep, one line; a scope is what has a state of its own: a series, or 0 for all linked."""

    scope: int
    entry: int
    message: str


class State(NamedTuple):
    """The state of a scope, after its messages up to an entry."""

    scope: int
    entry: int
    state: bytes


class Group(NamedTuple):
    """What is written in one step."""

    series: dict[str, Known]  # that are new, or went on
    entries: list[Entry]
    answers: list[Answer]
    states: list[State]
    answered: dict[int, int]  # numbers up to which answers of a series are no longer kept
