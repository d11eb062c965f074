"""Parquet files with rows in any order -> a folder in which those of each series lie together, in one file.

::

    source -> batches -> rows by the hash of their series -> a spill file for each partition
    spill file -> rows of each series together, in the order of time -> part-00003-of-00016.parquet

The source is gone through once. What is in memory is a budget of rows on the way to the spill files, then one
partition at a time.
"""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from varnn.data import allocator
from varnn.data.files import write_atomically
from varnn.errors import ConfigError, DataError, OutputError, nearest, require
from varnn.scale._groups import GROUP_ROWS
from varnn.scale.hashing import HASH, place_of
from varnn.scale.parquet import batches, opened, parquet_files

MANIFEST = "_partitions.json"
_ROWS_EACH = 1 << 20  # of a partition, about, where nothing else is said
_MOST_PARTITIONS = 100_000
_BUDGET = 1 << 27  # bytes of rows that wait for being spilled


def partition_files(
    source: str | Path,
    folder: str | Path,
    *,
    series: str,
    time: str | None = None,
    partitions: int | None = None,
) -> list[Path]:
    """Put the rows of each series together: a folder of Parquet files that :func:`score_files` can score.

    A series goes to the partition that a stable hash of its name says (64-bit BLAKE2b), the same on every
    machine. Within a partition rows are in the order of series and time; times that are texts say nothing of
    their order, and such rows stay in the order they came in, by name of file and by row.

    Parameters
    ----------
    source : str or Path
        A Parquet file, or a folder of them, all with the same columns.
    folder : str or Path
        Folder to make; it is there when all is written, and only then.
    series, time : str, str or None
        Columns with series and time of a row; without a time the order of rows is kept.
    partitions : int or None, default=None
        How many files to make; None makes them of about a million rows. One must fit into memory.

    Returns
    -------
    list of Path
        The files; partitions without a row have none.

    Examples
    --------
    >>> import tempfile
    >>> import polars
    >>> place = Path(tempfile.mkdtemp())
    >>> mixed = polars.DataFrame({"meter": ["b", "a", "b", "a"], "hour": [2, 2, 1, 1], "load": [4, 2, 3, 1]})
    >>> mixed.write_parquet(place / "mixed.parquet")
    >>> (path,) = partition_files(
    ...     place / "mixed.parquet", place / "parts", series="meter", time="hour", partitions=1
    ... )
    >>> path.name, polars.read_parquet(path)["load"].to_list()
    ('part-00000-of-00001.parquet', [1, 2, 3, 4])
    """
    require("pyarrow", extra="files", purpose="reading Parquet")
    source, folder = Path(source).resolve(), Path(folder).resolve()
    files = parquet_files(source)
    if source.is_dir() and (folder == source or source in folder.parents):
        raise ConfigError(f"{str(folder)!r} must not lie in {str(source)!r}, which is read. Name another.")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputError(f"{str(folder)!r} is there already, and not empty. Name another folder.")
    rows = sum(opened(path).metadata.num_rows for path in files)
    count = max(1, -(-rows // _ROWS_EACH)) if partitions is None else partitions
    if type(count) is not int or not 1 <= count <= _MOST_PARTITIONS:
        raise ConfigError(f"partitions must be a whole number from 1 to {_MOST_PARTITIONS:,}; got {count!r}.")
    draft = folder.with_name(f".{folder.name[:60]}.{os.getpid()}.part")
    try:
        draft.mkdir(parents=True)
        spills = Spills(draft, count)
        schema = _spilled(files, series, time, spills)
        made = []
        for number in range(count):
            name = f"part-{number:05}-of-{count:05}.parquet"
            if spills.has(number):
                _write(draft / name, spills.rows(number), schema, series, time)
                spills.drop(number)
                made.append(folder / name)
        facts = {"format": 1, "hash": HASH, "partitions": count, "series": series, "time": time, "rows": rows}
        write_atomically(draft / MANIFEST, json.dumps(facts, indent=1).encode())
        if folder.exists():
            folder.rmdir()
        draft.rename(folder)
    except OSError as error:
        raise OutputError(f"{str(folder)!r} cannot be made: {error.strerror or error}.") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return made


class Spills:
    """A file for each of many partitions, none of which is open for longer than a piece of it is written.

    Parameters
    ----------
    folder : Path
        Where they are made.
    count : int
        How many there are.
    budget : int, default=_BUDGET
        Bytes that may wait for being written, of all partitions together.
    """

    def __init__(self, folder: Path, count: int, budget: int = _BUDGET) -> None:
        self._folder, self.count, self._budget = folder, count, budget
        self._waiting: list[list[Any]] = [[] for _ in range(count)]
        self._bytes = np.zeros(count, np.int64)

    def add(self, number: int, rows: Any) -> None:
        """Add rows to a partition; where too many wait, those of the largest ones are written."""
        self._waiting[number].append(rows)
        self._bytes[number] += rows.nbytes
        if self._bytes.sum() > self._budget:
            largest = np.argsort(-self._bytes, kind="stable")
            for one in largest[: max(1, len(largest) // 8)]:
                self._spill(int(one))
            allocator.release()

    def has(self, number: int) -> bool:
        """Whether a partition has rows."""
        return bool(self._waiting[number]) or self._path(number).exists()

    def rows(self, number: int) -> Any:
        """All rows of a partition, as one table."""
        import pyarrow

        parts = []
        path = self._path(number)
        if path.exists():
            with pyarrow.OSFile(str(path)) as file:
                while file.tell() < file.size():
                    parts.append(pyarrow.ipc.open_stream(file).read_all())
        return pyarrow.concat_tables([*parts, *self._waiting[number]])

    def drop(self, number: int) -> None:
        """Forget a partition."""
        self._waiting[number] = []
        self._path(number).unlink(missing_ok=True)

    def _path(self, number: int) -> Path:
        return self._folder / f".spill-{number}"

    def _spill(self, number: int) -> None:
        if not self._waiting[number]:
            return
        import pyarrow

        table = pyarrow.concat_tables(self._waiting[number])
        # One stream after the other in one file, opened for as long: thousands of partitions are no
        # thousands of open files.
        with self._path(number).open("ab") as file, pyarrow.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table.combine_chunks())
        self._waiting[number], self._bytes[number] = [], 0


def _spilled(files: list[Path], series: str, time: str | None, spills: Spills) -> Any:
    """Bring all rows to their partitions; give the schema."""
    import pyarrow

    schema: Any = None
    for path in files:
        file = opened(path)
        here = pyarrow.schema([(one.name, _plain(one.type)) for one in file.schema_arrow])
        for role, name in (("series", series), ("time", time)):
            if name is not None and name not in here.names:
                raise DataError(
                    f"{role} column {name!r} is not in {path.name!r}. {nearest(name, here.names)}"
                )
        schema = schema or here
        if set(here.names) != set(schema.names):
            odd = sorted(set(here.names) ^ set(schema.names))
            raise DataError(
                f"all files must have the same columns; {path.name!r} and {files[0].name!r} differ in "
                f"{odd[:5]}. Bring them together first."
            )
        for batch, row in _counted(batches(file, path, schema.names)):
            table = pyarrow.Table.from_batches([batch]).select(schema.names)
            try:
                table = table.cast(schema)
            except pyarrow.ArrowException as error:
                reason = str(error).splitlines()[0][:200].rstrip(".")
                raise DataError(
                    f"columns of {path.name!r} must be of the kinds of {files[0].name!r}: {reason}."
                ) from None
            for number, some in _apart(table, series, spills, path, row):
                spills.add(number, some)
    return schema


def _counted(found: Iterator[Any]) -> Iterator[tuple[Any, int]]:
    row = 0
    for batch in found:
        yield batch, row
        row += len(batch)


def _apart(table: Any, series: str, spills: Spills, path: Path, first: int) -> Iterator[tuple[int, Any]]:
    """Rows of a table by the partition of their series."""
    coded = table[series].combine_chunks().dictionary_encode()
    if coded.null_count:
        row = first + int(np.argmax(coded.is_null().to_numpy(zero_copy_only=False)))
        raise DataError(
            f"series column {series!r} must have a value in every row; row {row:,} of {path.name!r} is "
            "empty. Name the series, or drop these rows."
        )
    of_name = np.array([place_of(str(name), spills.count) for name in coded.dictionary.to_pylist()])
    numbers = of_name[coded.indices.to_numpy(zero_copy_only=False)]
    order = np.argsort(numbers, kind="stable")
    found, starts = np.unique(numbers[order], return_index=True)
    for number, begin, end in zip(found, starts, [*starts[1:], len(order)], strict=True):
        # A copy of these rows alone: a part of all of them would keep all in memory for as long as it waits.
        yield int(number), table.take(order[begin:end])


def _write(path: Path, table: Any, schema: Any, series: str, time: str | None) -> None:
    """Write a partition: series by series, each in the order of time where that tells."""
    import pyarrow
    from pyarrow import compute, parquet

    names = compute.cast(table[series], pyarrow.string())
    keys, columns = [("series", "ascending")], {"series": names}
    if time is not None and _tells_order(table.schema.field(time).type):
        keys.append(("time", "ascending"))
        columns["time"] = table[time]
    order = compute.sort_indices(pyarrow.table(columns), sort_keys=keys)  # stable
    with parquet.ParquetWriter(path, schema) as writer:
        for begin in range(0, len(order), GROUP_ROWS):
            writer.write_table(table.take(order.slice(begin, GROUP_ROWS)))
    allocator.release()


def _tells_order(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_temporal(kind) or types.is_integer(kind) or types.is_floating(kind))


def _plain(kind: Any) -> Any:
    return kind.value_type if hasattr(kind, "value_type") and hasattr(kind, "index_type") else kind
