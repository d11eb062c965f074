"""One Parquet file -> one Parquet file with its predictions, a group of series at a time."""

from base64 import b64decode, b64encode
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
from varnn.scale.parquet import batches, opened

_FACTS, _SERIES, _HASHES = b"varnn", b"varnn.series", b"varnn.hashes"  # what a file says of itself


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
    hashes: bytes = b""  # of the names of its series


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
    if said.get(_FACTS) != facts or _SERIES not in said or _HASHES not in said:
        return None
    series, without_model = map(int, said[_SERIES].split())
    return FileScored(file.metadata.num_rows, series, without_model, True, b64decode(said[_HASHES]))


def _all_at_once(found: Any, series: str | None) -> Iterator[Group]:
    import pyarrow

    yield Group(pyarrow.Table.from_batches(list(found)), 0, piece=False, continues=False)


def _no_rows(schema: Any, columns: list[str]) -> Group:
    return Group(schema.empty_table().select(columns), 0, piece=False, continues=False)


def _scored(job: FileJob, scoring: Scoring, facts: bytes, cut: Callable[..., Iterator[Group]]) -> FileScored:
    import pyarrow
    from pyarrow import parquet

    file = opened(job.source)
    reader = GroupReader(scoring, file.schema_arrow.names)
    found = batches(file, job.source, reader.columns)
    rows = 0
    with opened_atomically(job.output) as sink, ExitStack() as stack:
        writer: Any = None
        total = file.metadata.num_rows
        for group in cut(found, reader.series) if total else [_no_rows(file.schema_arrow, reader.columns)]:
            columns = reader.predicted(group, is_whole=len(group.table) == total)
            arrays = [pyarrow.array(one, from_pandas=True) for one in columns.values()]
            table = pyarrow.table(arrays, names=list(columns))
            if writer is None:
                schema = table.schema.with_metadata({_FACTS: facts})
                writer = stack.enter_context(parquet.ParquetWriter(sink, schema))
            writer.write_table(table)
            rows += len(table)
            del group, columns, arrays, table
            allocator.release()
        counts = f"{reader.n_series} {reader.without_model}"
        writer.add_key_value_metadata({_SERIES: counts, _HASHES: b64encode(reader.hashes)})
    return FileScored(rows, reader.n_series, reader.without_model, hashes=reader.hashes)
