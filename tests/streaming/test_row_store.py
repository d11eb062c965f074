"""What a store of numbered rows promises: late labels, exactly once, back from disk to the last bit."""

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from varnn import Details, Panel, VARNNRegressor
from varnn.errors import ConfigError, DataError, ModelFileError, OutputError
from varnn.streaming.companion import Companion
from varnn.streaming.kept import Known
from varnn.streaming.row_store import RowStore
from varnn.streaming.rows import Taken

SMALL: Any = {"epochs": 1, "hidden_size": 6, "ensemble": 2, "window": 4, "device": "cpu"}
NAMES = ("a", "b", "c")
LEVEL = 0.9


@pytest.fixture(scope="module")
def model() -> VARNNRegressor:
    random = np.random.default_rng(0)
    X = random.normal(size=(360, 2))
    y = X[:, 0] + np.cumsum(random.normal(size=360)) / 5
    return VARNNRegressor(details=Details(forgetting=0.99), **SMALL).fit(X, y)


def messages_of(rows: int, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Make messages of three series: labels in time, beside the next x, late by key, row or seq, or never."""
    random = np.random.default_rng(seed)
    count = {name: 0 for name in NAMES}
    waiting: dict[str, list[str]] = {name: [] for name in NAMES}
    for number in range(rows):
        name = str(random.choice(NAMES))
        message: dict[str, Any] = {"series": name, "x": random.normal(size=2).tolist(), "key": f"x{number}"}
        label = float(random.normal())
        kind = random.choice(["whole", "last", "late", "wait", "missing"])
        if kind == "whole":
            message["y"] = label
        elif kind == "last" and count[name]:
            message["last_y"] = label
        count[name] = int(kind != "whole")
        yield message
        if kind in ("late", "wait"):
            waiting[name].append(f"x{number}")
        if kind == "missing":
            yield {"series": name, "y": None, "key": f"m{number}"}
            count[name] = 0
        if kind == "late" and waiting[name]:
            which = waiting[name].pop(int(random.integers(len(waiting[name]))))
            yield {"series": name, "y": label, "for": which, "key": f"l{number}"}
            count[name] = int(which != f"x{number}" and count[name])


def opened(model: VARNNRegressor, path: Path, **settings: Any) -> RowStore:
    return RowStore(model, path, late=5, level=LEVEL, watch={"coverage": LEVEL, "warm_up": 30}, **settings)


def copied(path: Path, place: Path) -> Path:
    """Copy a file that is in use, with what lies beside it: what a killed process leaves."""
    place.mkdir(parents=True)
    for one in path.parent.glob(path.name + "*"):
        if not one.name.endswith("-lock"):
            shutil.copy(one, place / one.name)
    return place / path.name


@pytest.mark.parametrize("in_memory", [1, 1000])
def test_killed_anywhere_it_goes_on_to_the_last_bit(
    model: VARNNRegressor, tmp_path: Path, in_memory: int
) -> None:
    messages = list(messages_of(400))
    with opened(model, tmp_path / "whole.state") as store:
        expected = []
        for message in messages:
            expected.append(store.answer(message))
            store.commit()
    assert sum("error" not in answer for answer in expected) > 300
    path = tmp_path / "live.state"
    store = opened(model, path, in_memory=in_memory)
    random = np.random.default_rng(1)
    number = 0
    for message, wanted in zip(messages, expected, strict=True):
        assert store.answer(message) == wanted
        if random.random() < 0.7:
            store.commit()
            if random.random() < 0.05:
                number += 1
                path = copied(path, tmp_path / str(number))
                store._journal.close()  # type: ignore[union-attr]  # the one that is killed; not `close`
                store = opened(model, path, in_memory=in_memory)
    assert number > 5
    store.close()


def test_what_is_sent_again_changes_nothing(model: VARNNRegressor, tmp_path: Path) -> None:
    with opened(model, tmp_path / "live.state") as store:
        first = [store.answer(message) for message in messages_of(60)]
        store.commit()
        good = [(one, told) for one, told in zip(messages_of(60), first, strict=True) if "error" not in told]
        assert [store.answer(message) for message, _ in good] == [told for _, told in good]


def test_a_step_closes_the_row_before_with_its_label(model: VARNNRegressor, tmp_path: Path) -> None:
    live = model.stream()
    with opened(model, tmp_path / "live.state") as store:
        assert store.answer({"x": [0.1, 0.2]})["prediction"] == live.predict([0.1, 0.2])
        answer = store.answer({"x": [0.3, 0.4], "last_y": 0.7})
        assert answer["innovation"] == live.observe(0.7)
        assert (answer["row"], answer["prediction"]) == (1, live.predict([0.3, 0.4]))


def test_a_step_whose_x_is_refused_leaves_its_label_out(model: VARNNRegressor, tmp_path: Path) -> None:
    with opened(model, tmp_path / "live.state") as store:
        store.answer({"x": [0.1, 0.2], "time": "2026-01-01T00:00"})
        for wrong in (
            {"x": [1.0]},
            {"x": [1.0, 2.0], "time": "2025-01-01"},
            {"x": [1.0, 2.0], "interval": 7},
        ):
            assert "error" in store.answer({**wrong, "last_y": 5.0})
        assert store.answer({"y": 0.3})["row"] == 0


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"y": 1.0}, "Open one with x first"),
        ({"y": 1.0, "of": "k"}, "'of'"),
        ({"x": [0.1, 0.2], "interval": 1.5}, "got 1.5"),
        ({"x": [0.1, 0.2], "last_y": 1.0}, "none is"),
        ({"last_y": 1.0, "y": 2.0}, "last_y comes with x"),
        ({"y": 1.0, "for": "unknown"}, "none that is kept"),
        ({"y": 1.0, "for": 99}, "none that is kept"),
        ({"y": 1.0, "for": ["a"]}, "must be a text"),
        ({"y": 1.0, "row": 5}, "row"),
        ({"y": 1.0, "row": -1}, "whole number from 0"),
        ({"x": [0.1, 0.2], "row": 0}, "opens the next row"),
        ({"x": [0.1, 0.2], "last_y": "one"}, "last_y must be a number"),
        ({"x": [0.1, 0.2], "last_Y": 1.0}, "Did you mean 'last_y'"),
    ],
)
def test_what_contradicts_itself_is_refused(
    model: VARNNRegressor, tmp_path: Path, message: dict[str, Any], words: str
) -> None:
    with opened(model, tmp_path / "live.state") as store:
        assert words in store.answer(message)["error"]
        assert store.n_series == 0


def test_a_label_is_not_for_a_label(model: VARNNRegressor, tmp_path: Path) -> None:
    with opened(model, tmp_path / "live.state") as store:
        store.answer({"x": [0.1, 0.2]})
        store.answer({"y": 0.1, "key": "label"})
        assert "brought a label" in store.answer({"y": 0.1, "for": "label"})["error"]


def test_peeking_changes_nothing(model: VARNNRegressor, tmp_path: Path) -> None:
    with opened(model, tmp_path / "one.state") as one, opened(model, tmp_path / "two.state") as two:
        for number, message in enumerate(messages_of(80)):
            peek = {"series": message["series"], "x": [number / 50, -0.5], "interval": [0.5, 0.8]}
            told = one.peek(peek)
            assert len(told["lower"]) == 2 and "row" not in told
            assert one.answer(message) == two.answer(message)
        assert "error" in one.peek({"series": "a"}) and "error" in one.peek({"x": [1.0]})
        assert one.n_series == two.n_series


def test_what_could_not_be_written_was_never_said(
    model: VARNNRegressor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = list(messages_of(120))
    with opened(model, tmp_path / "whole.state") as whole:
        expected = [whole.answer(message) for message in messages]
    with opened(model, tmp_path / "live.state") as store:
        assert [store.answer(one) for one in messages[:60]] == expected[:60]
        store.commit()
        database = store._journal.database  # type: ignore[union-attr]  # a store with a file has one
        (pages,) = database.execute("PRAGMA page_count").fetchone()
        database.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(OutputError, match="full"):
            for message in messages[60:]:
                store.answer(message)
                store.commit()
        store.give_up()
        database.execute("PRAGMA max_page_count = 1000000")
        again = [store.answer(one) for one in messages]
        store.commit()
        assert [one for one in again if "error" not in one] == [one for one in expected if "error" not in one]


def test_a_series_is_forgotten_and_begins_anew(model: VARNNRegressor, tmp_path: Path) -> None:
    path = tmp_path / "live.state"
    with opened(model, path) as store:
        first = store.answer({"series": "a", "x": [0.1, 0.2], "y": 1.0, "key": "k"})
        store.answer({"series": "b", "x": [0.1, 0.2], "y": 1.0})
        assert store.forget('"a"') and not store.forget('"a"')
        assert store.n_series == 1
        store.answer({"series": "c", "x": [0.1, 0.2], "y": 1.0})
        assert store.answer({"series": "a", "x": [0.1, 0.2], "y": 1.0, "key": "k"}) == first
        store.commit()
    with opened(model, path) as store:
        assert store.n_series == 3


def test_a_series_goes_on_from_a_snapshot(model: VARNNRegressor, tmp_path: Path) -> None:
    path = tmp_path / "live.state"
    row = {"series": "a", "x": [0.1, 0.2], "y": 1.0}
    with opened(model, path) as store:
        store.answer(row)
        found = store.stream('"a"')
        assert found is not None and store.stream('"z"') is None
        state = found.snapshot()
        second = store.answer(row)
        store.put('"a"', state)
        store.commit()
        again = store.answer(row)
        assert (again["row"], again["prediction"]) == (second["row"], second["prediction"])
        with pytest.raises(ModelFileError):
            store.put('"a"', b"no snapshot")
        third = store.answer(row)
    with opened(model, path) as store:
        assert store.answer({**row, "seq": third["seq"]}) == third
        with opened(model, tmp_path / "other.state") as other:
            other.put('"new"', state)
            other.commit()
            assert other.answer({**row, "series": "new"})["prediction"] == second["prediction"]


def test_a_file_of_a_plain_store_goes_on_with_numbered_rows(model: VARNNRegressor, tmp_path: Path) -> None:
    from varnn.streaming.store import Store

    path, row = tmp_path / "live.state", {"series": "a", "x": [0.1, 0.2], "y": 1.0}
    with Store(model, path) as store:
        for _ in range(40):
            last = store.answer(row)
    with opened(model, path) as numbered:
        answer = numbered.answer(row)
    assert (answer["row"], answer["seq"]) == (40, last["seq"] + 1)


def test_linked_series_are_refused(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(120, 2))
    panel = Panel.from_arrays(X, X[:, 0], series=np.repeat(["a", "b"], 60))
    linked = VARNNRegressor(peers=True, **SMALL).fit(panel)
    with pytest.raises(ConfigError, match="without peers"):
        RowStore(linked, tmp_path / "live.state")


class _Heard(Companion):
    """Writes down what it hears, and fails when it is told to."""

    def __init__(self) -> None:
        self.heard: list[Taken] = []
        self.fails = False

    def open(self, database: sqlite3.Connection) -> None:
        database.execute("CREATE TABLE IF NOT EXISTS beside (row INTEGER)")

    def took(self, name: str, known: Known, message: Any, taken: Taken) -> None:
        self.heard.append(taken)

    def write(self, database: sqlite3.Connection, states: Any) -> None:
        database.executemany("INSERT INTO beside VALUES (?)", [(one.opened,) for one in self.heard])
        if self.fails:
            raise DataError("no")


def test_a_companion_writes_in_the_same_transaction(model: VARNNRegressor, tmp_path: Path) -> None:
    heard, path = _Heard(), tmp_path / "live.state"
    store = opened(model, path, companion=heard)
    store.answer({"x": [0.1, 0.2], "y": 1.0})
    heard.fails = True
    with pytest.raises(DataError, match="no"):
        store.commit()
    store.give_up()
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT count(*) FROM beside").fetchone() == (0,)
        assert database.execute("SELECT count(*) FROM series").fetchone() == (0,)
    heard.fails, heard.heard = False, []
    store.answer({"x": [0.1, 0.2], "last_y": None})
    store.answer({"x": [0.1, 0.2], "y": 1.0})
    store.commit()
    assert [one.opened for one in heard.heard] == [0]
    assert heard.heard[0].labelled == 0 and heard.heard[0].lower is not None
    store.close()


def test_a_file_goes_on_with_another_limit_of_lateness(model: VARNNRegressor, tmp_path: Path) -> None:
    path, wide = tmp_path / "live.state", tmp_path / "wide.state"
    told = []
    for place in (path, wide):
        with RowStore(model, place, late=20, level=LEVEL) as store:
            for number in range(15):
                store.answer({"x": [number / 15, 0.5], "key": str(number)})
            told.append(store.answer({"y": 0.5, "for": "2"}))
            store.commit()
            copy = copied(place, tmp_path / f"{place.stem} copy")
            store._journal.close()  # type: ignore[union-attr]  # as if it were killed here
            store._journal = None
        with RowStore(model, copy, late=3 if place == path else 20, level=LEVEL) as store:
            answer = store.answer({"x": [0.3, 0.2]})
            told.append(answer)
            late = store.answer({"y": 0.1, "for": "5"})
            assert ("error" in late) == (place == path)
    assert told[:2] == told[2:]


def test_labels_must_be_let_come_late(model: VARNNRegressor, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="1 row at least"):
        RowStore(model, tmp_path / "live.state", late=0)


def test_what_was_answered_after_a_snapshot_is_forgotten_with_it(
    model: VARNNRegressor, tmp_path: Path
) -> None:
    with opened(model, tmp_path / "live.state") as store:
        for number in range(5):
            store.answer({"x": [0.1, number / 5], "y": 1.0, "key": f"k{number}"})
        found = store.stream("null")
        assert found is not None
        state = found.snapshot()
        after = store.answer({"x": [0.7, 0.2], "y": 1.0, "key": "k5"})
        store.put("null", state)
        store.commit()
        again = store.answer({"x": [0.7, 0.2], "y": 1.0, "key": "k5"})
        assert (again["row"], again["prediction"]) == (after["row"], after["prediction"])
        assert again["seq"] == after["seq"] + 2 and "error" in store.answer({"y": 9.0, "for": "k4"})


def test_a_damaged_series_can_be_put_anew_or_forgotten(model: VARNNRegressor, tmp_path: Path) -> None:
    path = tmp_path / "live.state"
    with opened(model, path) as store:
        for name in ("a", "b"):
            for _ in range(40):
                store.answer({"series": name, "x": [0.1, 0.2], "y": 1.0})
        found = store.stream('"a"')
        assert found is not None
        state = found.snapshot()
    with sqlite3.connect(path) as database:
        database.execute("UPDATE states SET state = x'00'")
    with opened(model, path) as store:
        for name in ("a", "b"):
            with pytest.raises(ModelFileError):
                store.answer({"series": name, "x": [0.1, 0.2], "y": 1.0})
        store.put('"a"', state)
        assert store.forget('"b"')
        store.commit()
        assert store.answer({"series": "a", "x": [0.1, 0.2]})["row"] == 40
        assert store.answer({"series": "b", "x": [0.1, 0.2]})["row"] == 0


def test_a_key_and_a_number_that_contradict(model: VARNNRegressor, tmp_path: Path) -> None:
    with opened(model, tmp_path / "live.state") as store:
        store.answer({"x": [0.1, 0.2], "y": 1.0, "key": "k", "seq": 1})
        assert "Give one of the two" in store.answer({"x": [0.1, 0.2], "key": "k", "seq": 2})["error"]
        assert store.answer({"x": [0.1, 0.2], "key": "l", "seq": 2})["row"] == 1


def test_a_label_finds_its_row_by_time(model: VARNNRegressor, tmp_path: Path) -> None:
    with opened(model, tmp_path / "live.state") as store:
        for hour in range(4):
            store.answer({"x": [0.1, 0.2], "time": f"2026-01-01T{hour:02d}:00Z"})
        assert store.answer({"y": 0.5, "time": "2026-01-01T01:00+00:00"})["row"] == 1
        assert store.answer({"y": 0.5, "time": "2026-01-01T03:00"})["row"] == 3
        for wrong in ("2026-01-01T01:00", "2026-01-01T07:00"):
            assert "no row of time" in store.answer({"y": 0.5, "time": wrong})["error"]
        assert store.answer({"y": 0.5, "row": 0})["row"] == 0


def test_a_label_with_the_key_of_its_row_is_not_lost_without_a_word(
    model: VARNNRegressor, tmp_path: Path
) -> None:
    with opened(model, tmp_path / "live.state") as store:
        store.answer({"x": [0.1, 0.2], "key": "a"})
        assert "brought an x" in store.answer({"y": 0.5, "key": "a"})["error"]
        assert store.answer({"y": 0.5, "for": "a", "key": "b"})["row"] == 0
        assert "brought a label" in store.answer({"x": [0.1, 0.2], "key": "b"})["error"]


@pytest.mark.parametrize("y", [1e99, -1e99])
def test_a_wild_label_that_was_taken_can_be_read_again(
    model: VARNNRegressor, tmp_path: Path, y: float
) -> None:
    path = tmp_path / "live.state"
    with opened(model, path) as store:
        for row in range(120):
            store.answer({"x": [0.1, 0.2], "y": y if row == 60 else 5.0})
    with opened(model, path) as store:
        assert "prediction" in store.answer({"x": [0.1, 0.2]})
