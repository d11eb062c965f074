"""Whose a file or a folder is: one process at a time."""

import os
import platform
import sys
from contextlib import closing
from pathlib import Path
from typing import IO

from varnn.errors import OutputError


class Lock:
    """A file beside another that says whose that is; the system lets go of it when its process ends.

    Parameters
    ----------
    path : Path
        The file, or folder, it is for; the lock is that name with ``-lock`` at its end.
    otherwise : str
        What else to do where another process has it.

    Examples
    --------
    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "data"
    >>> first = Lock(place, "Choose another.")
    >>> Lock(place, "Choose another.")
    Traceback (most recent call last):
    ...
    varnn.errors.OutputError: ...data' is in use by process ... End that, or choose another.
    >>> first.release()
    """

    def __init__(self, path: Path, otherwise: str) -> None:
        self._place = path.with_name(path.name + "-lock")
        try:
            self._file: IO[str] = self._place.open("a+", encoding="utf-8")
        except OSError as error:
            raise OutputError(f"{str(self._place)!r} cannot be written: {error.strerror}.") from None
        if not _lock(self._file):
            self._file.seek(0)
            holder = self._file.read().strip() or "another process"
            self._file.close()
            raise OutputError(
                f"{str(path)!r} is in use by {holder}. End that, or {otherwise[0].lower()}{otherwise[1:]}"
            )
        self._file.truncate(0)
        self._file.write(f"process {os.getpid()} on {platform.node()}\n")
        self._file.flush()

    def release(self, *, and_remove: bool = False) -> None:
        """Let others have it. The file stays, as it may be another's by then; but where there is nothing."""
        with closing(self._file):
            self._file.truncate(0)
            if and_remove:
                self._place.unlink(missing_ok=True)


if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[str]) -> bool:
        file.seek(1 << 30)  # a byte beyond the text, so that others can read that
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _lock(file: IO[str]) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
