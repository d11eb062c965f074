"""Tables in, whatever their form; files out in one step, or what was there stays."""

import contextlib
import gzip
import io
import logging
import os
import secrets
import stat
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

from varnn.data import allocator
from varnn.data._csv_files import read_csv
from varnn.data._notes import Note
from varnn.errors import DataError, OutputError, require

logger = logging.getLogger(__name__)

STANDARD = Path("-")  # standard input, or output
_PARQUET = b"PAR1"
_MODEL = b'{"__metadata__":{"varnn"'  # how the header of a model file begins,
_SQLITE, _MODELS_SUFFIX = b"SQLite format 3", ".varnns"  # of a file of many models
_BEGINNING = 40  # bytes that tell a model
_LARGE = 1 << 23  # bytes of a table from which on memory matters more than a few milliseconds
_PARQUET_SUFFIXES = (".parquet", ".pq")


class TableFile(NamedTuple):
    """A pyarrow table, what to say of how it was read, and what to call a row of it."""

    table: Any
    notes: list[Note]
    where: Callable[[int], str]


def read_table(path: Path) -> TableFile:
    """Read a CSV or Parquet file; "-" is standard input.

    The first bytes tell Parquet and gzip, the first lines how CSV is written, so that names of files may be
    anything.
    """
    pyarrow = require("pyarrow", extra="files", purpose="reading tables")
    if path.is_dir():
        raise DataError(f"a table must be a file; {str(path)!r} is a folder. Name a file in it.")
    what = "standard input" if path == STANDARD else repr(str(path))
    try:
        with contextlib.ExitStack() as opened:
            file = sys.stdin.buffer if path == STANDARD else opened.enter_context(path.open("rb"))
            found = _parsed(file, path)
        table = found.table
        columns = dict(zip(table.column_names, table.columns, strict=True))
    except FileNotFoundError:
        raise DataError(f"there is no file {str(path)!r}. Check the path.") from None
    except (pyarrow.ArrowException, OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0][:200]
        raise DataError(
            f"{what} cannot be read as a table: {reason.rstrip('.')}. "
            "Give CSV with a line of column names, or Parquet."
        ) from None
    if len(columns) < table.num_columns:
        names = table.column_names
        twice = [name for name in columns if names.count(name) > 1]
        raise DataError(f"each column needs a name of its own; {what} has {twice[:5]} twice. Rename them.")
    if table.nbytes < _LARGE:
        return found
    found = found._replace(table=None)
    del table
    _join_blocks(columns)
    return found._replace(table=pyarrow.table(columns))


def _parsed(file: Any, path: Path) -> TableFile:
    """Read an open file, of a kind that can be looked into before it is read."""
    import pyarrow
    from pyarrow import parquet

    beginning = file.peek(_BEGINNING)[:_BEGINNING]
    if _MODEL in beginning or (path.suffix.lower() == _MODELS_SUFFIX and beginning.startswith(_SQLITE)):
        raise DataError(
            f"a table must be CSV or Parquet; {str(path)!r} is a model file. Give it with --model where the "
            "command has that, and name a table as DATA."
        )
    if file.peek(len(_PARQUET)).startswith(_PARQUET) or path.suffix.lower() in _PARQUET_SUFFIXES:
        # Parquet is read from its end, which a pipe does not have.
        whole = path if path != STANDARD else io.BytesIO(file.read())
        # Not parquet.read_table: it holds the file's bytes beside the table, and cuts columns into groups.
        schema = parquet.ParquetFile(whole).schema_arrow
        texts = [one.name for one in schema if one.type in (pyarrow.string(), pyarrow.large_string())]
        table = parquet.ParquetFile(whole, pre_buffer=False, read_dictionary=texts).read()
        return TableFile(table, [], lambda row: f"row {row}")
    table, notes, line_of = read_csv(file, None if path == STANDARD else path)
    return TableFile(table, notes, lambda row: f"line {line_of(row):,}")  # which must not hold the table


def _join_blocks(columns: dict[str, Any]) -> None:
    """Bring columns of numbers, times and names into one piece each, which later stages take as it is."""
    from pyarrow import types

    for name in columns:
        kind = columns[name].type
        if types.is_dictionary(kind):
            columns[name] = columns[name].unify_dictionaries().combine_chunks()
        elif types.is_floating(kind) or types.is_timestamp(kind):
            blocks = columns[name].chunks[::-1]
            columns[name] = None
            columns[name] = blocks[0] if len(blocks) == 1 else _joined(blocks, kind)
    allocator.release()


def _joined(blocks: list[Any], kind: Any) -> Any:
    """Join blocks, the first of which is the last; each is let go once it is copied."""
    import numpy as np
    import pyarrow

    stored = f"datetime64[{kind.unit}]" if pyarrow.types.is_timestamp(kind) else kind.to_pandas_dtype()
    joined, done = np.empty(sum(map(len, blocks)), stored), 0
    while blocks:
        block = blocks.pop().to_numpy(zero_copy_only=False)
        joined[done : done + len(block)] = block
        done += len(block)
        if len(blocks) % 16 == 0:  # else Arrow keeps them for tables to come
            del block
            allocator.release()
    return pyarrow.array(joined, type=kind)


def check_writable(path: Path) -> None:
    """Refuse a place that cannot be written to: before the work that is to end there, not after."""
    if path == STANDARD:
        return
    if path.is_dir():
        raise OutputError(f"{str(path)!r} cannot be written: it is a folder. Name a file in it.")
    folder = path.parent if not path.is_symlink() else Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise OutputError(
            f"{str(path)!r} cannot be written: the folder {str(folder)!r} does not exist. Make it first."
        )
    # A device is written to as it is; a file is replaced, which its folder must allow.
    place = path if _is_no_file(path) else folder
    if not os.access(place, os.W_OK):
        where = "to it" if place == path else f"in {str(folder)!r}"
        raise OutputError(
            f"{str(path)!r} cannot be written: no permission to write {where}. Choose another place."
        )


def check_apart(outputs: Mapping[str, Path | None], inputs: Mapping[str, Path | None]) -> None:
    """Refuse to write over what is read, or one output over the other, whatever they are called.

    Parameters
    ----------
    outputs, inputs : mapping of str to Path or None
        Files by what to call them in the message; "-" and devices are none.

    Examples
    --------
    >>> check_apart({"--output": Path("house.csv")}, {"the table": Path("./house.csv")})
    Traceback (most recent call last):
    ...
    varnn.errors.OutputError: --output must be another file than the table, which it would replace; both...
    """
    seen = {
        os.path.realpath(one): what for what, one in inputs.items() if one is not None and one != STANDARD
    }
    for what, path in outputs.items():
        if path is None or path == STANDARD or _is_no_file(path):
            continue
        place = os.path.realpath(path)
        if place in seen:
            raise OutputError(
                f"{what} must be another file than {seen[place]}, which it would replace; both are "
                f"{str(path)!r}. Name another one."
            )
        seen[place] = what


@contextlib.contextmanager
def table_writer(path: Path) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A function to write a table with, some rows at a time: CSV, also .gz, or Parquet.

    A file is there when all is written, and only then; "-" is standard output. NaN is an empty cell.
    """
    pyarrow = require("pyarrow", extra="files", purpose="writing tables")
    from pyarrow import csv, parquet

    with contextlib.ExitStack() as opened:
        sink: Any = sys.stdout.buffer if path == STANDARD else opened.enter_context(opened_atomically(path))
        if path.suffix.lower() == ".gz":
            sink = opened.enter_context(gzip.GzipFile(path.stem, "wb", fileobj=sink))
        kind = parquet.ParquetWriter if path.suffix.lower() in _PARQUET_SUFFIXES else csv.CSVWriter
        writer: Any = None

        def write(columns: dict[str, Any]) -> None:
            nonlocal writer
            arrays = [pyarrow.array(one, from_pandas=True) for one in columns.values()]
            table = pyarrow.table(arrays, names=list(columns))
            if writer is None:
                writer = opened.enter_context(kind(sink, table.schema))
            writer.write_table(table)

        yield write


@contextlib.contextmanager
def opened_atomically(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a file that takes the place of the one that was there when all is written, and only then.

    It has the mode and the owner of that one. Of a link it is the target that is replaced. What is no file
    (/dev/null, a pipe) is written to as it is.
    """
    place, draft = Path(os.path.realpath(path)), None
    try:
        if _is_no_file(place):
            with place.open("wb") as file:
                yield file
            return
        draft = place.with_name(f".{place.name[:60]}.{secrets.token_hex(4)}.part")
        with draft.open("wb") as file:
            _keep_mode(place, draft)
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(place)
        _sync_folder(place.parent)
        logger.info("wrote %s, %s", path, _size(place))
    except OSError as error:
        raise OutputError(
            f"{str(path)!r} cannot be written: {error.strerror or error}. Choose another place."
        ) from None
    finally:
        if draft is not None:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)


def _size(path: Path) -> str:
    """Write how large a file is."""
    kilobytes = path.stat().st_size / 1e3
    return f"{kilobytes:,.0f} kB" if kilobytes < 1e4 else f"{kilobytes / 1e3:,.0f} MB"


def write_atomically(path: str | Path, blob: bytes) -> None:
    """Replace a file in one step, or leave it as it was."""
    with opened_atomically(path) as file:
        file.write(blob)


def _is_no_file(path: Path) -> bool:
    """Tell whether this is a device, a pipe or a socket, or a link to one."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _keep_mode(place: Path, draft: Path) -> None:
    """Give a draft the mode of the file it will replace, and its owner where that is allowed."""
    try:
        before = place.stat()
    except FileNotFoundError:
        return
    if hasattr(os, "chown"):  # not on Windows
        with contextlib.suppress(OSError):
            os.chown(draft, before.st_uid, before.st_gid)
    draft.chmod(stat.S_IMODE(before.st_mode))


def _sync_folder(folder: Path) -> None:
    """Bring a new name to disk, where folders can be; without it a loss of power may undo the renaming."""
    with contextlib.suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def user_cache() -> Path:
    """Folder of this library among the user's caches, by the custom of the platform."""
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    if Path(chosen).is_absolute():  # the XDG rule: a relative path there is to be ignored
        return Path(chosen, "varnn")
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local", "varnn")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "varnn"
    return Path.home() / ".cache" / "varnn"
