"""A folder of ``.varnn`` files without an index, as somebody put it together."""

from pathlib import Path
from typing import Any

from varnn.errors import ModelFileError
from varnn.scale._names import SUFFIX, name_of


class ListedShelf:
    """Models of a folder by the names of their files, for reading; of their fits nothing is known.

    Parameters
    ----------
    path : Path
        The folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        files = sorted(one.name for one in path.glob(f"*{SUFFIX}"))
        self._files = {name_of(file): file for file in files}

    @property
    def place(self) -> str:
        """What to call it in words."""
        return repr(str(self.path))

    def names(self) -> list[str]:
        """Names of all models, in alphabetical order."""
        return list(self._files)

    def count(self) -> int:
        """How many models there are."""
        return len(self._files)

    def has(self, name: str) -> bool:
        """Tell whether there is a model."""
        return name in self._files

    def get(self, name: str) -> bytes | None:
        """Bytes of a model; None where there is none."""
        if name not in self._files:
            return None
        try:
            return (self.path / self._files[name]).read_bytes()
        except OSError as error:
            raise ModelFileError(f"{self._files[name]!r} in {self.place}: {error.strerror}.") from None

    def reason(self, name: str) -> str | None:
        """Why a series failed: nothing is known of that."""

    def failures(self) -> dict[str, str]:
        """Reasons of all series that failed: none are known."""
        return {}

    def waiting(self) -> int:
        """How many series were to be fitted and are not yet: none are known."""
        return 0

    def facts(self, name: str) -> dict[str, Any]:
        """What is known of a model's fit: nothing."""
        return {}

    def different(self, fact: str) -> list[Any]:
        """What models have for a fact: nothing is known."""
        return []

    def settings(self) -> list[tuple[str, int]]:
        """Settings as JSON, and how many models have them: not known without reading them all."""
        return []
