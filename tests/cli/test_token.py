"""``varnn token``: tokens made, listed, revoked and put into links, as a person meets it."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from varnn.cli.app import main
from varnn.service.tokens import Tokens

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Give a function that runs the command in this process and gives its exit code, output and words."""

    def once(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["varnn", "token", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        out, error = capfd.readouterr()
        assert isinstance(left.value.code, int)
        return left.value.code, out, error

    return once


def test_a_token_is_printed_alone_and_once(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "house.service"  # not there yet: tokens may be made before the first start
    code, out, error = run("make", "heat pump", "--scope", "write", "--days", "90", "--data", folder)
    assert code == 0
    tokens = Tokens(folder / "tokens.json")
    found = tokens.find(out.strip())
    assert found is not None and (found.name, found.scope) == ("heat pump", "write")
    assert found.expires is not None and found.expires - found.made == 90 * 86_400
    assert "only time" in error and out.strip() not in error
    code, out, _ = run("list", "--data", folder)
    assert code == 0
    assert "heat pump" in out and "active" in out and found.id in out and found.sha256 not in out


def test_a_revoked_token_is_listed_as_such(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    _, text, _ = run("make", "a", "--scope", "admin", "--token-file", file)
    tokens = Tokens(file)
    assert tokens.scope_of(text.strip()) == "admin"
    code, out, _ = run("revoke", "a", "--token-file", file)
    assert (code, out) == (0, f"a ({text.split('_')[1]}) is revoked.\n")
    assert tokens.scope_of(text.strip()) is None
    assert "revoked" in run("list", "--token-file", file)[1]
    code, out, error = run("revoke", "a", "--token-file", file)
    assert (code, out) == (2, "") and "could be revoked" in error


def test_a_link_holds_a_token_that_only_reads(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("link", "wall", "--url", "https://house.example.org/", "--data", tmp_path)
    assert code == 0
    address, _, text = out.strip().partition("?link=")
    assert address == "https://house.example.org/"
    assert Tokens(tmp_path / "tokens.json").scope_of(text) == "read"
    for url in ("house.example.org", "ftp://x", "http://", "http://x/path", "http://x?q=1", "http://x#a"):
        code, out, error = run("link", "other", "--url", url, "--data", tmp_path)
        assert (code, out) == (2, "") and "--url must be" in error
    assert len(Tokens(tmp_path / "tokens.json").list()) == 1


def test_all_of_it_as_json(run: Run, tmp_path: Path) -> None:
    where = ("--data", tmp_path, "--json")
    made = json.loads(run("make", "a", "--scope", "read", *where)[1])
    assert made.keys() == {"token", "id", "name", "scope", "made", "expires", "revoked", "file"}
    link = json.loads(run("link", "b", "--url", "http://x:1", "--days", "0.5", *where)[1])
    assert link["link"] == f"http://x:1/?link={link['token']}" and link["scope"] == "read"
    assert json.loads(run("revoke", made["id"], *where)[1])["revoked"] is not None
    listed = json.loads(run("list", *where)[1])
    assert [(one["name"], one["status"]) for one in listed] == [("a", "revoked"), ("b", "active")]
    assert not any("sha256" in one or "token" in one for one in listed)


def test_bad_use_is_one_line(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    file.write_text("{")
    for arguments, said in (
        (["make", "a", "--scope", "root", "--data", tmp_path / "new"], "scope must be one of"),
        (["make", "a", "--scope", "read"], "by either --data"),
        (["list"], "by either --data"),
        (["list", "--data", tmp_path, "--token-file", file], "by either --data"),
        (["list", "--data", tmp_path / "nowhere"], "no file of tokens"),
        (["revoke", "a", "--token-file", tmp_path / "nowhere.json"], "no file of tokens"),
        (["list", "--data", tmp_path], "must be readable and whole"),
        (["make", "a", "--scope", "read", "--data", tmp_path], "must be readable and whole"),
        (["make", "a", "--scope", "read", "--data", tmp_path / "no" / "folder"], "cannot be made"),
        (["make", "a", "--scope", "read", "--token-file", tmp_path / "no" / "f.json"], "does not exist"),
    ):
        code, out, error = run(*arguments)
        assert (code, out) == (2, ""), arguments
        assert said in error and error.count("\n") == 1
