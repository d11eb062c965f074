"""Tokens: what they allow and for how long, and files that lie, vanish or change under a running service."""

import json
import multiprocessing
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from varnn.errors import ConfigError, DataError, OutputError
from varnn.service.tokens import SCOPES, Tokens


class Clock:
    """A clock that is set by hand."""

    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tokens(tmp_path: Path, clock: Clock) -> Tokens:
    return Tokens(tmp_path / "tokens.json", clock=clock)


def test_a_token_allows_its_scope_and_its_secret_is_nowhere_kept(tokens: Tokens) -> None:
    assert not tokens.exist
    made = {scope: tokens.make(f"a {scope}", scope) for scope in SCOPES}
    assert {scope: tokens.scope_of(text) for scope, text in made.items()} == {one: one for one in SCOPES}
    assert tokens.exist
    for text in made.values():
        mark, name, secret = text.split("_", 2)
        assert mark == "varnn"
        assert len(secret) == 43  # 32 bytes, by 6 bits a letter
        written = tokens.path.read_text()
        assert name in written and secret not in written
    assert stat.S_IMODE(tokens.path.stat().st_mode) == 0o600


def test_a_file_that_was_open_to_others_is_closed_by_the_next_change(tokens: Tokens) -> None:
    tokens.make("a", "read")
    tokens.path.chmod(0o644)
    tokens.make("b", "read")
    assert stat.S_IMODE(tokens.path.stat().st_mode) == 0o600


def test_wrong_tokens_allow_nothing(tokens: Tokens) -> None:
    text = tokens.make("a", "admin")
    other = tokens.make("b", "read")
    _, name, secret = text.split("_", 2)
    wrong = [
        "",
        "_",
        "__",
        "varnn",
        "varnn_",
        f"varnn_{name}",
        f"varnn_{name}_",
        f"varnn_{name}_{secret[:-1]}",
        f"varnn_{name}_{secret}x",
        f"varnn_{name}_{secret.swapcase()}",
        f"varnn_{name}_{other.split('_', 2)[2]}",  # the secret of another
        f"varnn_000000000000_{secret}",
        f"other_{name}_{secret}",
        f"{name}_{secret}",
        text.upper(),
        text + "\n",
        "varnn_" + name + "_\ud800",
        "é" * 5000,
        next(one.sha256 for one in tokens.list()),
        f"varnn_{name}_{next(one.sha256 for one in tokens.list())}",
    ]
    assert [one for one in wrong if tokens.scope_of(one) is not None] == []
    assert tokens.scope_of(text) == "admin"


def test_an_expired_token_allows_nothing_and_its_name_is_free(tokens: Tokens, clock: Clock) -> None:
    text = tokens.make("a", "read", days=1)
    name = text.split("_")[1]
    clock.now += 86_399
    assert tokens.scope_of(text) == "read" and tokens.active(name) is not None
    clock.now += 1
    assert tokens.scope_of(text) is None and tokens.active(name) is None
    assert tokens.exist
    again = tokens.make("a", "write")
    assert tokens.scope_of(again) == "write"
    assert tokens.revoke("a").scope == "write"  # the one that could still be used
    assert [one.status(clock.now) for one in tokens.list()] == ["expired", "revoked"]


def test_a_revoked_token_allows_nothing_in_a_service_that_runs(tokens: Tokens, clock: Clock) -> None:
    first, second = tokens.make("a", "admin"), tokens.make("b", "read")
    running = Tokens(tokens.path, clock=clock)
    assert running.scope_of(first) == "admin"
    assert tokens.revoke("a").id == first.split("_")[1]
    assert running.scope_of(first) is None and running.active(first.split("_")[1]) is None
    assert running.scope_of(second) == "read"
    tokens.revoke(second.split("_")[1])  # by its id
    assert running.scope_of(second) is None
    assert running.exist and Tokens(tokens.path).exist  # all revoked is not the same as none made
    with pytest.raises(ConfigError, match=r"could be revoked\. There are none\."):
        tokens.revoke("a")


def test_tokens_made_while_a_service_runs_are_known_to_it(tokens: Tokens) -> None:
    running = Tokens(tokens.path)
    assert not running.exist
    text = tokens.make("a", "read")
    assert running.exist and running.scope_of(text) == "read"


def test_two_changes_within_a_tick_of_the_clock_are_both_seen(tokens: Tokens) -> None:
    text = tokens.make("a", "read")
    before = tokens.path.read_bytes()
    tokens.revoke("a")
    after = tokens.path.read_bytes()
    running = Tokens(tokens.path)
    # Of the same length and time: only the file is another.
    for content, scope in ((before.ljust(len(after)), "read"), (after, None)):
        draft = tokens.path.with_name("draft")
        draft.write_bytes(content)
        os.utime(draft, ns=(10**18, 10**18))
        draft.replace(tokens.path)
        assert running.scope_of(text) == scope


def test_a_file_that_vanishes_lets_nobody_in(tokens: Tokens) -> None:
    text = tokens.make("a", "admin")
    running = Tokens(tokens.path)
    assert running.scope_of(text) == "admin"
    kept = tokens.path.read_bytes()
    tokens.path.unlink()
    assert running.exist
    assert running.scope_of(text) is None and running.active(text.split("_")[1]) is None
    tokens.path.write_bytes(kept)
    assert running.scope_of(text) == "admin"


GOOD = {
    "id": "0123456789ab",
    "name": "a",
    "scope": "read",
    "sha256": "0" * 64,
    "made": "2026-11-16T10:00:00Z",
    "expires": None,
    "revoked": None,
}


def entry(**other: Any) -> str:
    return json.dumps({"version": 1, "tokens": [GOOD | other]})


DAMAGED = {
    "empty": "",
    "half": entry()[:-20],
    "not text": "\udcff",
    "a list": "[]",
    "null": "null",
    "nothing": "{}",
    "a newer version": entry().replace('"version": 1', '"version": 2'),
    "no tokens": '{"version": 1}',
    "tokens by name": '{"version": 1, "tokens": {}}',
    "a token that is none": '{"version": 1, "tokens": [null]}',
    "an id twice": json.dumps({"version": 1, "tokens": [GOOD, GOOD]}),
    "a field more": entry(more=1),
    "a field less": json.dumps({"version": 1, "tokens": [{k: v for k, v in GOOD.items() if k != "revoked"}]}),
    "an unknown scope": entry(scope="root"),
    "a scope of another kind": entry(scope=["admin"]),
    "a short hash": entry(sha256="0"),
    "a hash that is none": entry(sha256="g" * 64),
    "an id that is none": entry(id="x"),
    "no time": entry(made=None),
    "a time without a zone": entry(expires="2026-11-16T10:00:00"),
    "a time as a number": entry(expires=5),
    "revoked as a truth": entry(revoked=True),
    "deep": "[" * 100_000,
}


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_an_error_and_never_no_tokens(tokens: Tokens, text: str) -> None:
    token = tokens.make("a", "admin")
    running = Tokens(tokens.path)
    tokens.path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(DataError, match=r"must be readable and whole: .*nobody is let in"):
        Tokens(tokens.path)
    for _ in range(2):  # a second look does not make it better
        with pytest.raises(DataError, match="must be readable and whole"):
            running.scope_of(token)
    assert running.exist
    with pytest.raises(DataError, match="must be readable and whole"):
        tokens.make("b", "admin")
    assert tokens.path.read_bytes() == text.encode("utf-8", "surrogateescape")


def test_a_damaged_file_that_appears_does_not_mean_that_none_were_made(tokens: Tokens) -> None:
    running = Tokens(tokens.path)
    tokens.path.write_text("")
    with pytest.raises(DataError, match="nobody is let in"):
        bool(running.exist)


def test_a_good_file_by_hand_is_read(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    path.write_text(entry(expires="2999-01-01T00:00:00+01:00"))
    assert [one.name for one in Tokens(path).list()] == ["a"]


def test_what_is_no_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="must be readable and whole"):
        Tokens(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="must be readable and whole"):
        Tokens(tmp_path / "file" / "tokens.json")


def test_what_cannot_be_made_is_said(tokens: Tokens, tmp_path: Path) -> None:
    tokens.make("a", "read")
    with pytest.raises(ConfigError, match=r"scope must be one of .*got 'root'"):
        tokens.make("b", "root")
    with pytest.raises(ConfigError, match="a name of its own"):
        tokens.make("a", "read")
    for name in ("", " ", "a ", "a\nb", "x" * 64, "a/b", "\x1b[31m"):
        with pytest.raises(ConfigError, match="1 to 63 letters"):
            tokens.make(name, "read")
    for days in (0, -1, 36_501, float("nan"), float("inf")):
        with pytest.raises(ConfigError, match="days must be more than 0"):
            tokens.make("b", "read", days)
    with pytest.raises(ConfigError, match="Did you mean 'a'"):
        tokens.revoke("aa")
    with pytest.raises(OutputError, match="cannot be written"):
        Tokens(tmp_path / "nowhere" / "tokens.json").make("a", "read")
    assert [one.name for one in tokens.list()] == ["a"]


def _make_some(path: Path, who: int) -> None:
    for one in range(10):
        Tokens(path).make(f"{who} {one}", "read")
        Tokens(path).revoke(f"{who} {one}")


def test_processes_that_change_a_file_at_once_undo_nothing_of_each_other(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    spawn = multiprocessing.get_context("spawn")
    several = [spawn.Process(target=_make_some, args=(path, who)) for who in range(3)]
    for one in several:
        one.start()
    for one in several:
        one.join()
    tokens = Tokens(path).list()
    assert len(tokens) == 30
    assert all(one.revoked is not None for one in tokens)
