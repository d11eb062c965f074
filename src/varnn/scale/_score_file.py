"""One Parquet file -> one Parquet file with its predictions, a group of series at a time."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from varnn.data import allocator
from varnn.data.blas import one_blas_thread
from varnn.data.files import opened_atomically
from varnn.errors import DataError
from varnn.scale._groups import LONGEST, Group, MixedSeries, groups
from varnn.scale._score_rows import GroupReader
from varnn.scale._scoring import Scoring
from varnn.scale.hashing import number_of
from varnn.scale.parquet import batches, opened

_FACTS, _SERIES = b"varnn", b"varnn.series"  # what a file says of itself


class FileJob(NamedTuple):
    """A file to score, and where to."""

    source: Path
    output: Path


class FileScored(NamedTuple):
    """What a file held."""

    rows: int
    series: int
    without_model: int = 0  # series
    is_kept: bool = False  # whether it was scored before
    numbers: frozenset[int] = frozenset()  # of the names of the series, where there are other files


def score_file(job: FileJob, scoring: Scoring) -> FileScored:
    """Score one file; what was there before is replaced in one step, once all is written."""
    facts = scoring.facts(job.source)
    if scoring.keep and (kept := _kept(job.output, facts, scoring)) is not None:
        return kept
    with one_blas_thread():  # once: to set it takes as long as to predict a thousand rows
        return _in_groups(job, scoring, facts)


def _in_groups(job: FileJob, scoring: Scoring, facts: bytes) -> FileScored:
    try:
        return _scored(job, scoring, facts, groups)
    except MixedSeries as error:
        if opened(job.source).metadata.num_rows > LONGEST:
            raise DataError(f"{error} (A file of at most {LONGEST:,} rows may mix them.)") from None
        return _scored(job, scoring, facts, _all_at_once)


def _kept(output: Path, facts: bytes, scoring: Scoring) -> FileScored | None:
    """What a file held that was scored before, if it was in this very way."""
    if not output.is_file():
        return None
    try:
        file = opened(output)
        said = file.metadata.metadata or {}
    except DataError:
        return None
    if said.get(_FACTS) != facts or _SERIES not in said:
        return None
    series, without_model = map(int, said[_SERIES].split())
    numbers: set[int] = set()
    name = scoring.reading.series
    if not scoring.alone and name is not None and name in file.schema_arrow.names:
        for batch in batches(file, output, [name]):
            numbers |= _numbers(batch.column(0))
    return FileScored(file.metadata.num_rows, series, without_model, True, frozenset(numbers))


def _numbers(names: Any) -> set[int]:
    """Numbers that stand for the names in a column."""
    return {number_of(str(one)) for one in names.unique().to_pylist()}


def _all_at_once(found: Any, series: str | None) -> Iterator[Group]:
    import pyarrow

    yield Group(pyarrow.Table.from_batches(list(found)), 0, piece=False, continues=False)


def _scored(job: FileJob, scoring: Scoring, facts: bytes, cut: Callable[..., Iterator[Group]]) -> FileScored:
    import pyarrow
    from pyarrow import parquet

    file = opened(job.source)
    if not file.metadata.num_rows:
        raise DataError(f"{job.source.name!r} has columns but no rows. Leave it out.")
    reader = GroupReader(scoring, file.schema_arrow.names)
    found = batches(file, job.source, reader.columns)
    rows, numbers = 0, set[int]()
    with opened_atomically(job.output) as sink, ExitStack() as stack:
        writer: Any = None
        for group in cut(found, reader.series):
            columns = reader.predicted(group, is_whole=len(group.table) == file.metadata.num_rows)
            arrays = [pyarrow.array(one, from_pandas=True) for one in columns.values()]
            table = pyarrow.table(arrays, names=list(columns))
            if writer is None:
                schema = table.schema.with_metadata({_FACTS: facts})
                writer = stack.enter_context(parquet.ParquetWriter(sink, schema))
            writer.write_table(table)
            rows += len(table)
            if not scoring.alone and reader.series is not None:
                numbers |= _numbers(table.column(reader.series))
            del group, columns, arrays, table
            allocator.release()
        counts = f"{reader.n_series} {reader.without_model}"
        writer.add_key_value_metadata({_SERIES: counts})
    return FileScored(rows, reader.n_series, reader.without_model, numbers=frozenset(numbers))
