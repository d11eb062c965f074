"""What is done to every file that is scored, and how one tells that it was done to it."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from varnn.data.tables import Reading
from varnn.model.fitted import Fitted

_FORMAT = 1
Models = Fitted | Mapping[str, Any]  # the model of all series, or that of each


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """What is done to every file, the same for all.

    Parameters
    ----------
    models : Fitted or mapping
        The model of all series; or that of each, by its name.
    fingerprint : str
        What tells them from others.
    reading : Reading
        How rows are read.
    must_have_target : bool
        Whether a file without the target column is refused, and not taken as one without labels.
    levels : tuple of float
        Levels of intervals.
    resume : bool or None
        Whether the rows follow the training rows, as in ``model.predict``.
    in_closed_loop : bool
        Whether no file has a label.
    alone : bool
        Whether there is but one file.
    keep : bool
        Whether a file that was scored before in the same way is left as it is.
    """

    models: Models
    fingerprint: str
    reading: Reading
    must_have_target: bool
    levels: tuple[float, ...]
    resume: bool | None
    in_closed_loop: bool
    alone: bool
    keep: bool

    def facts(self, source: Path) -> bytes:
        """What a file of predictions says of how it was made, to be known again."""
        found = source.stat()
        reading = {name: one for name, one in asdict(self.reading).items() if name != "categories"}
        facts = {
            "format": _FORMAT,
            "model": self.fingerprint,
            "source": [source.name, found.st_size, found.st_mtime_ns],
            "levels": self.levels,
            "reading": reading,
            "resume": self.resume,
            "closed_loop": self.in_closed_loop,
            "alone": self.alone,
        }
        return json.dumps(facts, default=str, sort_keys=True).encode()
