"""Messages that were answered before, by number and by key: of the group under way, and on disk."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from varnn.data.rules import shown
from varnn.errors import DataError
from varnn.streaming._journal import Journal
from varnn.streaming.json_text import read
from varnn.streaming.kept import Known
from varnn.streaming.messages import LONGEST_NAME


class OutOfTurn(DataError):  # noqa: N818 - what is wrong with a message
    """A message is not the next one of its series; ``due`` is the number of that."""

    def __init__(self, words: str, due: int) -> None:
        super().__init__(words)
        self.due = due


class Reply(NamedTuple):
    """An answer, and the text of it that is kept on disk, if one is."""

    answer: dict[str, Any]
    text: str | None = None


class Answered:
    """What was answered, for messages that are sent again.

    Parameters
    ----------
    journal : Journal or None
        Where answers are kept; None for streams in memory alone, whose messages have no numbers.
    by_kind : bool, default=False
        Whether a label must not have the key of an x, nor an x that of a label.
    """

    def __init__(self, journal: Journal | None, *, by_kind: bool = False) -> None:
        self._journal, self._by_kind = journal, by_kind
        self._new: dict[tuple[int, int | str], str] = {}  # of the group under way

    def forget_group(self) -> None:
        """The group is on disk, or is given up."""
        self._new = {}

    def keep(self, known: Known, key: str | None, text: str) -> None:
        """Keep in mind an answer of the group."""
        self._new[known.id, known.seq] = text
        if key is not None:
            self._new[known.id, key] = text

    def checked_key(self, message: Mapping[str, Any]) -> str | None:
        """The key of a message, as it is kept, if it has one; refuse a wrong one, and a wrong number."""
        seq, key = message.get("seq"), message.get("key")
        if (seq is not None or key is not None) and self._journal is None:
            raise DataError("seq and key are for streams that are kept on disk; this one is not (--state).")
        if seq is not None and (type(seq) is not int or not 0 < seq < 2**62):
            raise DataError(f"seq must be a whole number from 1 to 2^62; got {shown(seq)}.")
        return None if key is None else _kept_key("key", key)

    def again(self, known: Known, message: Mapping[str, Any], key: str | None) -> Reply | None:
        """Answer of a message that was answered before; None if it is a new one."""
        seq = message.get("seq")
        if self._journal is None or (seq is None and key is None):
            return None
        if seq is not None and seq > known.seq:
            if key is not None and self._by_key(known, key) is not None:
                raise DataError(
                    f"seq {seq} is that of a new message, and the key {shown(message['key'])} that of one "
                    "which was answered before. Give one of the two."
                )
            return None
        if seq is None:
            text = self._by_key(known, str(key))
        else:
            text = self._by_number(known, seq)
            if text is None:
                raise OutOfTurn(
                    f"message {seq} of this series was answered before, and its answer is no longer kept; "
                    f"the next one has seq {known.seq + 1}.",
                    known.seq + 1,
                )
        if text is None:
            return None
        found = read(text)
        if self._by_kind and ("x" in message) != ("prediction" in found):
            brought = "an x" if "prediction" in found else "a label"
            raise DataError(
                f"the message with this {'key' if seq is None else 'seq'} brought {brought}. Give each "
                "message one of its own; a label names its row with for."
            )
        return Reply(found, text)

    def row_of(self, known: Known | None, which: Any) -> int:
        """Row that was opened by the message with a key, or a number."""
        text = None
        if type(which) is int and known is not None and 0 < which <= known.seq:
            text = self._by_number(known, which)
        elif type(which) is not int:
            key = _kept_key("for", which)
            text = None if known is None else self._by_key(known, key)
        if text is None:
            raise DataError(
                f"for must be the key, or the seq, of the message that asked for the prediction; "
                f"{shown(which)} is none that is kept of this series. Give the row instead, if it is known."
            )
        found = read(text)
        if "prediction" not in found:
            raise DataError(f"the message {shown(which)} brought a label; for must name one that brought x.")
        return int(found["row"])

    def _by_number(self, known: Known, seq: int) -> str | None:
        if self._journal is None:
            return None
        return self._new.get((known.id, seq)) or self._journal.answer(known.id, seq)

    def _by_key(self, known: Known, key: str) -> str | None:
        if self._journal is None:
            return None
        return self._new.get((known.id, key)) or self._journal.answer_by_key(known.id, key)


def check_next(coming: int, message: Mapping[str, Any]) -> None:
    """Refuse a message that is not the next one of its series."""
    seq = message.get("seq", coming)
    if seq not in (None, coming):
        raise OutOfTurn(
            f"the next message of this series has seq {coming}; got {seq}. Go on from there.", coming
        )


def _kept_key(field: str, key: Any) -> str:
    """A key as it is kept: ASCII, as not all that Python takes for text is text."""
    if not isinstance(key, str) or not 0 < len(key) <= LONGEST_NAME:
        raise DataError(f"{field} must be a text of 1 to {LONGEST_NAME} characters; got {shown(key)}.")
    return json.dumps(key)
