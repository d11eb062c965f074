"""Folders of Parquet files, and their rows some at a time: what is in memory is a batch of them."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from varnn.errors import DataError, require

SUFFIXES = (".parquet", ".pq")
BATCH_ROWS = 1 << 16
_BUFFER = 1 << 20  # bytes read at a time of each column: else those of a whole row group are held


def parquet_files(source: Path) -> list[Path]:
    """Files of a folder and those below it, by name, but for hidden ones and those of other programs; or one.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("b.parquet", "a.pq", "_SUCCESS", ".a.pq"):
    ...     (folder / name).touch()
    >>> [one.name for one in parquet_files(folder)]
    ['a.pq', 'b.parquet']
    """
    if source.is_file():
        return [source]
    if not source.is_dir():
        raise DataError(f"there is no file or folder {str(source)!r}. Check the path.")
    found = sorted(
        path
        for path in source.rglob("*")
        if path.suffix.lower() in SUFFIXES and path.is_file() and not _is_aside(path.relative_to(source))
    )
    if not found:
        raise DataError(f"{str(source)!r} holds no Parquet files. Name a folder that does, or a file.")
    return found


def _is_aside(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def opened(path: Path) -> Any:
    """Open a file; texts are read as numbers of a list, as names of series repeat."""
    pyarrow = require("pyarrow", extra="files", purpose="reading Parquet")
    from pyarrow import parquet

    try:
        schema = parquet.read_schema(path)
        texts = [one.name for one in schema if one.type in (pyarrow.string(), pyarrow.large_string())]
        return parquet.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER, read_dictionary=texts)
    except FileNotFoundError:
        raise DataError(f"there is no file {str(path)!r}. Check the path.") from None
    except (pyarrow.ArrowException, OSError) as error:
        raise _unreadable(path, error) from None


def batches(file: Any, path: Path, columns: Sequence[str], rows: int = BATCH_ROWS) -> Iterator[Any]:
    """Record batches of some columns."""
    import pyarrow

    try:
        yield from file.iter_batches(batch_size=rows, columns=list(columns), use_threads=False)
    except (pyarrow.ArrowException, OSError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> DataError:
    reason = str(error).splitlines()[0][:200].rstrip(".")
    return DataError(f"{str(path)!r} cannot be read as Parquet: {reason}. Write it again.")
