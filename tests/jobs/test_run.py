"""One function on many jobs: the same outcomes here, on processes of this machine and on Ray."""

import os
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.jobs import work
from varnn.errors import ConfigError, DataError, WorkerError
from varnn.jobs import Done, Failure, run

Runner = Callable[..., Generator[Done[Any]]]


@pytest.fixture(params=["here", "processes", "ray"])
def place(request: pytest.FixtureRequest) -> dict[str, Any]:
    if request.param == "ray":
        request.getfixturevalue("local_ray")
        return {"cluster": "auto"}
    return {"workers": 1 if request.param == "here" else 2}


@pytest.fixture(params=["processes", "ray"])
def elsewhere(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Give what runs jobs in other processes, two at a time."""
    if request.param == "ray":
        request.getfixturevalue("local_ray")
    return {"workers": 2, "cluster": "auto" if request.param == "ray" else None}


def by_index(outcomes: Generator[Done[Any]]) -> list[Done[Any]]:
    found = sorted(outcomes, key=lambda one: one.index)
    assert [one.index for one in found] == list(range(len(found)))  # none lost, none twice
    return found


def test_every_job_comes_out_once_with_its_place(place: dict[str, Any]) -> None:
    found = by_index(run(work.add, range(50), shared=1000, **place))
    assert [one.result for one in found] == list(range(1000, 1050))
    assert all(one.failure is None and one.seconds >= 0 for one in found)


def test_nothing_to_do_is_soon_done(place: dict[str, Any]) -> None:
    assert list(run(work.add, [], **place)) == []


def test_one_that_fails_leaves_the_others_alone(place: dict[str, Any]) -> None:
    found = by_index(run(work.odd_fails, range(6), **place))
    assert [one.result for one in found] == [0, None, 2, None, 4, None]
    failure = found[3].failure
    assert failure is not None
    assert (failure.kind, failure.message) == ("ValueError", "3 is odd")
    assert "odd_fails" in failure.traceback and "raise ValueError" in failure.traceback


def test_outcomes_come_in_the_order_they_are_finished(elsewhere: dict[str, Any]) -> None:
    list(run(work.nap, [0.0, 0.0], **elsewhere))  # both workers are there by now, where they stay
    outcomes = list(run(work.nap, [1.5, 0.0, 0.0, 0.0], **elsewhere))
    assert [one.index for one in outcomes] == [1, 2, 3, 0]
    assert outcomes[0].seconds < 1 < 1.4 < outcomes[3].seconds


def test_what_cannot_be_sent_is_said_of_the_job_alone(elsewhere: dict[str, Any]) -> None:
    jobs = ["unpicklable error", "speechless", "unpicklable result", "exit", "interrupt", "fine"]
    found = by_index(run(work.troubled, jobs, **elsewhere))
    assert found[5].result == "fine"
    kinds = [one.failure.kind for one in found if one.failure is not None]
    assert kinds == ["UnpicklableError", "SpeechlessError", "TypeError", "SystemExit", "KeyboardInterrupt"]
    assert found[0].failure is not None and found[2].failure is not None
    assert found[0].failure.message == "a and b"
    assert "must be something that can be pickled; got lock" in found[2].failure.message


def test_a_job_that_cannot_be_sent_fails_alone(elsewhere: dict[str, Any]) -> None:
    found = by_index(run(work.troubled, ["fine", threading.Lock(), "fine"], **elsewhere))
    assert [one.result for one in found] == ["fine", None, "fine"]
    assert found[1].failure is not None
    assert "a job must be something that can be pickled" in found[1].failure.message


def test_what_all_share_must_be_something_to_send(elsewhere: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="what they share, must be something that can be pickled"):
        list(run(work.troubled, ["a", "b"], shared=threading.Lock(), **elsewhere))


def test_functions_without_a_name_can_be_run(elsewhere: dict[str, Any]) -> None:
    offset = 7
    found = by_index(run(lambda job, shared: job + offset + shared, range(3), shared=100, **elsewhere))
    assert [one.result for one in found] == [107, 108, 109]


def test_arrays_arrive_as_they_were_and_can_be_written_to(elsewhere: dict[str, Any]) -> None:
    rows = np.random.default_rng(0).normal(size=(1000, 300))

    def writes(job: int, shared: Any) -> Any:
        shared[0, 0] = job
        return shared[1:] * job

    for one in run(writes, [1, 2, 3], shared=rows, **elsewhere):
        np.testing.assert_array_equal(one.result, rows[1:] * (one.index + 1))


def test_what_is_shared_is_read_once_by_each_worker(elsewhere: dict[str, Any], tmp_path: Path) -> None:
    counted = work.Counted(tmp_path)
    found = by_index(run(lambda job, shared: job, range(40), shared=counted, **elsewhere))
    assert len(found) == 40
    read = list(tmp_path.glob("read-*"))
    assert 1 <= len(read) <= 2 and all(one.suffix == ".0" for one in read)


class Lazy(Sequence[int]):
    """Jobs that are made when they are asked for, and tells how far that went."""

    def __init__(self, length: int) -> None:
        self.length, self.made = length, 0

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: Any) -> Any:
        self.made = max(self.made, index + 1)
        return int(index)


def test_jobs_are_made_shortly_before_they_begin(elsewhere: dict[str, Any]) -> None:
    jobs = Lazy(10**9)
    with closing(run(work.add, jobs, **elsewhere)) as outcomes:
        for count, _ in enumerate(outcomes, start=1):
            assert jobs.made <= count + 3
            if count == 200:
                break
    assert jobs.made <= 203


@pytest.mark.parametrize("retries", [0, 1])
def test_a_job_that_always_kills_its_worker_is_given_up(
    retries: int, elsewhere: dict[str, Any], tmp_path: Path
) -> None:
    found = by_index(run(work.killed_always, range(5), shared=tmp_path, retries=retries, **elsewhere))
    assert [one.result for one in found] == [0, None, 2, 3, 4]
    failure = found[1].failure
    assert failure is not None and failure.kind == "WorkerDied"
    assert f"died, {'once' if retries == 0 else '2 times'}; the last was" in failure.message
    assert work.times(tmp_path, "job-1") == retries + 1


def test_killed_workers_cost_nothing_but_time(elsewhere: dict[str, Any], tmp_path: Path) -> None:
    found = by_index(run(work.killed_once, range(20), shared=tmp_path, **elsewhere))
    assert [one.result for one in found] == [number**2 for number in range(20)]
    for number in range(20):  # those that were killed, and no others, are run again
        assert work.times(tmp_path, f"job-{number}") == (2 if number % 3 == 0 else 1)


def test_a_stop_ends_what_is_under_way(elsewhere: dict[str, Any], tmp_path: Path) -> None:
    stop = threading.Event()
    found = []
    for one in run(work.pid_then_sleep, range(5), shared=tmp_path, stop=stop, **elsewhere):
        found.append(one.index)
        assert work.wait_for(lambda: len(work.pids(tmp_path)) >= 3)  # the other one runs, and has a child
        stop.set()
    assert found == [0]
    assert elsewhere["cluster"] or work.all_gone(tmp_path)  # those of a cluster stay, for other jobs


def test_a_stop_ends_jobs_of_this_process_between_two() -> None:
    stop = threading.Event()
    found = []
    for one in run(work.add, range(5), workers=1, stop=stop):
        found.append(one.index)
        stop.set()
    assert found == [0]


def test_workers_keep_to_one_thread(elsewhere: dict[str, Any]) -> None:
    found = by_index(run(work.surroundings, range(2), **elsewhere))
    for one in found:
        assert one.result is not None
        assert one.result["cores"] == 1 and one.result["numba"] == "1"
        assert set(one.result["threads"]) == {1}


def test_jobs_within_jobs_stay_in_their_process(elsewhere: dict[str, Any]) -> None:
    found = by_index(run(work.nested, [1, 2], **elsewhere))
    assert [one.result for one in found] == [[2, 2], [3, 3]]


@pytest.mark.parametrize("changes", [{"workers": 0}, {"workers": 1.5}, {"retries": -1}, {"workers": True}])
def test_numbers_that_cannot_be_are_refused_at_once(changes: dict[str, Any]) -> None:
    (name,) = changes
    with pytest.raises(ConfigError, match=f"{name} must be a whole number of at least"):
        run(work.add, [1, 2], **changes)


def test_one_worker_can_be_a_process_of_its_own() -> None:
    here = {one.result for one in run(work.nap, [0.0, 0.0], workers=1)}
    apart = {one.result for one in run(work.nap, [0.0, 0.0], workers=1, isolated=True)}
    assert here == {os.getpid()}
    assert len(apart) == 1 and not apart & here


def test_an_error_can_be_raised_here(elsewhere: dict[str, Any]) -> None:
    first, second = by_index(run(work.odd_fails, [2, 3], **elsewhere))
    assert first.value() == 2
    with pytest.raises(ValueError, match="3 is odd") as raised:
        second.value()
    assert "raise ValueError" in raised.value.__notes__[0]


@pytest.mark.parametrize(
    ("kind", "raised"),
    [
        ("DataError", DataError),
        ("RowError", RuntimeError),
        ("UnicodeDecodeError", RuntimeError),
        ("KeyboardInterrupt", RuntimeError),
        ("require", RuntimeError),
        ("WorkerDied", WorkerError),
    ],
)
def test_an_error_is_of_its_class_where_it_can_be(kind: str, raised: type[Exception]) -> None:
    error = Failure(kind, "no rows", "").error()
    assert type(error) is raised
    assert "no rows" in str(error)


def test_where_there_are_no_such_processes_one_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    assert [one.result for one in run(work.pid_of, [0.0], shared=Path())] == [os.getpid()]
    with pytest.raises(ConfigError, match="this is Windows"):
        list(run(work.pid_of, [0.0], shared=Path(), workers=2))
