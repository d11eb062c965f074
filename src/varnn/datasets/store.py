"""Where the files of a data set are on this machine; each is checked before it is used.

Search order: ``$VARNN_DATA_DIR``, ``./data``, the user's cache folder, then a download into that
cache. In each place a zip comes first, then the same files unpacked, however deep they lie.
"""

import hashlib
import lzma
import os
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path, PurePosixPath

from varnn.data.files import user_cache
from varnn.datasets._source import Source
from varnn.errors import DataError

DIRECTORY_VARIABLE = "VARNN_DATA_DIR"

# A zip cut short or with flipped bytes can fail in any of these ways, depending on where.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    NotImplementedError,  # zipfile's word for a compression that a flipped byte made up
    RuntimeError,
)

# Unpacked archives nest a folder or two; deeper than this lies something else, perhaps a whole disk.
_DEEPEST = 4


@dataclass(frozen=True, kw_only=True)
class Members:
    """The files of one data set on this machine, in one zip or loose in a folder.

    Parameters
    ----------
    source : Source
        What is published: the names and checksums.
    place : Path
        The zip, or the folder.
    loose : mapping, optional
        Path of each file by name, when they are not in a zip.
    """

    source: Source
    place: Path
    loose: Mapping[str, Path] = field(default_factory=dict)

    def read(self, names: Iterable[str]) -> Iterator[bytes]:
        """Content of each named file, in that order, after checking its SHA-256."""
        for name, content in self._contents(names):
            found = hashlib.sha256(content).hexdigest()
            if found != self.source.checksums[name]:
                raise DataError(
                    f"{name!r} in {str(self.place)!r} must have SHA-256 {self.source.checksums[name]}; "
                    f"it has {found}. It is damaged or another version: delete it and run "
                    f"`varnn datasets fetch {self.source.name}`."
                )
            yield content

    def verify(self) -> int:
        """Check every file of the data set, and give their number."""
        return sum(1 for _ in self.read(self.source.checksums))

    def fingerprint(self) -> list[list[str | int]]:
        """Path, size and time of change of what would be read: differs once a file has changed."""
        paths = sorted(self.loose.values()) or [self.place]
        stats = [(path.resolve(), path.stat()) for path in paths]
        return [[str(path), stat.st_size, stat.st_mtime_ns] for path, stat in stats]

    def _contents(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        try:
            if self.loose:
                for name in names:
                    yield name, self.loose[name].read_bytes()
                return
            with zipfile.ZipFile(self.place) as archive:
                inside = _inside(archive, most=self.source.megabytes << 20)
                for name in names:
                    if name not in inside:
                        raise DataError(
                            f"{str(self.place)!r} must hold {name!r}, and does not: it holds "
                            f"{len(inside)} other files. Delete it and run "
                            f"`varnn datasets fetch {self.source.name}`."
                        )
                    owner, information = inside[name]
                    yield name, _expanded(owner, information, self.source.largest)
        except _DAMAGE as error:
            raise DataError(
                f"{str(self.place)!r} cannot be read: {error}. Delete it and run "
                f"`varnn datasets fetch {self.source.name}`."
            ) from None


def _inside(
    archive: zipfile.ZipFile, *, most: int, nested: bool = True
) -> dict[str, tuple[zipfile.ZipFile, zipfile.ZipInfo]]:
    """Find files by name, in whatever folder of the zip; publishers also put zips into zips."""
    inside = {}
    for information in archive.infolist():
        name = PurePosixPath(information.filename).name
        inside[name] = (archive, information)
        if nested and name.lower().endswith(".zip"):
            inner = zipfile.ZipFile(BytesIO(_expanded(archive, information, most)))
            inside |= _inside(inner, most=most, nested=False)
    return inside


def _expanded(archive: zipfile.ZipFile, information: zipfile.ZipInfo, most: int) -> bytes:
    """Unpack a file of a zip, and no more of it than it can have: a few bytes may expand to a whole disk."""
    content = b""
    if information.file_size <= most:
        with archive.open(information) as file:
            content = file.read(most + 1)
    if information.file_size > most or len(content) > most:
        raise zipfile.BadZipFile(
            f"{information.filename!r} expands to more than the {most:,} bytes it can have"
        )
    return content


def places() -> list[Path]:
    """Folders in which data are looked for, first to last."""
    chosen = os.environ.get(DIRECTORY_VARIABLE)
    return [*([Path(chosen).expanduser()] if chosen else []), Path("data"), user_cache()]


def locate(source: Source) -> Members | None:
    """Find a data set on this machine, or give None. Contents are checked when they are read."""
    for place in places():
        for archive in source.archives:
            if (place / archive).is_file():
                return Members(source=source, place=place / archive)
        loose = _loose(source, place)
        if len(loose) == len(source.checksums):
            return Members(source=source, place=place, loose=loose)
    return None


def _loose(source: Source, place: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for folder, folders, files in os.walk(place, followlinks=True):
        here = Path(folder)
        found = {name: here / name for name in files if name in source.checksums} | found
        if len(found) == len(source.checksums):
            break
        if len(here.relative_to(place).parts) >= _DEEPEST:
            folders.clear()
    return found


def obtain(source: Source, *, download: bool = True) -> Members:
    """Find a data set on this machine, or else download it into the user's cache."""
    found = locate(source)
    if found is not None:
        return found
    if not download:
        raise DataError(f"the data set {source.name!r} is not on this machine. {_advice(source)}")
    return fetch(source)


def fetch(source: Source) -> Members:
    """Download a data set into the user's cache, with a progress bar, and check every file of it."""
    from varnn.datasets._download import bar, download  # the network stack only when it is needed

    destination = user_cache() / source.archives[0]
    try:
        with bar(source.name) as progress:
            download(
                source.url,
                destination,
                check=lambda path: Members(source=source, place=path).verify(),
                progress=progress,
                most=source.megabytes << 20,
            )
    except DataError as error:
        raise DataError(
            f"the data set {source.name!r} could not be fetched: {error} {_advice(source)}"
        ) from None
    return Members(source=source, place=destination)


def _advice(source: Source) -> str:
    """Say where the data were looked for, and what a person can do."""
    looked = [] if os.environ.get(DIRECTORY_VARIABLE) else [f"${DIRECTORY_VARIABLE} (not set)"]
    for place in places():
        some = len(_loose(source, place))
        state = f" (only {some} of its {len(source.checksums)} files)" if some else ""
        looked.append(f"{str(place)!r}{'' if place.is_dir() else ' (no such folder)'}{state}")
    return (
        f"Looked for {source.archives[0]!r}, or its files unpacked, in {', '.join(looked)}. "
        f"Run `varnn datasets fetch {source.name}` where there is a network, or download {source.url} "
        f"(about it: {source.page}) and put it into one of these folders as {source.archives[0]!r}."
    )
