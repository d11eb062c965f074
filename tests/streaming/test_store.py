"""What a store promises: nothing answered is lost, none is doubled, and it goes on to the last bit."""

import copy
import json
import os
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from varnn import Details, Panel, Stream, VARNNRegressor
from varnn.data.files import write_atomically
from varnn.errors import ConfigError, ModelFileError, OutputError, ThreadError
from varnn.streaming import messages
from varnn.streaming import store as store_module
from varnn.streaming._journal import Journal
from varnn.streaming.by_name import Streams
from varnn.streaming.store import EVERY, Store

SMALL: Any = {"epochs": 1, "hidden_size": 6, "ensemble": 2, "window": 4, "device": "cpu"}
NAMES = ("a", "b", "c")
Line = dict[str, Any]


def panel_of(rows: int = 120) -> Panel:
    random = np.random.default_rng(0)
    X = random.normal(size=(3 * rows, 2))
    y = X[:, 0] + np.cumsum(random.normal(size=3 * rows)) / 5
    return Panel.from_arrays(X, y, series=np.repeat(NAMES, rows))


@pytest.fixture(scope="module")
def alone() -> VARNNRegressor:
    return VARNNRegressor(details=Details(forgetting=0.99), **SMALL).fit(panel_of())


@pytest.fixture(scope="module")
def linked() -> VARNNRegressor:
    return VARNNRegressor(peers=True, details=Details(forgetting=0.99), **SMALL).fit(panel_of())


def lines_of(rows: int = 60, seed: int = 1, *, several: bool = False) -> list[Any]:
    """Make lines of three series: both at once, one after the other, missing labels; or lists of moments."""
    random = np.random.default_rng(seed)
    lines: list[Any] = []
    for row in range(rows):
        moment = []
        for name in NAMES:
            x, y = random.normal(size=2).tolist(), float(random.normal())
            label = None if random.random() < 0.1 else y
            more = {"together": 1, "asked": "yes"} if random.random() < 0.1 else {}  # not ours: no matter
            if several or random.random() < 0.5:
                moment.append({"series": name, "x": x, "y": label} | more)
            else:
                moment += [{"series": name, "x": x} | more, {"series": name, "y": label}]
        lines += [moment] if several and row % 3 else moment
    return lines


def answered(store: Store, lines: list[Any], group: int = 7) -> list[Any]:
    answers = []
    for first in range(0, len(lines), group):
        for line in lines[first : first + group]:
            answers.append(store.answer_all(line) if isinstance(line, list) else store.answer(line))
        store.commit()
    return answers


def crashed(path: Path, name: str) -> Path:
    """Copy what lies on the disk, as it would be if the process had died now."""
    copy = path.with_name(name)
    for end in ("", "-wal"):
        if path.with_name(path.name + end).exists():
            shutil.copy(path.with_name(path.name + end), copy.with_name(copy.name + end))
    return copy


@pytest.fixture
def store(alone: VARNNRegressor, tmp_path: Path) -> Iterator[Store]:
    with Store(alone, tmp_path / "live.state") as made:
        yield made


@pytest.mark.parametrize("kind", ["alone", "linked", "lists"])
@pytest.mark.parametrize("every", [5, 500])
def test_a_crash_at_any_group_goes_on_to_the_last_bit(
    kind: str, every: int, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "EVERY", every)  # states, or messages done again
    model = request.getfixturevalue("alone" if kind == "alone" else "linked")
    lines = lines_of(40, several=kind == "lists")
    with Store(model, tmp_path / "whole") as store:
        whole = answered(store, lines)
    for stop in (1, 20, 57):
        before = Store(model, tmp_path / "before")
        first = answered(before, lines[:stop], group=3)
        before.answer({"series": "a", "x": [9.0, 9.0]})  # not committed, so it never was
        with Store(model, crashed(tmp_path / "before", f"after{stop}")) as after:
            assert first + answered(after, lines[stop:]) == whole
        before.close()
        for left in tmp_path.glob("before*"):
            left.unlink()


def test_without_a_file_the_numbers_are_the_same(alone: VARNNRegressor, store: Store) -> None:
    lines = lines_of()
    for one, other in zip(answered(Store(alone), lines), answered(store, lines), strict=True):
        other.pop("seq")
        assert one == other


@pytest.mark.parametrize("by", ["seq", "key"])
def test_what_is_sent_again_is_answered_as_it_was(alone: VARNNRegressor, tmp_path: Path, by: str) -> None:
    lines = lines_of(20)
    counts = dict.fromkeys(NAMES, 0)
    for line in lines:
        counts[line["series"]] += 1
        line[by] = counts[line["series"]] if by == "seq" else f"row {counts[line['series']]}"
    with Store(alone, tmp_path / "whole") as whole:
        expected = answered(whole, lines)
    path = tmp_path / "again"
    for first in range(0, len(lines), 9):  # each time opened anew, and sent from far before
        with Store(alone, path) as again:
            begin = max(0, first - 15)
            found = answered(again, lines[begin : first + 9], group=4)
            assert found == expected[begin : first + 9]
            assert answered(again, lines[begin : first + 9]) == found, "within one process, too"


def test_a_list_of_linked_series_sent_again(linked: VARNNRegressor, tmp_path: Path) -> None:
    moments = [line for line in lines_of(12, several=True) if isinstance(line, list)]
    lists = [[one | {"seq": row} for one in line] for row, line in enumerate(moments, start=1)]
    with Store(linked, tmp_path / "a") as store:
        once = answered(store, lists)
        assert answered(store, lists) == once
    with Store(linked, tmp_path / "a") as store:
        assert answered(store, lists[2:]) == once[2:]


def test_numbers_tell_where_to_go_on(store: Store) -> None:
    line = {"series": "a", "x": [0.0, 1.0], "y": 1.0}
    assert store.answer(line)["seq"] == 1
    assert store.answer(line | {"seq": 2})["seq"] == 2
    assert "has seq 3; got 7" in store.answer(line | {"seq": 7})["error"]
    assert "has seq 1; got 2" in store.answer(line | {"series": "new", "seq": 2})["error"]
    for wrong in (0, -1, 1.0, True, "1", 2**70):
        assert "seq must be" in store.answer(line | {"seq": wrong})["error"]
    for key in ("", 5, "k" * 201, ["k"]):
        assert "key must be" in store.answer(line | {"key": key})["error"]
    assert store.answer(line | {"key": "\ud800"})["seq"] == 3
    store.commit()
    assert store.answer(line | {"key": "\ud800"})["seq"] == 3


def test_numbers_need_a_file(alone: VARNNRegressor) -> None:
    answer = Store(alone).answer({"x": [0.0, 1.0], "seq": 1})
    assert "kept on disk" in answer["error"]


def test_answers_and_messages_are_kept_in_bounded_number(
    alone: VARNNRegressor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "EVERY", 20)
    path = tmp_path / "s"
    line = {"series": "a", "x": [0.0, 1.0], "y": 1.0}
    with Store(alone, path, answers=10) as store:
        last = answered(store, [line] * 500)
        assert "no longer kept" in store.answer(line | {"seq": 470})["error"]
        assert [store.answer(line | {"seq": seq}) for seq in range(491, 501)] == last[490:]
    with sqlite3.connect(path) as database:
        rows = database.execute("SELECT answer FROM answers").fetchall()
        (messages,) = database.execute("SELECT count(*) FROM journal").fetchone()
    answers = sum(1 + text.count("\n") for (text,) in rows)  # whole groups of 7 are dropped
    assert 10 <= answers < 20 + 7
    assert messages <= 20


def test_series_that_are_not_used_leave_memory_and_come_back(
    alone: VARNNRegressor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "_REPLAYED", 3)
    random = np.random.default_rng(0)
    names = [int(random.integers(12)) for _ in range(300)]
    lines = [{"series": name, "x": random.normal(size=2).tolist(), "y": 0.5} for name in names]
    with Store(alone, tmp_path / "all") as store:
        whole = answered(store, lines)
        assert len(store.streams) == 12
    with Store(alone, tmp_path / "few", in_memory=2) as store:
        assert answered(store, lines) == whole
        assert len(store.streams) == 2
        assert store.n_series == 12


def test_series_that_were_only_asked_about_leave_memory_too(alone: VARNNRegressor, tmp_path: Path) -> None:
    lines = [{"series": name, "x": [0.0, 1.0], "seq": 1} for name in range(10)]
    with Store(alone, tmp_path / "s", in_memory=2) as store:
        once = answered(store, lines)
        assert answered(store, lines) == once
        assert len(store.streams) == 2
        assert all("error" in one for one in answered(store, [line | {"seq": 5} for line in lines]))
        assert len(store.streams) == 2


def test_there_are_limits_and_they_are_said(alone: VARNNRegressor, tmp_path: Path) -> None:
    with Store(alone, tmp_path / "s", most_series=2, most_together=3) as store:
        for name in ("a", "b"):
            assert "prediction" in store.answer({"series": name, "x": [0, 1]})
        assert "2 series are here" in store.answer({"series": "c", "x": [0, 1]})["error"]
        assert "prediction" in store.answer({"series": "a", "x": [0, 1]})
        found = store.answer_all([{"series": "a", "x": [0, 1]}] * 4)
        assert isinstance(found, dict)
        assert "may hold 3 messages; got 4" in found["error"]
    with pytest.raises(ConfigError, match="at least 1"):
        Store(alone, in_memory=0)


@pytest.mark.parametrize(
    "bad",
    [
        {"x": [1.0, 2.0], "y": "high"},
        {"x": [1.0, 2.0], "y": True},
        {"x": [1.0, 2.0], "y": float("inf")},
        {"x": [1.0, 2.0], "y": 10**400},
        {"x": [1.0, 2.0], "y": 1e200},
        {"x": [1.0, 2.0], "time": "now", "y": 1.0},
        {"x": [1.0, 2.0], "interval": [0.9] * 21, "y": 1.0},
        {"x": [1.0, 2.0], "interval": "wide", "y": 1.0},
        {"x": [True, 2.0]},
        {"x": ["1", "2"]},
        {"x": [[1.0, 2.0]]},
        {"x": {"x0": 1.0}},
        {"x": "12"},
        {"x": None},
        {"x": [1.0, 2.0], "series": ["a"]},
        {"x": [1.0, 2.0], "series": True},
        {"x": [1.0, 2.0], "series": "s" * 201},
        {"x": [1.0, 2.0], "series": 10**300},
        {"z": 1},
    ],
    ids=lambda bad: json.dumps(bad)[:40],
)
@pytest.mark.parametrize("kind", ["alone", "linked"])
def test_what_cannot_be_used_changes_nothing(kind: str, bad: Line, request: pytest.FixtureRequest) -> None:
    model = request.getfixturevalue(kind)
    lines = lines_of(5)
    clean, disturbed = Store(model), Store(model)
    for line in lines:
        answer = disturbed.answer({"series": "a"} | bad)
        assert set(answer) <= {"series", "error"}
        assert len(answer["error"]) < 600
        assert disturbed.answer(line) == clean.answer(line)


def test_a_number_that_json_does_not_have_is_null(alone: VARNNRegressor) -> None:
    live = Store(alone)
    for _ in range(3):
        answer = live.answer({"x": [1.0, 2.0], "y": 9e98})
        json.dumps(answer, allow_nan=False)
    assert live.answer({"x": [1.0, 2.0], "y": float("nan")})["innovation"] is None


def test_files_that_cannot_be_gone_on_from(
    alone: VARNNRegressor, linked: VARNNRegressor, tmp_path: Path
) -> None:
    with Store(linked, tmp_path / "linked"):
        pass
    with pytest.raises(ModelFileError, match="another model"):
        Store(alone, tmp_path / "linked")
    for version in ("1", "3"):
        with sqlite3.connect(tmp_path / "linked") as database:
            database.execute("UPDATE facts SET value = ? WHERE name = 'version'", (version,))
        database.close()
        with pytest.raises(ModelFileError, match=f"another version of varnn: it has version {version}"):
            Store(linked, tmp_path / "linked")
    write_atomically(tmp_path / "snapshot", Streams(alone).snapshot())
    (tmp_path / "text").write_text("hello")
    for name in ("snapshot", "text"):
        before = (tmp_path / name).read_bytes()
        with pytest.raises(ModelFileError, match="not a state file of this library"):
            Store(alone, tmp_path / name)
        assert (tmp_path / name).read_bytes() == before
        assert not (tmp_path / f"{name}-lock").exists()
    with sqlite3.connect(tmp_path / "other") as database:
        database.execute("CREATE TABLE mine (a)")
    database.close()
    with pytest.raises(ModelFileError, match="another program"):
        Store(alone, tmp_path / "other")
    (tmp_path / "empty").touch()
    with Store(alone, tmp_path / "empty") as store:
        assert store.n_series == 0


def test_a_damaged_state_says_so_and_is_no_new_beginning(alone: VARNNRegressor, tmp_path: Path) -> None:
    path = tmp_path / "s"
    with Store(alone, path) as store:
        answered(store, lines_of(60))
    with sqlite3.connect(path) as database:
        database.execute("UPDATE states SET state = zeroblob(100)")
    database.close()
    with Store(alone, path) as store:
        for _ in range(2):
            with pytest.raises(ModelFileError, match="the snapshot"):
                store.answer({"series": "a", "x": [0.0, 1.0]})


def test_one_process_at_a_time(alone: VARNNRegressor, tmp_path: Path) -> None:
    path = tmp_path / "s"
    with (
        Store(alone, path),
        pytest.raises(OutputError, match=f"in use by process {os.getpid()} on "),
    ):
        Store(alone, path)
    (tmp_path / "s-lock").write_text("process 1 on somewhere\n")  # as one that died leaves it
    Store(alone, path).close()


def test_threads_may_take_turns_with_a_store_and_not_meet_in_it(store: Store) -> None:
    line = {"x": [0.0, 1.0], "y": 1.0}
    found: list[Any] = [store.answer(line)]

    def work() -> None:
        found.append(store.answer(line))
        store.commit()

    for _ in range(2):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert [one["seq"] for one in found] == [1, 2, 3]
    inside, done = threading.Event(), threading.Event()

    def hold() -> None:
        with store._guard:
            inside.set()
            done.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait(10)
    for call in (lambda: store.answer(line), lambda: store.answer_all([line]), store.commit):
        with pytest.raises(ThreadError, match="belongs to one thread"):
            call()
    done.set()
    thread.join()
    assert store.answer(line)["seq"] == 4


def test_a_disk_that_is_full_answers_nothing_that_is_not_kept(alone: VARNNRegressor, tmp_path: Path) -> None:
    path = tmp_path / "s"
    lines = lines_of(200)
    store = Store(alone, path)
    journal = store._journal
    assert isinstance(journal, Journal)
    journal._database.execute("PRAGMA max_page_count = 40")  # SQLite's own word for a full disk
    kept: list[Any] = []
    with pytest.raises(OutputError, match="disk is full"):
        for first in range(0, len(lines), 10):
            some = [store.answer(line) for line in lines[first : first + 10]]
            store.commit()
            kept += some
    assert 10 <= len(kept) < len(lines)
    with Store(alone, crashed(path, "copy")) as again, Store(alone, tmp_path / "whole") as whole:
        assert kept + answered(again, lines[len(kept) :]) == answered(whole, lines)
    with pytest.raises(OutputError, match="disk is full"):
        store.close()


def test_watching_gives_events_and_goes_on_watching(alone: VARNNRegressor, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(600, 2))
    y = x[:, 0] + random.normal(size=600) / 10 * np.where(np.arange(600) < 400, 1, 8)
    lines = [{"x": one.tolist(), "y": float(label)} for one, label in zip(x, y, strict=True)]
    with Store(alone, tmp_path / "whole", watch={}) as store:
        whole = answered(store, lines, 50)
    events = [event for one in whole for event in one.get("events", [])]
    assert any(event["kind"] == "variance change" and 395 <= event["row"] <= 420 for event in events)
    with Store(alone, tmp_path / "parts", watch={}) as store:
        first = answered(store, lines[:380], 50)
    with Store(alone, tmp_path / "parts", watch={}) as store:
        assert first + answered(store, lines[380:], 50) == whole
    with Store(alone, tmp_path / "none") as store:
        assert not any("events" in one for one in answered(store, lines, 50))


@pytest.mark.parametrize("context", ["series", "window"])
def test_series_share_what_they_can(context: Any) -> None:
    """The model's numbers are there once, so that a thousand series cost their states."""
    alone = VARNNRegressor(details=Details(context=context), **SMALL).fit(panel_of())
    streams = Streams(alone)
    one, other = streams.begin(), streams.begin()
    assert one._step.model is other._step.model is alone.fitted_.step
    assert one.guard is other.guard is streams.guard
    x = np.random.default_rng(0).normal(size=(30, 2, 2))
    apart = Stream(alone), Stream(alone)
    for row in x:  # both asked before either is told: what is shared holds nothing
        assert [live.predict(row[index]) for index, live in enumerate((one, other))] == [
            live.predict(row[index]) for index, live in enumerate(apart)
        ]
        assert [live.observe(row[0, 1]) for live in (one, other)] == [
            live.observe(row[0, 1]) for live in apart
        ]


@pytest.mark.parametrize("kind", ["alone", "linked"])
def test_streams_are_copied_together(kind: str, request: pytest.FixtureRequest) -> None:
    store = Store(request.getfixturevalue(kind))
    answered(store, lines_of(10))
    once = copy.deepcopy(store.streams)
    assert once is not store.streams
    assert once.snapshot() == store.streams.snapshot()
    name = json.dumps("a")
    assert once[name].predict([0.5, 0.5]) == store.streams[name].predict([0.5, 0.5])


@pytest.mark.parametrize("n_series", [None, 2])
def test_two_threads_in_one_stream_are_told(alone: VARNNRegressor, n_series: int | None) -> None:
    live = Stream(alone, n_series)
    x = np.zeros(2) if n_series is None else np.zeros((n_series, 2))
    y = 0.0 if n_series is None else np.zeros(n_series)
    live.predict(x)
    inside, done = threading.Event(), threading.Event()

    def hold() -> None:
        with live.guard:
            inside.set()
            done.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait(10)
    with pytest.raises(ThreadError, match="belongs to one thread"):
        live.predict(x)
    with pytest.raises(ThreadError, match="belongs to one thread"):
        live.observe(y)
    with pytest.raises(ThreadError, match="belongs to one thread"):
        live.snapshot()
    done.set()
    thread.join()
    assert np.isfinite(live.observe(y)).all()


def test_a_link_to_a_file_in_use_is_refused_and_leaves_nothing(alone: VARNNRegressor, tmp_path: Path) -> None:
    with Store(alone, tmp_path / "live"):
        (tmp_path / "link").symlink_to(tmp_path / "live")
        with pytest.raises(OutputError, match="in use by process"):
            Store(alone, tmp_path / "link")
    assert not (tmp_path / "link-lock").exists()


def test_what_is_no_regular_file_is_refused_unread(alone: VARNNRegressor, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OutputError, match="not a regular file"):
        Store(alone, tmp_path / "pipe")
    (tmp_path / "table.csv").write_text("a,b")
    with pytest.raises(ModelFileError):
        Store(alone, tmp_path / "table.csv")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["pipe", "table.csv"]


@pytest.mark.parametrize(("table", "column"), [("journal", "message"), ("answers", "answer")])
def test_a_letter_that_was_changed_is_noticed(
    table: str, column: str, alone: VARNNRegressor, tmp_path: Path
) -> None:
    line = {"series": "a", "x": [0.123456, 0.2], "y": 0.3, "seq": 1}
    with Store(alone, tmp_path / "live") as store:
        store.answer(line)
        store.commit()
        shutil.copytree(tmp_path, tmp_path.with_name(f"{tmp_path.name} copy"))  # before the state is kept
    copy = tmp_path.with_name(f"{tmp_path.name} copy") / "live"
    database = sqlite3.connect(copy)
    with database:
        database.execute(f"UPDATE {table} SET {column} = replace({column}, '.', '.9')")
    database.close()
    with Store(alone, copy) as again, pytest.raises(ModelFileError, match="damaged"):
        again.answer(line if table == "answers" else {"series": "a", "x": [0.1, 0.2]})


def test_a_misspelt_field_is_named_and_others_are_no_matter(store: Store) -> None:
    said = store.answer({"series": "a", "x": [0.1, 0.2], "Y": 1.0})
    assert said == {"series": "a", "error": "a message has no field 'Y'. Did you mean 'y'?"}
    assert "prediction" in store.answer({"series": "a", "x": [0.1, 0.2], "sensor": 7})


def test_a_year_that_was_mistyped_does_not_lock_a_series(store: Store) -> None:
    line = {"series": "a", "x": [0.1, 0.2], "y": 1.0}
    store.answer(line | {"time": "2026-02-01T10:00"})
    assert "within ten years" in store.answer(line | {"time": "3000-02-01T11:00"})["error"]
    assert "prediction" in store.answer(line | {"time": "2026-02-01T11:00"})


def test_answers_of_a_group_are_found_by_number_and_by_key(alone: VARNNRegressor, tmp_path: Path) -> None:
    lines = [{"series": name, "x": [0.1, row / 9], "y": row / 5} for row in range(40) for name in NAMES]
    for index in range(0, len(lines), 7):
        lines[index]["key"] = f"k{index}"
    path = tmp_path / "s"
    with Store(alone, path, answers=20) as store:
        found = answered(store, lines, 25)
    with Store(alone, path, answers=20) as store:
        for index, (line, one) in enumerate(zip(lines, found, strict=True)):
            again = store.answer({"series": line["series"], "y": None, "seq": one["seq"]})
            if one["seq"] > 20:  # the last twenty, at least
                assert again == one
                if "key" in line:
                    assert store.answer({"series": line["series"], "y": None, "key": f"k{index}"}) == one
            else:
                assert again == one or "no longer kept" in again["error"]
        assert "no longer kept" in store.answer({"series": "a", "y": None, "seq": 1})["error"]
        assert [store.answer({"series": name, "x": [0.1, 0.2]})["seq"] for name in NAMES] == [41] * 3


def test_what_is_nested_deep_is_taken_and_done_again(alone: VARNNRegressor, tmp_path: Path) -> None:
    """It is of no use, and reading it again must not need more calls than there are."""
    deep: Any = 1
    for _ in range(900):
        deep = [deep]
    line = {"series": "a", "x": [0.1, 0.2], "y": 0.3, "other": deep}

    def called(depth: int, answer: Any) -> Any:
        return answer() if depth == 0 else called(depth - 1, answer)

    store = Store(alone, tmp_path / "s")
    text = json.dumps(line)
    found = [store.answer(line, text), called(60, lambda: store.answer(line)), *store.answer_all([line])]
    assert [one["seq"] for one in found] == [1, 2, 3]
    store.commit()
    with Store(alone, crashed(tmp_path / "s", "copy")) as again:
        assert called(60, lambda: again.answer({"series": "a", "x": [0.1, 0.2]}))["seq"] == 4
    store.close()


def test_a_text_of_several_lines_is_kept_as_one_message(alone: VARNNRegressor, tmp_path: Path) -> None:
    lines = lines_of(5)
    store = Store(alone, tmp_path / "s")
    for line in lines:
        store.answer(line, json.dumps(line, indent=1))
    store.commit()
    with Store(alone, crashed(tmp_path / "s", "copy")) as again:
        coming = {"series": "a", "x": [0.5, 0.5]}
        assert again.answer(coming) == store.answer(coming)
    store.close()


def test_what_could_not_be_written_is_written_with_the_next_commit(
    alone: VARNNRegressor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A state that was due with the commit that failed covers no message after it."""
    random, reference = np.random.default_rng(5), alone.stream()
    store = Store(alone, tmp_path / "live")

    def send(count: int) -> None:
        for x in random.normal(size=(count, 2)).tolist():
            store.answer({"series": "a", "x": x, "y": x[0]})
            reference.predict(x)
            reference.observe(x[0])

    send(EVERY - 10)
    store.commit()
    send(10)
    journal: Any = store._journal

    def full(_: Any) -> None:
        raise OutputError("no room is left. Make room.")

    with monkeypatch.context() as patched, pytest.raises(OutputError):
        patched.setattr(journal, "write", full)
        store.commit()
    send(20)
    store.commit()
    journal.close()  # as if it were killed here
    with Store(alone, tmp_path / "live") as again:
        found = again.answer({"series": "a", "x": [0.1, 0.2]})
    assert found["prediction"] == reference.predict([0.1, 0.2])


def test_a_name_as_long_as_a_book_is_not_kept_in_mind(alone: VARNNRegressor) -> None:
    before = messages._meant.cache_info().currsize
    with Store(alone) as store:
        answer = store.answer({"series": "a", "x": [0.1, 0.2], "y" * 10_000: 1.0})
    assert "prediction" in answer and messages._meant.cache_info().currsize == before
