"""One file from the network to disk, whole and checked or not at all.

What arrives is kept in ``NAME.part``, and a later call goes on from there where the server allows
it. The file gets its own name only after it has passed its check.
"""

import math
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import Any, NoReturn
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from varnn.errors import DataError

Progress = Callable[[int, int | None], None]
"""Called with the bytes that have arrived and, where the server says it, the bytes in all."""

_CHUNK = 1 << 18
_PATIENCE = 30.0  # seconds without a single byte
_NETWORK = (URLError, HTTPException, ConnectionError, TimeoutError, ssl.SSLError)  # most are OSErrors too


def download(
    url: str,
    destination: Path,
    *,
    check: Callable[[Path], object],
    progress: Progress = lambda received, total: None,
    most: int | None = None,
) -> None:
    """Fetch a file, going on where an earlier call was cut off.

    Parameters
    ----------
    url : str
        What to fetch.
    destination : Path
        Where to put it; folders are made.
    check : callable
        Called with the path of the complete file; raises DataError to refuse it, and then it is
        removed.
    progress : Progress, optional
        Called after each piece that arrives.
    most : int or None, default=None
        Bytes after which it is stopped, and what arrived is removed: whatever it is, it is not that file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "published.txt").write_text("hello")
    >>> download((folder / "published.txt").as_uri(), folder / "mine.txt", check=lambda path: None)
    >>> (folder / "mine.txt").read_text()
    'hello'
    """
    part = destination.with_name(destination.name + ".part")
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        _transfer(url, part, progress, math.inf if most is None else most)
        try:
            check(part)
        except DataError as error:
            part.unlink()
            raise DataError(f"what {url} sent is not what was published, and was removed: {error}") from None
        part.replace(destination)
    except _NETWORK as error:
        kept = f" What has arrived is kept in {str(part)!r}; a second try goes on from there."
        reason = error.reason if isinstance(error, URLError) else error
        raise DataError(f"{url} cannot be downloaded: {reason}.{kept if part.is_file() else ''}") from None
    except OSError as error:
        raise DataError(
            f"{str(part)!r} cannot be written: {error.strerror or error}. "
            "Make room or give permission there, or choose another cache folder with XDG_CACHE_HOME."
        ) from None


def _transfer(url: str, part: Path, progress: Progress, most: float) -> None:
    received = part.stat().st_size if part.is_file() else 0
    if received > most:
        part.unlink()
        received = 0
    try:
        answer = _open(url, start=received)
    except HTTPError as error:
        error.close()
        if error.code != 416:  # nothing at or after `start`: the part is complete, or not of this file
            raise
        if error.headers.get("Content-Range") == f"bytes */{received}":
            return
        answer = _open(url, start=0)
    with answer:
        resumed = answer.status == 206
        received = received if resumed else 0
        length = answer.headers.get("Content-Length")
        total = None if length is None else received + _number(length)
        if total is not None and total > most:
            _refuse(url, part, most)
        with part.open("ab" if resumed else "wb") as file:
            while piece := answer.read(_CHUNK):
                file.write(piece)
                received += len(piece)
                if received > most:
                    _refuse(url, part, most)
                progress(received, total)
    if total is not None and received < total:
        raise ConnectionError(f"the connection ended after {received:,} of {total:,} bytes")


def _number(length: str) -> int:
    try:
        return int(length)
    except ValueError:
        raise HTTPException(f"the server says that its file has {length!r} bytes") from None


def _refuse(url: str, part: Path, most: float) -> NoReturn:
    part.unlink(missing_ok=True)
    raise DataError(
        f"{url} sends more than {most:,.0f} bytes, which the published file does not have; it was stopped, "
        "and what had arrived was removed."
    )


def _open(url: str, *, start: int) -> Any:
    headers = {"User-Agent": "varnn"} | ({"Range": f"bytes={start}-"} if start else {})
    return urlopen(Request(url, headers=headers), timeout=_PATIENCE)


@contextmanager
def bar(title: str) -> Iterator[Progress]:
    """Show a download as a bar with size, speed and time left, on a terminal's error stream.

    Examples
    --------
    >>> with bar("bidmc") as progress:
    ...     progress(10, 100)
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )
    from rich.progress import Progress as Display

    console = Console(stderr=True)
    columns = (TextColumn("fetching {task.description}"), BarColumn(), DownloadColumn())
    speed = (TransferSpeedColumn(), TimeRemainingColumn())
    with Display(*columns, *speed, console=console, disable=not console.is_terminal) as display:
        task = display.add_task(title, total=None)
        yield lambda received, total: display.update(task, completed=received, total=total)
