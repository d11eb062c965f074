"""Where the files of a data set are found, how they are checked, and what is kept of them."""

import hashlib
import os
import pickle
import shutil
import socket
import tempfile
import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from varnn import datasets
from varnn.cli.datasets import app
from varnn.data.files import user_cache
from varnn.datasets import _cache, store
from varnn.datasets._source import Source
from varnn.datasets.store import Members
from varnn.errors import ConfigError, DataError, OutputError

FILES = {"north.csv": b"t,y\n1,2\n" * 50, "south.csv": b"t,y\n3,4\n" * 50}
TINY = Source(
    name="tiny",
    url="https://publisher.invalid/files/tiny+data.zip",
    page="https://publisher.invalid/tiny",
    licence="CC0",
    citation="Nobody (2026).",
    rows=100,
    inputs=1,
    checksums={name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()},
    largest=400,
    megabytes=1,
    inner_archives=("inner.zip",),
)


def packed(files: dict[str, bytes], folder: str = "") -> bytes:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(folder + name, content)
    return buffer.getvalue()


def put(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder, with an empty cache and no data folder chosen."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(store.DIRECTORY_VARIABLE, raising=False)
    return tmp_path


def located() -> Members:
    members = store.locate(TINY)
    assert members is not None
    return members


def test_search_order(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(store.DIRECTORY_VARIABLE, str(home / "chosen"))
    assert store.locate(TINY) is None
    for place in ("cache/varnn", "data", "chosen"):  # last to first
        path = put(home / place / "tiny.zip", packed(FILES))
        assert located().place.resolve() == path


def test_cache_folder_follows_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    for ignored in ("", "relative/path"):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        for platform, expected in (("linux", ".cache"), ("darwin", "Library/Caches")):
            monkeypatch.setattr("sys.platform", platform)
            assert user_cache() == Path("/home/someone", expected, "varnn")
        monkeypatch.setattr("sys.platform", "win32")
        monkeypatch.setenv("LOCALAPPDATA", "/local")
        assert user_cache() == Path("/local/varnn")


def in_zip(place: Path) -> None:
    put(place / "tiny.zip", packed(FILES))


def under_the_publishers_name(place: Path) -> None:
    put(place / "tiny+data.zip", packed(FILES, folder="tiny-1.0/csv/"))


def in_a_zip_in_a_zip(place: Path) -> None:
    put(place / "tiny.zip", packed({"inner.zip": packed(FILES), "notes.txt": b"read me"}))


def inner_zip_alone(place: Path) -> None:
    put(place / "inner.zip", packed(FILES))


def unpacked(place: Path) -> None:
    for name, content in FILES.items():
        put(place / name, content)


def unpacked_in_different_depths(place: Path) -> None:
    put(place / "north.csv", FILES["north.csv"])
    put(place / "a" / "b" / "south.csv", FILES["south.csv"])


LAYOUTS: list[Callable[[Path], None]] = [
    in_zip,
    under_the_publishers_name,
    in_a_zip_in_a_zip,
    inner_zip_alone,
    unpacked,
    unpacked_in_different_depths,
]


@pytest.mark.parametrize("lay_out", LAYOUTS, ids=lambda one: one.__name__)
def test_files_are_read_from_any_layout(lay_out: Callable[[Path], None], home: Path) -> None:
    lay_out(home / "data")
    assert list(located().read(["south.csv", "north.csv"])) == [FILES["south.csv"], FILES["north.csv"]]
    assert located().verify() == 2


@pytest.mark.parametrize("lay_out", LAYOUTS, ids=lambda one: one.__name__)
def test_changed_file_is_refused(lay_out: Callable[[Path], None], home: Path) -> None:
    original, FILES["south.csv"] = FILES["south.csv"], b"t,y\n3,5\n"
    try:
        lay_out(home / "data")
    finally:
        FILES["south.csv"] = original
    assert next(located().read(["north.csv"])) == FILES["north.csv"]
    with pytest.raises(DataError, match=r"'south.csv' in .* must have SHA-256 \w{64}; it has \w{64}"):
        located().verify()


def test_zip_without_a_file_is_refused(home: Path) -> None:
    put(home / "data" / "tiny.zip", packed({"north.csv": FILES["north.csv"]}))
    with pytest.raises(DataError, match=r"must hold 'south.csv', and does not"):
        located().verify()


@settings(max_examples=60, deadline=None)
@given(position=st.integers(0, len(packed(FILES)) - 1), value=st.integers(0, 255), cut=st.booleans())
def test_damaged_zip_never_gives_wrong_bytes(position: int, value: int, cut: bool) -> None:
    content = bytearray(packed(FILES))
    content[position] = value
    with tempfile.TemporaryDirectory() as folder:
        path = put(Path(folder, "tiny.zip"), bytes(content[:position] if cut else content))
        try:
            assert list(Members(source=TINY, place=path).read(FILES)) == list(FILES.values())
        except DataError as error:
            assert "varnn datasets fetch tiny" in str(error)


def test_missing_data_says_where_to_put_them(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(home / "data" / "north.csv", FILES["north.csv"])
    with pytest.raises(DataError) as caught:
        store.obtain(TINY, download=False)
    message = str(caught.value)
    for part in (
        "'tiny' is not on this machine",
        "$VARNN_DATA_DIR (not set)",
        "'data' (only 1 of its 2 files)",
        f"'{home}/cache/varnn' (no such folder)",
        "varnn datasets fetch tiny",
        TINY.url,
        TINY.page,
        "as 'tiny.zip'",
    ):
        assert part in message
    assert "\n" not in message
    monkeypatch.setenv(store.DIRECTORY_VARIABLE, "/nowhere")
    with pytest.raises(DataError, match=r"in '/nowhere' \(no such folder\), 'data'"):
        store.obtain(TINY, download=False)


def test_missing_data_are_downloaded_once(home: Path) -> None:
    published = put(home / "publisher" / "tiny+data.zip", packed(FILES))
    source = replace(TINY, url=published.as_uri())
    members = store.obtain(source)
    assert members.place == home / "cache" / "varnn" / "tiny.zip"
    published.unlink()
    assert store.obtain(source).verify() == 2


def test_bad_download_is_refused(home: Path) -> None:
    published = put(home / "publisher" / "tiny.zip", packed({**FILES, "south.csv": b"other"}))
    with pytest.raises(
        DataError, match=r"'tiny' could not be fetched: .*removed: 'south.csv' in .*Looked for"
    ):
        store.obtain(replace(TINY, url=published.as_uri()))
    assert list((home / "cache" / "varnn").iterdir()) == []


def test_no_network_says_where_to_put_the_file(home: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        source = replace(TINY, url=f"http://127.0.0.1:{closed.getsockname()[1]}/tiny.zip")
        with pytest.raises(DataError, match=r"could not be fetched: .*refused.*Looked for 'tiny.zip'"):
            store.obtain(source)


ARRAYS = {"a": np.arange(40.0).reshape(8, 5), "b": np.array([1, 2, 3])}


class Builder:
    """Makes the arrays and counts how often."""

    calls = 0

    def __call__(self, members: Members) -> _cache.Arrays:
        self.calls += 1
        return ARRAYS


def agree(arrays: _cache.Arrays) -> None:
    assert arrays.keys() == ARRAYS.keys()
    for name, expected in ARRAYS.items():
        assert arrays[name].dtype == expected.dtype
        np.testing.assert_array_equal(arrays[name], expected)


def test_arrays_are_kept_beside_their_source(home: Path) -> None:
    unpacked(home / "data")
    build = Builder()
    for _ in range(3):
        agree(_cache.remembered(located(), build, version=1))
    assert build.calls == 1
    assert (home / "data" / "tiny-arrays.npz").is_file()
    assert not (home / "cache").exists()


def test_arrays_are_kept_in_the_cache_when_the_source_is_read_only(home: Path) -> None:
    in_zip(home / "data")
    (home / "data").chmod(0o555)
    build = Builder()
    try:
        for _ in range(2):
            agree(_cache.remembered(located(), build, version=1))
    finally:
        (home / "data").chmod(0o755)
    assert build.calls == 1
    assert [path.name for path in (home / "data").iterdir()] == ["tiny.zip"]
    assert [path.name for path in (home / "cache" / "varnn").iterdir()] == ["tiny-arrays.npz"]


def test_arrays_need_not_be_kept(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_zip(home / "data")

    def refuse(path: Path, blob: bytes) -> None:
        raise OutputError("No space left on device")

    monkeypatch.setattr(_cache, "write_atomically", refuse)
    agree(_cache.remembered(located(), Builder(), version=1))
    assert [path.name for path in (home / "data").iterdir()] == ["tiny.zip"]


@pytest.mark.parametrize("change", ["content", "time", "version"])
def test_arrays_of_a_changed_source_are_built_again(home: Path, change: str) -> None:
    in_zip(home / "data")
    build = Builder()
    _cache.remembered(located(), build, version=1)
    if change == "content":
        put(home / "data" / "tiny.zip", packed({**FILES, "more": b"bytes"}))
    if change == "time":
        os.utime(home / "data" / "tiny.zip", ns=(1, 1))
    _cache.remembered(located(), build, version=2 if change == "version" else 1)
    assert build.calls == 2


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_damaged_arrays_are_built_again(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        in_zip(Path(folder))
        members = Members(source=TINY, place=Path(folder, "tiny.zip"))
        _cache.remembered(members, Builder(), version=1)
        kept = Path(folder, "tiny-arrays.npz")
        content = bytearray(kept.read_bytes())
        position = data.draw(st.integers(0, len(content) - 1))
        content[position] = data.draw(st.integers(0, 255))
        kept.write_bytes(content[:position] if data.draw(st.booleans()) else content)
        agree(_cache.remembered(members, Builder(), version=1))
        build = Builder()
        agree(_cache.remembered(members, build, version=1))
        assert build.calls == 0  # it was mended, or nothing that matters had been hit


def npy() -> bytes:
    blob = BytesIO()
    np.save(blob, np.zeros(3))
    return blob.getvalue()


@pytest.mark.parametrize("content", [pickle.dumps("anything"), npy(), b""], ids=["pickle", "npy", "empty"])
def test_foreign_file_in_place_of_the_arrays_is_replaced(home: Path, content: bytes) -> None:
    in_zip(home / "data")
    put(home / "data" / "tiny-arrays.npz", content)
    build = Builder()
    for _ in range(2):
        agree(_cache.remembered(located(), build, version=1))
    assert build.calls == 1


def test_command_lists_what_is_not_here() -> None:
    result = CliRunner().invoke(app, ["list"], env={"COLUMNS": "250"})
    assert result.exit_code == 0
    lines = {line.split()[0]: line for line in result.output.splitlines()}
    assert "not found: varnn datasets fetch bidmc" in lines["bidmc"]
    assert "25,436" in lines["bidmc"] and "375" in lines["bidmc"]
    assert "CC BY 4.0" in lines["beijing"]
    assert "nothing to fetch" in lines["synthetic"]


def test_command_fetches_and_verifies(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    published = put(home / "publisher" / "tiny.zip", packed(FILES))
    source = replace(TINY, name="appliances", url=published.as_uri())
    monkeypatch.setattr(datasets.appliances, "SOURCE", source)
    run = CliRunner().invoke
    assert "appliances: not on this machine" in run(app, ["verify"]).output
    assert isinstance(run(app, ["verify", "appliances"]).exception, DataError)
    fetched = run(app, ["fetch", "appliances"])
    assert "fetched and checked" in fetched.output and "Nobody (2026)" in fetched.output
    assert "already here" in run(app, ["fetch", "appliances"]).output
    assert "as published (2 checked)" in run(app, ["verify", "appliances"]).output
    put(home / "cache" / "varnn" / "appliances.zip", b"damaged")
    assert isinstance(run(app, ["verify"]).exception, DataError)


def test_command_refuses_an_unknown_name() -> None:
    error = CliRunner().invoke(app, ["fetch", "bidcm"]).exception
    assert isinstance(error, ConfigError)
    assert "Did you mean 'bidmc'?" in str(error)


def test_folders_far_below_are_left_alone(home: Path) -> None:
    unpacked(home / "data" / "1/2/3/4/5")
    assert store.locate(TINY) is None
    shutil.move(home / "data" / "1/2/3/4/5", home / "data" / "1/2/x")
    assert store.locate(TINY) is not None


def test_a_zip_that_expands_without_end_is_refused_before_it_does(home: Path) -> None:
    """A thousand times its size, alone and within another zip."""
    bomb = packed({**FILES, "south.csv": bytes(300 << 20)})
    assert len(bomb) < 1 << 20
    deep = packed(
        {"inner.zip": packed({"south.csv": bytes(300 << 20)}), **FILES, "bomb.zip": bytes(50 << 20)}
    )
    for content in (bomb, deep):
        put(home / "data" / "tiny.zip", content)
        tracemalloc.start()
        with pytest.raises(DataError, match=r"expands to more than the .* bytes it can have"):
            store.obtain(TINY, download=False).verify()
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
        tracemalloc.stop()


def test_a_kept_file_that_is_compressed_is_built_again(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    in_zip(home / "data")
    members = store.obtain(TINY, download=False)
    build = {"y": np.zeros(3)}
    _cache.remembered(members, lambda _: build, version=1)
    (kept,) = (home / "data").glob("*.npz")
    with zipfile.ZipFile(kept) as archive:
        contents = {one: archive.read(one) for one in archive.namelist()}
    kept.write_bytes(packed(contents))
    assert _cache.remembered(members, lambda _: {"y": np.ones(3)}, version=1)["y"].tolist() == [1, 1, 1]
    assert "it is compressed" in caplog.text
