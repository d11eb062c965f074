"""Where many models are kept: what is asked of it, and one that is in memory."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from varnn.errors import ModelFileError


class Entry(NamedTuple):
    """What came of one series."""

    name: str
    fingerprint: str  # of settings and rows
    settings: str  # as JSON
    blob: bytes | None  # of its model, as a .varnn file has them; None where there is none
    reason: str | None  # why there is none
    facts: dict[str, Any]


class Shelf(Protocol):
    """Models by name, as bytes."""

    @property
    def place(self) -> str:
        """What to call it in words."""
        ...

    def names(self) -> list[str]:
        """Names of all models, in the order of the series."""
        ...

    def count(self) -> int:
        """How many models there are."""
        ...

    def has(self, name: str) -> bool:
        """Tell whether there is a model."""
        ...

    def get(self, name: str) -> bytes | None:
        """Bytes of a model, checked; None where there is none."""
        ...

    def reason(self, name: str) -> str | None:
        """Why a series failed; None if it did not."""
        ...

    def failures(self) -> dict[str, str]:
        """Reasons of all series that failed."""
        ...

    def waiting(self) -> int:
        """How many series were to be fitted and are not yet."""
        ...

    def facts(self, name: str) -> dict[str, Any]:
        """What is known of a model's fit."""
        ...

    def different(self, fact: str) -> list[Any]:
        """What models have for a fact, each once."""
        ...

    def settings(self) -> list[tuple[str, int]]:
        """Settings as JSON, and how many models have them."""
        ...


class WritableShelf(Shelf, Protocol):
    """One that entries are put on."""

    def fingerprints(self) -> dict[str, str]:
        """Fingerprints of series that have a model, and did not fail since."""
        ...

    def expect(self, names: Iterable[str]) -> None:
        """Note which series are to come, in their order."""
        ...

    def put(self, entries: Sequence[Entry]) -> None:
        """Keep entries, all or none; the model of a series that failed now stays."""
        ...

    def close(self) -> None:
        """End writing."""
        ...


def checksum(blob: bytes) -> str:
    """Hash by which damage is found."""
    return hashlib.sha256(blob).hexdigest()


def checked(blob: bytes, wanted: str, name: str, place: str) -> bytes:
    """Refuse bytes of a model that are not what was written."""
    if checksum(blob) != wanted:
        raise ModelFileError(
            f"the model of series {name!r} in {place} is damaged: its checksum does not match. The other "
            "models are not touched by that; fit_many (varnn fit --each series) with the same rows and "
            "settings fits this one again."
        )
    return blob


@dataclass
class MemoryShelf:
    """A shelf that is gone with the process.

    Examples
    --------
    >>> shelf = MemoryShelf()
    >>> shelf.put([Entry("a", "f", "{}", b"...", None, {"seconds": 1.0})])
    >>> shelf.names(), shelf.get("a"), shelf.failures()
    (['a'], b'...', {})
    """

    entries: dict[str, Entry] = field(default_factory=dict)
    expected: dict[str, None] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    place: str = "memory"

    def names(self) -> list[str]:
        """Names of all models, in the order of the series."""
        return [name for name in {**self.expected, **dict.fromkeys(self.entries)} if name in self.entries]

    def count(self) -> int:
        """How many models there are."""
        return len(self.entries)

    def has(self, name: str) -> bool:
        """Tell whether there is a model."""
        return name in self.entries

    def get(self, name: str) -> bytes | None:
        """Bytes of a model; None where there is none."""
        return self.entries[name].blob if name in self.entries else None

    def reason(self, name: str) -> str | None:
        """Why a series failed; None if it did not."""
        return self.reasons.get(name)

    def failures(self) -> dict[str, str]:
        """Reasons of all series that failed."""
        return dict(self.reasons)

    def waiting(self) -> int:
        """How many series were to be fitted and are not yet."""
        return sum(name not in self.entries and name not in self.reasons for name in self.expected)

    def facts(self, name: str) -> dict[str, Any]:
        """What is known of a model's fit."""
        return dict(self.entries[name].facts) if name in self.entries else {}

    def different(self, fact: str) -> list[Any]:
        """What models have for a fact, each once."""
        found = {json.dumps(one.facts.get(fact)): one.facts.get(fact) for one in self.entries.values()}
        return list(found.values())

    def settings(self) -> list[tuple[str, int]]:
        """Settings as JSON, and how many models have them."""
        counts: dict[str, int] = {}
        for one in self.entries.values():
            counts[one.settings] = counts.get(one.settings, 0) + 1
        return sorted(counts.items(), key=lambda found: -found[1])

    def fingerprints(self) -> dict[str, str]:
        """Fingerprints of series that have a model, and did not fail since."""
        return {name: one.fingerprint for name, one in self.entries.items() if name not in self.reasons}

    def expect(self, names: Iterable[str]) -> None:
        """Note which series are to come, in their order."""
        self.expected |= dict.fromkeys(names)

    def put(self, entries: Sequence[Entry]) -> None:
        """Keep entries; the model of a series that failed now stays."""
        for one in entries:
            if one.reason is None:
                self.entries[one.name] = one
                self.reasons.pop(one.name, None)
            else:
                self.reasons[one.name] = one.reason

    def close(self) -> None:
        """End writing."""
