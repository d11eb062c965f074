"""Many series, or many settings -> a model of each: on every core, on one GPU, or on a cluster."""

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple, overload

from varnn.data.arrow_streams import is_table
from varnn.data.panel import Panel
from varnn.data.rules import shown
from varnn.errors import ConfigError, DataError, ModelFileError, require
from varnn.estimator.packages import check_packages
from varnn.estimator.regressor import VARNNRegressor
from varnn.jobs import Failure, cores, run
from varnn.scale import _gpu
from varnn.scale._file_shelf import FileShelf, FileShelfWriter
from varnn.scale._fingerprints import fingerprint, settings_of
from varnn.scale._series_fit import Outcome, Shared, Wanted, failed, fit_chunk
from varnn.scale._shelf import Entry, MemoryShelf, WritableShelf
from varnn.scale.models import Models
from varnn.step.series import warm_up

logger = logging.getLogger(__name__)

_MOST_IN_A_JOB = 32  # series, where several are under way in a worker
_SHOWN = 5  # names in a line


class SeriesDone(NamedTuple):
    """A series that is finished: its model is kept, or the reason why there is none."""

    name: str
    reason: str | None  # why it failed; None if it did not
    seconds: float | None
    done: int  # series, those of before included
    total: int


class _Series(NamedTuple):
    """A series to be fitted, not taken out of its panel yet."""

    name: str
    panel: Panel
    first: int
    last: int
    regressor: VARNNRegressor
    settings: str

    def rows(self) -> Panel:
        """Its rows alone."""
        if self.panel.n_series == 1 or (self.first, self.last) == (0, len(self.panel)):
            return self.panel
        return self.panel.between(self.first, self.last)


class _Jobs(Sequence[list[Wanted]]):
    """Some series each, taken out of their panels when a worker is about to get them."""

    def __init__(self, series: Sequence[_Series], each: int) -> None:
        self.series, self.each = series, each

    def __len__(self) -> int:
        return -(-len(self.series) // self.each)

    @overload
    def __getitem__(self, index: int) -> list[Wanted]: ...

    @overload
    def __getitem__(self, index: slice) -> list[list[Wanted]]: ...

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self[one] for one in range(*index.indices(len(self)))]
        return [Wanted(one.name, one.rows(), one.regressor) for one in self.of(index)]

    def of(self, index: int) -> Sequence[_Series]:
        """The series of a job."""
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self.series[index * self.each : (index + 1) * self.each]


def fit_many(
    rows: Panel | Mapping[str, tuple[Panel, VARNNRegressor]],
    regressor: VARNNRegressor | None = None,
    *,
    path: str | Path | None = None,
    workers: int | None = None,
    cluster: str | None = None,
    on_model: Callable[[SeriesDone], None] | None = None,
    resume: bool = True,
    stop: Event | None = None,
) -> Models:
    """Fit one model to each series of a panel, or one to each of several settings, as one job.

    Each model is what `VARNNRegressor.fit` gives for its rows alone, with the same seed. They are fitted side
    by side: one process a core, or all on the GPU where there is one and the default's network is trained;
    or on a cluster. A series that fails (all its labels are missing, it is too short) does so alone.

    Parameters
    ----------
    rows : Panel, or mapping of str to (Panel, VARNNRegressor)
        Rows of all series, or a long frame of them; or by name the rows and settings of each model.
    regressor : VARNNRegressor or None, default=None
        Settings of all models, with a panel; whether it is fitted does not matter. None is the default.
    path : str or Path or None, default=None
        Where to keep the models, each as soon as it is there: one file if the name ends in ``.varnns``, else
        a folder of ``.varnn`` files. None keeps them in memory.
    workers : int or None, default=None
        Processes; None is one a core, 1 fits in this one.
    cluster : str or None, default=None
        A Ray cluster to fit on: "auto", or an address; see `varnn.jobs.run`.
    on_model : callable or None, default=None
        Called with a :class:`SeriesDone` once a model is kept, or a series has failed.
    resume : bool, default=True
        Leave what is at ``path`` already, with the same settings and the same rows. False fits all again;
        each model is replaced when the new one is there, and those of other series stay.
    stop : Event or None, default=None
        Ends the work once it is set, as Ctrl-C does: models that are finished are kept, and the same call
        goes on with the others.

    Returns
    -------
    Models
        By name, and ``failures``. After ``stop`` those that were finished.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from varnn import Panel, VARNNRegressor
    >>> labels = np.sin(np.arange(120) / 3)
    >>> panel = Panel.from_arrays(None, labels, series=60 * ["north"] + 60 * ["south"])
    >>> path = pathlib.Path(tempfile.mkdtemp(), "meters.varnns")
    >>> models = fit_many(panel, VARNNRegressor(epochs=1, ensemble=1, hidden_size=4), path=path, workers=1)
    >>> list(models), models["north"].predict(None, labels[:60]).shape
    (['north', 'south'], (60,))
    """
    given: Any = rows
    if is_table(given):
        rows = Panel.from_frame(given)
    series = _listed(rows, regressor)
    if on_model is not None and not callable(on_model):
        raise ConfigError(f"on_model must be a function of one SeriesDone; got {shown(on_model)}.")
    if cluster is None:  # else every series would fail of it, alone
        for one in {id(each.regressor): each.regressor for each in series}.values():
            check_packages(one)
    else:
        require("ray", extra="ray", purpose="running on a cluster")
    shelf: WritableShelf = MemoryShelf() if path is None else FileShelfWriter(Path(path))
    try:
        work = _Work(shelf, series, on_model, resume=resume)
        work.fit(workers=workers, cluster=cluster, stop=stop)
    finally:
        shelf.close()
    return Models(shelf if path is None else FileShelf(Path(path)))


def _listed(
    rows: Panel | Mapping[str, tuple[Panel, VARNNRegressor]], regressor: VARNNRegressor | None
) -> list[_Series]:
    """What is to be fitted; refuses what is no panel, no model, or a setting that no model has."""
    if isinstance(rows, Panel):
        own = VARNNRegressor() if regressor is None else regressor
        settings = _checked(own, "regressor")
        ends = zip(rows.ids, rows.starts[:-1], rows.starts[1:], strict=True)
        return [_Series(name, rows, int(first), int(last), own, settings) for name, first, last in ends]
    if not isinstance(rows, Mapping):
        raise DataError(
            "fit_many takes a Panel and a VARNNRegressor, or a mapping of names to (Panel, VARNNRegressor); "
            f"got {type(rows).__name__}. See Panel.from_frame."
        )
    if regressor is not None:
        raise ConfigError("with a mapping each model has its own settings: leave out `regressor`.")
    listed, known = [], dict[int, str]()
    given: Mapping[Any, Any] = rows
    for name, pair in given.items():
        if not isinstance(name, str):
            raise DataError(f"names of models must be texts; got {shown(name)}.")
        if not isinstance(pair, tuple) or len(pair) != 2 or not isinstance(pair[0], Panel):
            raise DataError(f"{name!r} must come with (Panel, VARNNRegressor); got {shown(pair)}.")
        panel, own = pair
        if id(own) not in known:
            known[id(own)] = _checked(own, repr(name))
        listed.append(_Series(name, panel, 0, len(panel), own, known[id(own)]))
    if not listed:
        raise DataError("there must be at least one model to fit; the mapping is empty.")
    return listed


def _checked(regressor: Any, what: str) -> str:
    """Settings as text; refused here, they are not refused a thousand times."""
    if not isinstance(regressor, VARNNRegressor):
        raise ConfigError(f"{what} must be a VARNNRegressor; got {shown(regressor)}.")
    return settings_of(regressor)


class _Work:
    """One call of `fit_many`."""

    def __init__(
        self,
        shelf: WritableShelf,
        series: list[_Series],
        on_model: Callable[[SeriesDone], None] | None,
        *,
        resume: bool,
    ) -> None:
        self.shelf, self.on_model, self.total = shelf, on_model, len(series)
        self.fingerprints = {one.name: fingerprint(one.rows(), one.settings) for one in series}
        self.settings = {one.name: one.settings for one in series}
        shelf.expect(self.fingerprints)
        self.left = self._not_kept(series) if resume else series
        self.done = self.total - len(self.left)

    def _not_kept(self, series: list[_Series]) -> list[_Series]:
        """Series that have no model of these rows and settings; says why some are fitted again."""
        kept = self.shelf.fingerprints()
        changed = [
            one.name for one in series if kept.get(one.name) not in (None, self.fingerprints[one.name])
        ]
        same = [one.name for one in series if kept.get(one.name) == self.fingerprints[one.name]]
        damaged = [name for name in same if not self._is_whole(name)]
        if changed:
            self._tell("%s of %s models are of other rows or settings, and are fitted anew: %s.", changed)
        if damaged:
            self._tell("%s of %s models are damaged, and are fitted anew: %s.", damaged)
        finished = set(same) - set(damaged)
        return [one for one in series if one.name not in finished]

    def _is_whole(self, name: str) -> bool:
        try:
            return self.shelf.get(name) is not None
        except ModelFileError:
            return False

    def _tell(self, said: str, names: list[str]) -> None:
        some = ", ".join(map(repr, names[:_SHOWN])) + (", ..." if len(names) > _SHOWN else "")
        logger.warning(said, f"{len(names):,}", f"{self.total:,}", some)

    def fit(self, *, workers: int | None, cluster: str | None, stop: Event | None) -> None:
        """Fit what is left, and keep each model as it comes."""
        if not self.left:
            return
        with ExitStack() as opened:
            shared, each = Shared(None), 1
            regressors = {id(one.regressor): one.regressor for one in self.left}.values()
            warm_up()  # once, not in every worker
            count = cores.usable() if workers is None else workers
            if cluster is None and (trainings := _gpu.trainings(regressors)) is not None:
                shared = Shared(opened.enter_context(trainings).door, _gpu.AT_ONCE)
                each = max(1, min(_MOST_IN_A_JOB, math.ceil(len(self.left) / (2 * count))))
            jobs = _Jobs(self.left, each)
            again: list[_Series] = []
            for index, outcomes, failure in self._run(jobs, shared, workers, cluster, stop):
                if failure is None:
                    self._keep(outcomes)
                elif each == 1:
                    self._keep([failed(one.name, failure, is_ours=False) for one in jobs.of(index)])
                else:  # of several under way in one worker one may be at fault
                    again += jobs.of(index)
            alone = _Jobs(again, 1)
            for index, outcomes, failure in self._run(
                alone, shared._replace(at_once=1), workers, cluster, stop
            ):
                if failure is not None:
                    outcomes = [failed(one.name, failure, is_ours=False) for one in alone.of(index)]
                self._keep(outcomes)

    def _run(
        self, jobs: _Jobs, shared: Shared, workers: int | None, cluster: str | None, stop: Event | None
    ) -> Iterator[tuple[int, list[Outcome], Failure | None]]:
        if not len(jobs):
            return
        done = run(fit_chunk, jobs, shared=shared, workers=workers, cluster=cluster, stop=stop)
        with closing(done):  # which ends the workers
            for one in done:
                yield one.index, one.result or [], one.failure

    def _keep(self, outcomes: list[Outcome]) -> None:
        """Bring what was finished to disk, then say so."""
        self.shelf.put(
            [
                Entry(one.name, self.fingerprints[one.name], self.settings[one.name], *one[1:])
                for one in outcomes
            ]
        )
        for one in outcomes:
            self.done += 1
            if self.on_model is not None:
                seconds = one.facts.get("seconds")
                self.on_model(SeriesDone(one.name, one.reason, seconds, self.done, self.total))
