"""A service that is killed loses nothing, counts nothing twice, and goes on to the last bit."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from benchmarks.robustness.durability import fitted
from benchmarks.service.kills import CHALLENGER, CHAMPION, Killed, _count, by_verb, killed
from benchmarks.service.script import Script, Sent
from benchmarks.service.whole_run import kept_in, said_without_kills
from varnn.service.live_stream import StreamSettings


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Files of a champion and a challenger."""
    folder = tmp_path_factory.mktemp("models")
    for name, kind in ((CHAMPION, "default"), (CHALLENGER, "RM")):
        fitted(kind, 3).save(folder / f"{name}.varnn")
    return folder / f"{CHAMPION}.varnn", folder / f"{CHALLENGER}.varnn"


def test_nothing_is_lost_doubled_or_different_after_kills(models: tuple[Path, Path], tmp_path: Path) -> None:
    found = killed(models, tmp_path, kills=5, clients=3, series=3, wanted=120, seed=7)
    assert found.is_sound, found
    assert found.kills == 5
    assert found.messages > 100
    assert found.answers > found.messages  # all were sent again


@pytest.fixture(scope="module")
def whole(models: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Script]]:
    """The state file of a run without kills, and what was said in it."""
    folder = tmp_path_factory.mktemp("whole")
    scripts = [Script(f"s{one}", 3, timed=one > 0) for one in range(2)]
    sent = [[next(script) for _ in range(60)] for script in scripts]
    said_without_kills(*models, folder / "whole.service", sent, StreamSettings())
    return folder / "whole.service" / "streams" / f"{CHAMPION}.state", scripts


@pytest.mark.parametrize(
    ("change", "lost", "doubled"),
    [
        ("UPDATE history SET y = y + 1 WHERE y IS NOT NULL AND series = 1 AND row = (SELECT min(row) FROM "
         "history WHERE y IS NOT NULL AND series = 1)", 1, 0),
        ("DELETE FROM history WHERE series = 2 AND row = 0", 1, 0),
        ("INSERT INTO history SELECT series, 1000, at, time, 1.0, prediction, lower, upper FROM history "
         "WHERE series = 1 AND row = 0", 1, 1),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_history_is_counted(
    whole: tuple[Path, list[Script]], tmp_path: Path, change: str, lost: int, doubled: int
) -> None:
    path, scripts = whole
    right, wrong = Killed(), Killed()
    _count(kept_in(path), scripts, right)
    assert right == Killed()
    copy = tmp_path / "copy.state"
    copy.write_bytes(path.read_bytes())
    with closing(sqlite3.connect(copy)) as database, database:
        database.execute(change)
    _count(kept_in(copy), scripts, wrong)
    # A row that is gone takes its label with it, where it had one.
    assert (lost <= wrong.lost <= 2 * lost, wrong.doubled) == (True, doubled)


@pytest.mark.parametrize("table", ["series", "history", "events", "summaries", "challengers", "challenges"])
def test_what_is_kept_otherwise_is_seen(whole: tuple[Path, list[Script]], tmp_path: Path, table: str) -> None:
    changes = {
        "series": "UPDATE series SET seq = seq + 1 WHERE id = 1",
        "history": "UPDATE history SET lower = lower - 1e-12 WHERE series = 2 AND row = 3",
        "events": "INSERT INTO events VALUES (NULL, 1, 5, 0.0, 'level shift', 3, 1.0)",
        "summaries": "UPDATE summaries SET numbers = zeroblob(length(numbers))",
        "challengers": "UPDATE challengers SET score = NULL WHERE series = 1",
        "challenges": "DELETE FROM challenges WHERE series = 2 AND row = 1",
    }
    path, _ = whole
    copy = tmp_path / "copy.state"
    copy.write_bytes(path.read_bytes())
    with closing(sqlite3.connect(copy)) as database, database:
        database.execute(changes[table])
    mine, other = kept_in(path), kept_in(copy)
    assert [name for name in mine._fields if getattr(mine, name) != getattr(other, name)] == [table]


def test_a_script_says_everything_there_is_to_say() -> None:
    script = Script("north", 2)
    sent = [next(script) for _ in range(400)]
    ways: dict[str, Callable[[Sent], bool]] = {
        "step": lambda one: "last_y" in one.message,
        "whole row": lambda one: {"x", "y"} <= one.message.keys() and one.is_good,
        "label of the open row": lambda one: "x" not in one.message and "for" not in one.message,
        "late by key": lambda one: isinstance(one.message.get("for"), str),
        "late by number": lambda one: isinstance(one.message.get("for"), int),
        "missing label": lambda one: "y" in one.message and one.message["y"] is None,
        "refused": lambda one: not one.is_good,
    }
    for name, is_one in ways.items():
        assert any(map(is_one, sent)), name
    assert len({one.message["key"] for one in sent}) == 400
    again = Script("north", 2)
    assert [next(again) for _ in range(400)] == sent
    assert len(script.labels) < len(script.times)  # some labels never come
    assert np.isfinite([label for label in script.labels.values() if label is not None]).all()


def test_requests_keep_the_order_of_each_series() -> None:
    scripts = [Script(f"s{one}", 2) for one in range(3)]
    sent = [next(script) for _ in range(50) for script in scripts]
    together = by_verb(sent)
    assert len(together) < len(sent) / 2
    assert all(len({one.verb for one in some}) == 1 for some in together)
    for name in ("s0", "s1", "s2"):
        in_order = [json.loads(one.line)["key"] for one in sent if one.message["series"] == name]
        assert [
            one.message["key"] for some in together for one in some if one.message["series"] == name
        ] == in_order
