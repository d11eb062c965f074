"""One stream at work: a thread of its own that takes what waits, writes it to disk once, and answers.

::

    submit -> queue -> [thread] answer each message -> one transaction -> answers, followers

Messages that come while a transaction is written wait for the next one, so that under load many share one:
that is what makes a durable answer cheap.
"""

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from threading import Condition, Event, Thread
from typing import Any, NamedTuple, TypeVar

import numpy as np

from varnn.data.timestamps import seconds_since_1970, timestamp
from varnn.errors import DataError, ModelFileError, OutputError, VarnnError
from varnn.model.fitted import Fitted
from varnn.service.challenger import Challenger
from varnn.service.errors import Busy, Closing, refusal
from varnn.service.keeper import Keeper
from varnn.service.requests import Request
from varnn.streaming.messages import name_of
from varnn.streaming.row_store import RowStore
from varnn.streaming.stream import Stream

_GROUP = 2000  # messages in a transaction, about
_TRIED_EVERY = 1.0  # seconds between two tries to write, after one that failed
_COVERAGE: dict[str, Any] = {"quiet": 100}  # a series that begins from nothing is not in trouble
_log = logging.getLogger("varnn.service")
_Found = TypeVar("_Found")
Follower = Callable[[list[dict[str, Any]], list[dict[str, Any]]], None]


@dataclass(frozen=True)
class StreamSettings:
    """How a stream is kept.

    Parameters
    ----------
    level : float, default=0.9
        Level of the intervals that every prediction comes with, where the model has intervals.
    late : int, default=24
        Rows that a label may come late.
    future : float, default=86400.0
        Seconds that a row's time may be ahead of the clock; 0 for any.
    watch : bool, default=True
        Whether a monitor looks for events.
    history : int, default=10000
        Rows of history kept of each series.
    history_in_all : int, default=5000000
        Rows of history kept of all series together, about.
    in_memory : int, default=10000
        Series held in memory; others wait on disk.
    most_series : int, default=100000
        Series taken.
    answers : int, default=1000
        Answers kept of each series, for messages that are sent again.
    queue : int, default=50000
        Messages that may wait.
    synchronous : bool, default=True
        Whether answers outlive a loss of power, too.
    """

    level: float = 0.9
    late: int = 24
    future: float = 86_400.0
    watch: bool = True
    history: int = 10_000
    history_in_all: int = 5_000_000
    in_memory: int = 10_000
    most_series: int = 100_000
    answers: int = 1000
    queue: int = 50_000
    synchronous: bool = True


class _Job(NamedTuple):
    size: int
    do: Callable[[RowStore], Any]
    future: Future[Any]
    writes: bool
    alone: bool  # whether it has a transaction of its own


class LiveStream:
    """A stream with its champion, its challengers and its series.

    Parameters
    ----------
    name : str
        Name of the stream.
    path : Path
        Its state file.
    champion : tuple of str and Fitted
        The model that answers, with its name.
    challengers : sequence of the same, default=()
        Models that go along.
    settings : StreamSettings or None, default=None
        How it is kept; None for the defaults.
    on_commit : callable
        Whom to tell how many seconds each transaction took.

    Examples
    --------
    >>> import tempfile
    >>> from varnn import VARNNRegressor
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = VARNNRegressor(epochs=1, hidden_size=4).fit(X, X[:, 0])
    >>> live = LiveStream("house", Path(tempfile.mkdtemp()) / "house.state", ("first", model.fitted_))
    >>> [answer] = live.submit([{"series": "north", "x": [0.1, 0.2], "y": 0.3}]).result()
    >>> answer["seq"], answer["row"]
    (1, 0)
    >>> live.close()
    """

    def __init__(
        self,
        name: str,
        path: Path,
        champion: tuple[str, Fitted],
        challengers: Sequence[tuple[str, Fitted]] = (),
        settings: StreamSettings | None = None,
        on_commit: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        settings = settings or StreamSettings()
        self.name, self.path, self.settings = name, path, settings
        self.champion, self.model = champion
        self.inputs, self.target = list(self.model.input_names), self.model.target_name
        self.level = None if self.model.calibrator is None else settings.level
        self.counts: Counter[str] = Counter()  # messages, by what became of them
        self.event_counts: Counter[str] = Counter()
        self.trouble: str | None = None  # why the last transaction failed
        self._damages: dict[str, str] = {}  # what is wrong with the file, by series
        self._on_commit = on_commit
        self.commits, self.commit_seconds, self.slowest_commit = 0, 0.0, 0.0
        self._followers: dict[int, Follower] = {}
        self._queue: deque[_Job] = deque()
        self._waiting = 0
        self._changed = Condition()
        self._ending = self._with_states = False
        self._distrusted = False  # whether memory may hold what is not on disk
        self.keeper = Keeper(
            late=settings.late,
            most_rows=settings.history,
            most_in_all=settings.history_in_all,
            tell=self._tell,
        )
        self.keeper.challengers = [
            Challenger(one, fitted, self.inputs, late=settings.late, level=settings.level)
            for one, fitted in challengers
        ]
        watch = (
            None if not settings.watch else {} if self.level is None else _COVERAGE | {"coverage": self.level}
        )
        self._store = RowStore(
            self.model,
            path,
            late=settings.late,
            level=self.level,
            companion=self.keeper,
            admit=self._check_future,
            in_memory=settings.in_memory,
            most_series=settings.most_series,
            answers=settings.answers,
            watch=watch,
            synchronous=settings.synchronous,
        )
        self.is_warm = Event()  # whether code is compiled, which takes some seconds after an installation
        self._thread = Thread(target=self._work, name=f"stream {name}", daemon=True)
        self._thread.start()

    @property
    def n_series(self) -> int:
        """Series that are known."""
        return self._store.n_series

    @property
    def is_ready(self) -> bool:
        """Whether messages can be answered, and written."""
        is_well = self.trouble is None and self.damage is None and self.path.exists()
        return self.is_warm.is_set() and is_well and not self._ending and not self.has_ended

    @property
    def has_ended(self) -> bool:
        """Whether it has answered all it will."""
        return not self._thread.is_alive()

    @property
    def waiting(self) -> int:
        """Messages in the queue."""
        return self._waiting

    def submit(
        self, messages: Sequence[Any], *, pure: bool = False, request: Request | None = None
    ) -> Future[list[dict[str, Any]]]:
        """Hand in messages; what comes of it is there once it is on disk, in the same order.

        Parameters
        ----------
        messages : sequence
            As `varnn.streaming.rows` has them.
        pure : bool, default=False
            Whether only to predict each x as the next row of its series, and to change nothing.
        request : Request or None, default=None
            What the sender calls these messages: sent again, all of them are answered as they were.
        """
        if pure:
            return self._hand_in(
                len(messages), lambda store: [self._one(store.peek, message) for message in messages]
            )
        return self._hand_in(
            len(messages), lambda store: self._answered(store, messages, request), writes=True
        )

    def call(self, do: Callable[[RowStore], _Found], *, writes: bool = False) -> Future[_Found]:
        """Do something with the store, in its thread and between messages."""
        return self._hand_in(1, do, writes=writes, alone=writes)

    def follow(self, follower: Follower) -> Callable[[], None]:
        """Tell someone of rows and events from here on, in this stream's thread; give what ends it."""
        self._followers[id(follower)] = follower
        return lambda: self._followers.pop(id(follower), None) and None

    def take_over(self, before: "LiveStream") -> None:
        """Go on with the counts and the followers of the same stream, which was closed."""
        self.counts, self.event_counts = before.counts, before.event_counts
        self._followers = before._followers
        self.commits, self.commit_seconds = before.commits, before.commit_seconds
        self.slowest_commit = before.slowest_commit

    def close(self, *, with_states: bool = False) -> None:
        """Answer what waits, and end.

        Parameters
        ----------
        with_states : bool, default=False
            Whether to write the state of every series, also of those that are soon done again.
        """
        with self._changed:
            self._ending, self._with_states = True, with_states
            self._changed.notify_all()
        self._thread.join()

    def _hand_in(
        self, size: int, do: Callable[[RowStore], Any], *, writes: bool = False, alone: bool = False
    ) -> Future[Any]:
        future: Future[Any] = Future()
        with self._changed:
            if self._ending:
                raise Closing(f"stream {self.name!r} is ending. Try again in some seconds.")
            if self._waiting + size > self.settings.queue and self._waiting:
                raise Busy(
                    f"{self._waiting} messages wait in stream {self.name!r}, and {self.settings.queue} "
                    "may. Send more slowly, or more of them together."
                )
            self._queue.append(_Job(size, do, future, writes, alone))
            self._waiting += size
            self._changed.notify()
        return future

    def _answered(
        self, store: RowStore, messages: Sequence[Any], request: Request | None
    ) -> list[dict[str, Any]]:
        if request is None:
            return [self._one(store.answer, message) for message in messages]
        requests = self.keeper.requests
        again = requests.answers(request)
        if again is not None:
            return again
        answers = [self._one(store.answer, message) for message in messages]
        requests.keep(request, answers)
        return answers

    def _one(self, answer: Callable[[Any], dict[str, Any]], message: Any) -> dict[str, Any]:
        try:
            return answer(message)
        except ModelFileError as error:  # of what is on disk: other series may be whole
            self._damages[name_of(message)] = str(error)
            return refusal(message, str(error)) | {"damaged": True}

    def mended(self, name: str) -> None:
        """Hear that a series, by its name as JSON, was put anew or forgotten."""
        self._damages.pop(name, None)

    @property
    def damage(self) -> str | None:
        """What is wrong with the file, if anything is."""
        return next(iter(self._damages.values()), None)

    def _check_future(self, message: Mapping[str, Any]) -> None:
        """Refuse a row from too far ahead: one wrong clock would make all later rows of a series stale."""
        ahead, given = self.settings.future, message.get("time")
        if not ahead or given is None:
            return
        now = time.time()
        if seconds_since_1970(timestamp(given)) > now + ahead:
            clock = np.datetime64(int(now), "s")
            raise DataError(
                f"time {given!r} is more than {ahead:g} s ahead of this machine's clock ({clock} UTC). "
                "Correct one of the two, or allow more with --future."
            )

    def _work(self) -> None:
        with np.errstate(all="ignore"):  # numbers without end are answered by null
            try:
                for model in (self.model, *(one.fitted for one in self.keeper.challengers)):
                    _warm_up(model)
            finally:
                self.is_warm.set()
            while not self._is_over:
                jobs = self._taken()
                if jobs:
                    self._do(jobs)
                elif self.trouble is not None:
                    self._try_again()
            try:
                try:
                    if self._with_states:
                        self._store.checkpoint()
                finally:
                    self._store.close()
            except (OutputError, ModelFileError) as error:
                self.trouble = str(error)
                _log.error("stream %s could not be closed: %s", self.name, error)

    def _taken(self) -> list[_Job]:
        """Wait for jobs, and take what is there; nothing at the end, or after a while of trouble."""
        with self._changed:
            if not self._queue and not self._ending:
                self._changed.wait(None if self.trouble is None else _TRIED_EVERY)
            jobs: list[_Job] = []
            size = 0
            while self._queue and (not jobs or size + self._queue[0].size <= _GROUP):
                if jobs and (jobs[-1].alone or self._queue[0].alone):
                    break
                jobs.append(self._queue.popleft())
                size += jobs[-1].size
            return jobs

    @property
    def _is_over(self) -> bool:
        with self._changed:
            return self._ending and not self._queue

    def _do(self, jobs: list[_Job]) -> None:
        """Do jobs, with one transaction for all of them."""
        running = [job for job in jobs if job.future.set_running_or_notify_cancel()]
        try:
            self._do_together(running)
        except (OutputError, ModelFileError) as error:
            self._fail(running, error)
        except Exception as error:  # a bug, of one of them
            self._fail(running if len(running) == 1 else [], error)
            for job in running if len(running) > 1 else []:
                try:
                    self._do_together([job])
                except Exception as its_own:
                    self._fail([job], its_own)
        finally:
            with self._changed:
                self._waiting -= sum(job.size for job in jobs)

    def _do_together(self, jobs: list[_Job]) -> None:
        if self._distrusted:
            self._store.give_up()
            self._distrusted = False
        done = [(job, self._found(job)) for job in jobs]
        begun, has_news = time.perf_counter(), self._store.has_news
        if (
            has_news and not self.path.exists()
        ):  # the system would let us go on writing, to be lost at the end
            raise OutputError(f"{str(self.path)!r} was deleted while in use. Put it back, or start again.")
        self._store.commit()
        if has_news:
            self._count_commit(time.perf_counter() - begun)
        for job, found in done:
            if isinstance(found, Exception):
                job.future.set_exception(found)
            else:
                if job.writes and isinstance(found, list):
                    self._count(found)
                job.future.set_result(found)

    def _found(self, job: _Job) -> Any:
        try:
            return job.do(self._store)
        except (DataError, ModelFileError) as error:  # its own fault, and it has changed nothing
            return error

    def _count(self, answers: list[dict[str, Any]]) -> None:
        for answer in answers:
            if "error" in answer:
                self.counts["refused"] += 1
                continue
            self.counts["observed"] += "innovation" in answer
            self.counts["predicted"] += "prediction" in answer

    def _fail(self, jobs: list[_Job], error: Exception) -> None:
        """Go back to what is on disk: none of these jobs was ever done."""
        self.trouble = str(error)
        expected = isinstance(error, OutputError | ModelFileError)
        _log.error("stream %s: %s", self.name, error, exc_info=None if expected else error)
        if isinstance(error, ModelFileError):
            self._damages[""] = str(error)
        self._distrusted = True
        try:
            self._store.give_up()
            self._distrusted = False
        except Exception as worse:  # then it is tried again before anything else is done
            _log.error("stream %s: %s", self.name, worse)
        for job in jobs:
            job.future.set_exception(error)

    def _try_again(self) -> None:
        """See whether there is room again: who looks whether a stream is ready may send nothing before."""
        try:
            if self._distrusted:
                self._store.give_up()
                self._distrusted = False
            self._store.try_to_write()
            self.trouble = None
        except Exception as error:
            self.trouble = str(error)

    def _count_commit(self, seconds: float) -> None:
        self.commits += 1
        self.commit_seconds += seconds
        self.slowest_commit = max(self.slowest_commit, seconds)
        self.trouble = None
        self._on_commit(seconds)

    def _tell(self, rows: list[dict[str, Any]], events: list[dict[str, Any]]) -> None:
        self.event_counts.update(one["kind"] for one in events)
        for follower in list(self._followers.values()):
            try:
                follower(rows, events)
            except Exception:  # who follows must not stop who is followed, whose rows are on disk by now
                _log.exception("stream %s: one who follows it failed", self.name)


def _warm_up(model: Fitted) -> None:
    """Make one step of a stream that nobody sees, so that no caller waits for code to be compiled."""
    level = None if model.calibrator is None else [0.9]
    try:
        live = Stream(model)
        live.predict(np.zeros(live.n_inputs), time=np.datetime64("2026-01-01T00:00"), interval=level)
        live.observe(0.0)
    except VarnnError:
        pass  # a model may have something against zeros
    except Exception:  # who sends a row hears of it; the stream is not to end before its first one
        _log.exception("a first step could not be made")
