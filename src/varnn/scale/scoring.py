"""A model, or one per series, and a folder of Parquet files -> a folder of predictions, file by file.

::

    folder/a.parquet -> [worker] groups of whole series -> predictions -> out/a.parquet
    folder/b.parquet -> [worker] ...

A worker holds a group of rows at a time, and writes a file that is there once it is whole. What is finished
stays, whatever becomes of the others; a second run goes on with what is missing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple

import numpy as np

from varnn import jobs
from varnn.data.locks import Lock
from varnn.data.panel import from_columns
from varnn.data.roles import NONE
from varnn.data.tables import Reading, columns_of
from varnn.errors import ConfigError, DataError, OutputError, RowError
from varnn.model.fitted import Fitted
from varnn.model.intervals import check_levels, known_calibrator
from varnn.model.reading import as_fitted
from varnn.scale._file_shelf import INDEX
from varnn.scale._names import SUFFIX as OF_ONE
from varnn.scale._score_file import FileJob, FileScored, score_file
from varnn.scale._scoring import Models, Scoring
from varnn.scale.hashing import hashed
from varnn.scale.loading import load
from varnn.scale.parquet import batches, opened, parquet_files

_HASH = 8  # bytes


class ScoredFile(NamedTuple):
    """What became of one file.

    Parameters
    ----------
    name : str
        The file, as seen from the source folder.
    rows, series, without_model : int
        What it held, and how many of the series have no model, and no predictions; 0 where it failed.
    seconds : float
        How long it took.
    is_kept : bool
        Whether it was scored before, in the same way, and is left as it was.
    failure : str or None
        Why it could not be scored; None where it was.
    """

    name: str
    rows: int
    series: int
    without_model: int
    seconds: float
    is_kept: bool = False
    failure: str | None = None


class Scored(NamedTuple):
    """What became of all files, in the order of their names."""

    files: tuple[ScoredFile, ...]

    @property
    def rows(self) -> int:
        """Rows predicted, now or before."""
        return sum(one.rows for one in self.files)

    @property
    def failures(self) -> dict[str, str]:
        """Why files could not be scored, by name."""
        return {one.name: one.failure for one in self.files if one.failure is not None}


def score_files(
    model: Any,
    source: str | Path,
    output: str | Path,
    *,
    target: str | None = None,
    time: str | Sequence[str] | None = None,
    series: str | None = None,
    interval: float | Sequence[float] | None = None,
    after_training: bool | None = None,
    workers: int | None = None,
    cluster: str | None = None,
    resume: bool = True,
    on_file: Callable[[ScoredFile], None] | None = None,
    **reading: Any,
) -> Scored:
    """Predict every row of a folder of Parquet files, one step ahead, several files at a time.

    The predictions are those of ``model.predict`` on all rows in one panel, but for the last digits of some:
    BLAS rounds by the shape of a product. Whatever the number of workers, they are the same to the last bit.
    All rows of a series must be in one file, and lie together there: :func:`partition_files` makes such a
    folder. A series that is in several begins anew in each, and a line is logged. A worker's memory holds
    some rows at a time, not a file. A file that cannot be scored does not stop the others; a worker that dies
    costs its file another try.

    Parameters
    ----------
    model : VARNNRegressor, Models, str or Path
        A fitted model, or one for each series by its name (`fit_many`); or the file of these. Rows of series
        without a model have no prediction.
    source : str or Path
        A folder of Parquet files, or one such file.
    output : str or Path
        Folder to write to, made if it is not there: a file for each of the source, under its name, with time,
        series, label, ``prediction`` and, of a level such as 0.9, ``lower_90`` and ``upper_90``.
    target, time, series : str or sequence of str or None, default=None
        Columns with labels, time and series; those of the fit where None. "none" is for no such column.
    interval : float or sequence of float or None, default=None
        Level, or levels, of intervals.
    after_training : bool or None, default=None
        Whether the rows follow the training rows, as ``resume`` of ``model.predict``.
    workers, cluster : int or None, str or None
        Processes, by default one a core; or a Ray cluster ("auto", or an address), all of whose machines see
        both folders under the same names.
    resume : bool, default=True
        Whether to leave files as they are that were scored before: by the same model, in the same way, of a
        source that was not changed since. Of one model per series this needs their file, as ``model``.
    on_file : callable or None, default=None
        Called with each :class:`ScoredFile`, as they are finished. That a series is in several files, which
        are failures then, is known when all are.
    **reading
        ``time_format``, ``time_zone``, ``missing``, ``sort`` and ``duplicates``, as in ``Panel.read``; those
        of the fit where not given.

    Returns
    -------
    Scored
        Files, rows, and ``failures`` by name.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np, polars
    >>> from varnn import Panel, VARNNRegressor
    >>> folder = Path(tempfile.mkdtemp())
    >>> heat = np.random.default_rng(0).normal(size=120)
    >>> meters = polars.DataFrame({"meter": ["a"] * 60 + ["b"] * 60, "heat": heat, "load": heat.cumsum()})
    >>> panel = Panel.from_frame(meters, target="load", series="meter")
    >>> model = VARNNRegressor(epochs=1, hidden_size=4).fit(panel)
    >>> meters.write_parquet(folder / "meters.parquet")
    >>> scored = score_files(model, folder / "meters.parquet", folder / "out", workers=1)
    >>> scored.rows, polars.read_parquet(folder / "out" / "meters.parquet").columns
    (120, ['meter', 'load', 'prediction'])
    """
    source, output = Path(source).resolve(), Path(output).resolve()
    files = parquet_files(source)
    _check_apart(source, output)
    models, fitted, fingerprint = _models(model)
    levels = () if interval is None else tuple(dict.fromkeys(check_levels(interval).tolist()))
    if levels:
        known_calibrator(fitted.calibrator)
    names = _first_look(files)
    how = _reading(fitted, names, len(files), target, time, series, reading)
    if models is not fitted:
        how = replace(how, categories=None)  # each model knows texts of its own
    labelled = _have_labels(files, how)
    if not labelled:
        _check_closed_loop(levels, after_training)
    scoring = Scoring(
        models=models,
        fingerprint=fingerprint,
        reading=how,
        must_have_target=target not in (None, NONE),
        levels=levels,
        resume=after_training,
        in_closed_loop=not labelled,
        alone=len(files) == 1,
        keep=resume,
    )
    base = source if source.is_dir() else source.parent
    called = [str(path.relative_to(base)) for path in files]
    todo = [FileJob(path, output / name) for path, name in zip(files, called, strict=True)]
    found: dict[int, ScoredFile] = {}
    hashes: dict[int, bytes] = {}
    with (
        _own(output, todo),
        closing(jobs.run(score_file, todo, shared=scoring, workers=workers, cluster=cluster)) as outcomes,
    ):
        for done in outcomes:
            held = done.result or FileScored(0, 0)
            why = None if done.failure is None else done.failure.message
            one = ScoredFile(called[done.index], *held[:3], done.seconds, held.is_kept, why)
            found[done.index], hashes[done.index] = one, held.hashes
            if on_file is not None:
                on_file(one)
        for index, (other, number) in in_several(hashes).items():
            name = _called(todo[index].output, how.series, number)
            todo[index].output.unlink()  # it would pass for predictions of whole series
            found[index] = found[index]._replace(
                rows=0,
                series=0,
                without_model=0,
                is_kept=False,
                failure=f"all rows of a series must be in one file; {name} is in {called[other]!r}, too. "
                "varnn.scale.partition_files puts them together.",
            )
    return Scored(tuple(found[index] for index in sorted(found)))


def in_several(hashes: Mapping[int, bytes]) -> dict[int, tuple[int, bytes]]:
    """Files with a series that another has, too: by number that other one, and the hash of the series.

    Examples
    --------
    >>> in_several({0: b"norwest.sou.....", 1: b"east....", 2: b"nor.....sou....."})
    {2: (0, b'sou.....'), 0: (2, b'sou.....')}
    """
    files = np.repeat(np.fromiter(hashes, np.int64), [len(one) // _HASH for one in hashes.values()])
    names = np.frombuffer(b"".join(hashes.values()), f"V{_HASH}").view(np.uint64)
    order = np.argsort(names, kind="stable")
    twice = np.flatnonzero(names[order[1:]] == names[order[:-1]])
    found: dict[int, tuple[int, bytes]] = {}
    for one, other in zip(order[twice], order[twice + 1], strict=True):
        found.setdefault(int(files[other]), (int(files[one]), names[one].tobytes()))
        found.setdefault(int(files[one]), (int(files[other]), names[one].tobytes()))
    return found


def _called(output: Path, series: Any, number: bytes) -> str:
    """Name of the series that has a hash, in words."""
    for batch in batches(opened(output), output, [series]):
        for name in batch.column(0).unique().to_pylist():
            if hashed(str(name)) == number:
                return f"series {str(name)!r}"
    return "one of its series"


def _models(model: Any) -> tuple[Models, Fitted, str]:
    """What predicts, one model of it, and what tells it from others."""
    path = Path(model) if isinstance(model, str | Path) else None
    model = load(path) if path is not None else model
    if isinstance(model, Mapping):
        first = next(iter(model), None)
        if first is None:
            raise ConfigError("there must be at least one model; these are none. Fit some first.")
        # Models in memory have nothing to be known by: they score all files anew.
        return model, model[first].fitted_, token_hex(8) if path is None else _of_file(path)
    fitted = getattr(model, "fitted_", model)
    if not isinstance(fitted, Fitted):
        raise ConfigError(f"model must be a fitted VARNNRegressor or its file; got {type(model).__name__}.")
    if fitted.pipeline.peers:
        raise ConfigError(
            "a model with peers=True sees all series at once, which files scored one by one are not. Use "
            "model.predict(panel), or fit without peers."
        )
    return fitted, fitted, fitted.fingerprint


def _of_file(path: Path) -> str:
    """What tells the models of a file from others, as reading them all takes long: when it was written."""
    if path.is_dir() and not (path / INDEX).exists():  # files that somebody put there, and may write over
        found = [(one.name, one.stat()) for one in sorted(path.glob(f"*{OF_ONE}"))]
        said = repr([(name, one.st_size, one.st_mtime_ns) for name, one in found])
        return f"{path.resolve()} {sha256(said.encode('utf-8', 'surrogatepass')).hexdigest()}"
    written = (path / INDEX if path.is_dir() else path).stat()
    return f"{path.resolve()} {written.st_size} {written.st_mtime_ns}"


def _first_look(files: Sequence[Path]) -> list[str]:
    """Return the columns of the first file that can be read."""
    wrong = None
    for path in files:
        try:
            names: list[str] = opened(path).schema_arrow.names
            return names
        except DataError as error:  # of this file: the others may be whole
            wrong = wrong or error
    raise wrong or DataError("there are no columns in these files.")


def _reading(
    fitted: Fitted,
    names: Sequence[str],
    n_files: int,
    target: str | None,
    time: Any,
    series: str | None,
    more: dict[str, Any],
) -> Reading:
    try:
        asked = Reading(target=target or fitted.target_name, time=time, series=series, **more)
    except TypeError as error:
        raise ConfigError(f"score_files takes the arguments of Panel.read: {error}.") from None
    how = as_fitted(asked, names, fitted)
    if how.series in (None, NONE) and n_files > 1:
        raise DataError(
            f"series of {n_files} files must have names; no column is known to hold them. Name it: series= "
            "(--series)."
        )
    return how


def _have_labels(files: Sequence[Path], reading: Reading) -> bool:
    """Look for a label, in one file after the other; it mostly is in the first rows of the first one."""
    target = reading.target
    if target is None or target == NONE:
        return False
    plain = Reading(target=target, inputs=[], missing=reading.missing)
    for path in files:
        try:
            if _has_label(path, target, plain):
                return True
        except RowError:  # a cell that is no number is none that is missing
            return True
        except DataError:  # of a file that cannot be read: its worker says so
            continue
    return False


def _has_label(path: Path, target: str, reading: Reading) -> bool:
    import pyarrow

    file = opened(path)
    if target not in file.schema_arrow.names:
        return False
    for batch in batches(file, path, [target]):
        table = columns_of(pyarrow.Table.from_batches([batch]))
        if not np.isnan(from_columns(table, reading).target).all():
            return True
    return False


def _check_closed_loop(levels: Sequence[float], after_training: bool | None) -> None:
    if levels:
        raise DataError(
            "an interval is made from the errors before it, so rows need labels; they have none. Give them, "
            "or leave out the intervals."
        )
    if after_training is False:
        raise ConfigError(
            "rows without labels are predicted as those that follow the training rows: leave out "
            "after_training=False (--no-resume), or give their labels."
        )


def _check_apart(source: Path, output: Path) -> None:
    base = source if source.is_dir() else source.parent
    if output.is_file():
        raise OutputError(f"{str(output)!r} must be a folder; it is a file. Name another place.")
    if output == base or (base in output.parents and source.is_dir()):
        raise ConfigError(
            f"predictions must not lie among the rows they are of; {str(output)!r} is in {str(base)!r}. Name "
            "another folder."
        )


@contextmanager
def _own(output: Path, todo: Sequence[FileJob]) -> Iterator[None]:
    """Have a folder to oneself, and leave no drafts of workers that died."""
    folders = {one.output.parent for one in todo} | {output}
    try:
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{str(output)!r} cannot be made: {error.strerror}. Name another.") from None
    lock = Lock(output / ".scoring", "Name another folder.")
    try:
        yield
    finally:
        ours = {one.output.name[:60] for one in todo}  # as `varnn.data.files` calls drafts of them
        for draft in (path for folder in folders for path in folder.glob(".*.part")):
            if draft.name[1:].rsplit(".", 2)[0] in ours:
                with suppress(OSError):
                    draft.unlink()
        lock.release(and_remove=True)
