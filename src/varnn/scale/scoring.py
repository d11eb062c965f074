"""A model, or one per series, and a folder of Parquet files -> a folder of predictions, file by file.

::

    folder/a.parquet -> [worker] groups of whole series -> predictions -> out/a.parquet
    folder/b.parquet -> [worker] ...

A worker holds a group of rows at a time, and writes a file that is there once it is whole. What is finished
stays, whatever becomes of the others; a second run goes on with what is missing.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from glob import escape
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from varnn import jobs
from varnn.data.locks import Lock
from varnn.data.panel import from_columns
from varnn.data.roles import NONE
from varnn.data.tables import Reading, columns_of
from varnn.errors import ConfigError, DataError, OutputError, RowError
from varnn.model.fitted import Fitted
from varnn.model.intervals import check_levels, known_calibrator
from varnn.model.reading import as_fitted
from varnn.network import compiled_code
from varnn.scale._file_shelf import INDEX
from varnn.scale._score_file import FileJob, FileScored, score_file
from varnn.scale._scoring import Models, Scoring
from varnn.scale.loading import load
from varnn.scale.parquet import batches, opened, parquet_files

logger = logging.getLogger(__name__)


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
        Called with each :class:`ScoredFile`, as they are finished.
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
    names, rows = _first_look(files)
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
        rows=rows,
        alone=len(files) == 1,
        keep=resume,
    )
    base = source if source.is_dir() else source.parent
    called = [str(path.relative_to(base)) for path in files]
    todo = [FileJob(path, output / name) for path, name in zip(files, called, strict=True)]
    found: dict[int, ScoredFile] = {}
    homes: dict[int, npt.NDArray[np.uint64]] = {}  # numbers of the series of each file
    with (
        _own(output, todo),
        closing(jobs.run(score_file, todo, shared=scoring, workers=workers, cluster=cluster)) as outcomes,
    ):
        for done in outcomes:
            held = done.result or FileScored(0, 0)
            why = None if done.failure is None else done.failure.message
            one = ScoredFile(called[done.index], *held[:3], done.seconds, held.is_kept, why)
            found[done.index] = one
            homes[done.index] = np.fromiter(held.numbers, np.uint64, len(held.numbers))
            if on_file is not None:
                on_file(one)
    _tell_if_torn(called, homes)
    return Scored(tuple(found[index] for index in sorted(found)))


def _tell_if_torn(called: Sequence[str], homes: Mapping[int, npt.NDArray[np.uint64]]) -> None:
    """Say that series are in several files, if some are: each file begins them anew."""
    numbers = np.concatenate([homes[index] for index in homes] or [np.empty(0, np.uint64)])
    known, counts = np.unique(numbers, return_counts=True)
    if not (torn := known[counts > 1]).size:
        return
    files = [called[index] for index in sorted(homes) if torn[0] in homes[index]]
    logger.warning(
        "%s series are in more than one file, one of them in %r and %r: in each it is predicted as if "
        "nothing came before. Put all rows of a series into one file: varnn.scale.partition_files does.",
        f"{torn.size:,}",
        *files[:2],
    )


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
    found = (path / INDEX if (path / INDEX).exists() else path).stat()
    return f"{path.resolve()} {found.st_size} {found.st_mtime_ns}"


def _first_look(files: Sequence[Path]) -> tuple[list[str], int]:
    """Columns of the first file that can be read, and rows of all, as far as they matter."""
    names: list[str] | None = None
    rows, wrong = 0, None
    for path in files:
        try:
            file = opened(path)
        except DataError as error:  # of this file: the others may be whole
            wrong = wrong or error
            continue
        names = names or file.schema_arrow.names
        rows += file.metadata.num_rows
        if rows >= compiled_code.ROWS_WORTH_IT:
            break
    if names is None:
        raise wrong or DataError("there are no columns in these files.")
    return names, rows


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
    if target in (None, NONE):
        return False
    plain = Reading(target=target, inputs=[], missing=reading.missing)
    for path in files:
        try:
            file = opened(path)
        except DataError:
            continue
        if target not in file.schema_arrow.names:
            continue
        for batch in batches(file, path, [target]):
            try:
                labels = from_columns(columns_of(_table(batch)), plain).target
            except RowError:  # the worker says it, with the name of the file
                return True
            if not np.isnan(labels).all():
                return True
    return False


def _table(batch: Any) -> Any:
    import pyarrow

    return pyarrow.Table.from_batches([batch])


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
    try:
        for folder in {one.output.parent for one in todo} | {output}:
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{str(output)!r} cannot be made: {error.strerror}. Name another.") from None
    lock = Lock(output / ".scoring", "Name another folder.")
    try:
        yield
    finally:
        for one in todo:
            for draft in one.output.parent.glob(f".{escape(one.output.name[:60])}.*.part"):
                with suppress(OSError):
                    draft.unlink()
        lock.release(and_remove=True)
