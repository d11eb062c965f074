"""Files of many models: read one by one, whatever names they have, and whatever happened to the file."""

import json
import sqlite3
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import varnn
from varnn import VARNNRegressor
from varnn.errors import ModelFileError, OutputError
from varnn.estimator.loading import to_bytes
from varnn.scale import Models, SeriesDone, fit_many
from varnn.scale._file_shelf import FileShelf, FileShelfWriter
from varnn.scale._names import file_of, name_of
from varnn.scale._shelf import Entry

ODD = [
    "",
    "a",
    "A",
    "é/ü\\",
    "nul\0here",
    "x" * 5000,
    "ß" * 300,
    ".",
    "..",
    "con",
    "%",
    "%25",
    "\ud800",
    "a.varnn",
]


@pytest.fixture(scope="module")
def blob() -> bytes:
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = VARNNRegressor(epochs=1, ensemble=1, hidden_size=4).fit(X, X[:, 0])
    return to_bytes(model, "a model")


def entry(name: str, blob: bytes) -> Entry:
    return Entry(name, "f", '{"window": 5}', blob, None, {"rows": 60})


def written(path: Path, names: list[str], blob: bytes) -> Models:
    writer = FileShelfWriter(path)
    writer.expect(names)
    writer.put([entry(name, blob) for name in names])
    writer.close()
    return Models.open(path)


@pytest.mark.parametrize("place", ["m.varnns", "folder"])
def test_any_text_may_name_a_series(place: str, tmp_path: Path, blob: bytes) -> None:
    models = written(tmp_path / place, ODD, blob)
    assert list(models) == ODD and len(models) == len(ODD)
    for name in ODD:
        assert name in models and models[name].fitted_.n_members == 1
        assert models.facts(name) == {"rows": 60}
    files = [one.name for one in tmp_path.rglob("*.varnn")]
    assert len({one.lower() for one in files}) == (len(ODD) if place == "folder" else 0)
    assert all(len(one.encode()) < 250 and "/" not in one for one in files)
    models.export("nul\0here", tmp_path / "one.varnn")
    assert (tmp_path / "one.varnn").read_bytes() == blob


@pytest.mark.parametrize("name", [one for one in ODD if len(one) < 100])
def test_names_of_files_tell_the_series(name: str) -> None:
    assert name_of(file_of(name)) == name_of(file_of(name, taken=True)) == name


def test_one_of_a_hundred_thousand_is_read_without_the_others(tmp_path: Path, blob: bytes) -> None:
    path = tmp_path / "m.varnns"
    written(path, ["the one"], blob)
    database = sqlite3.connect(path)
    many = 100_000
    with database:
        database.execute(
            "WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i <= ?) "
            "INSERT INTO entries (id, name, fingerprint, settings, checksum) "
            "SELECT i, CAST('meter ' || i AS BLOB), 'f', 1, 'none' FROM n",
            (many,),
        )
        database.execute("INSERT INTO blobs SELECT id, zeroblob(300) FROM entries WHERE id > 1")
    database.close()
    assert path.stat().st_size > 30_000_000
    before = _bytes_read()
    models = varnn.load(path)
    assert models["the one"].fitted_.n_members == 1 and "meter 77" in models
    if before is not None:
        assert (_bytes_read() or 0) - before < 1_000_000
    assert len(models) == many + 1
    with pytest.raises(ModelFileError, match=r"series 'meter 5' .* is damaged: its checksum"):
        models["meter 5"]
    with pytest.raises(KeyError, match=r"no model of series 'meter 0' in .* Check the name"):
        models["meter 0"]


def _bytes_read() -> int | None:
    """Bytes that this process asked its system for; None where that does not count them."""
    if sys.platform != "linux":
        return None
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(next(line.partition(": ")[2] for line in lines if line.startswith("rchar")))


@pytest.mark.parametrize("place", ["m.varnns", "folder"])
def test_a_flipped_byte_is_found_and_costs_one_model(place: str, tmp_path: Path, blob: bytes) -> None:
    path = tmp_path / place
    models = written(path, ["a", "b", "c"], blob)
    if place == "folder":
        damaged = path / "b.varnn"
        found = bytearray(damaged.read_bytes())
        found[len(found) // 2] ^= 1
    else:
        damaged = path
        found = bytearray(path.read_bytes())
        middle = blob[len(blob) // 2 : len(blob) // 2 + 100]
        spots = [place for place in range(len(found)) if found.startswith(middle, place)]
        assert len(spots) == 3
        found[spots[1]] ^= 1
    damaged.write_bytes(found)
    with pytest.raises(ModelFileError, match=r"series 'b' in .* is damaged: its checksum does not match"):
        models["b"]
    assert models["a"].fitted_.n_members == models["c"].fitted_.n_members == 1


def test_a_truncated_file_says_so_and_the_rest_can_be_read(
    tmp_path: Path, blob: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "m.varnns"
    written(path, [f"m{number}" for number in range(20)], blob)
    whole = path.read_bytes()
    assert caplog.text == ""
    path.write_bytes(whole[: len(whole) - len(blob)])
    models = varnn.load(path)
    assert "is damaged: " in caplog.text and "Models that are whole can be read" in caplog.text
    readable = []
    for number in range(20):
        try:
            assert models[f"m{number}"].fitted_.n_members == 1
            readable.append(number)
        except ModelFileError as error:
            assert "damaged" in str(error)
    assert 17 <= len(readable) < 20


def test_a_damaged_model_is_fitted_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    from tests.scale.test_many import SMALL, panel_of

    panel, path = panel_of(["a", "b"]), tmp_path / "folder"
    fit_many(panel, VARNNRegressor(**SMALL), path=path, workers=1)
    whole = (path / "a.varnn").read_bytes()
    (path / "a.varnn").write_bytes(whole[:-1])
    heard: list[SeriesDone] = []
    models = fit_many(panel, VARNNRegressor(**SMALL), path=path, workers=1, on_model=heard.append)
    assert [one.name for one in heard] == ["a"] and "1 of 2 models are damaged" in caplog.text
    assert models["a"].fitted_.n_members == 2
    (path / "b.varnn").unlink()
    with pytest.raises(ModelFileError, match=r"series 'b' cannot be read from 'b\.varnn'"):
        models["b"]


def test_what_is_no_file_of_many_models_is_refused(tmp_path: Path, blob: bytes) -> None:
    journal = tmp_path / "other.db"
    database = sqlite3.connect(journal)
    database.execute("CREATE TABLE t (x)")
    database.close()
    with pytest.raises(ModelFileError, match="is a SQLite file, but none of many models"):
        varnn.load(journal)
    with pytest.raises(ModelFileError, match="there is no file or folder"):
        Models.open(tmp_path / "none.varnns")
    with pytest.raises(ModelFileError, match="there is no"):
        varnn.load(tmp_path / "none.varnns")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelFileError, match="holds no models"):
        varnn.load(tmp_path / "empty")
    text = tmp_path / "text.varnns"
    text.write_text("no database" * 500)
    with pytest.raises(ModelFileError, match=r"not a file of this library|no file of many models"):
        varnn.load(text)
    other = tmp_path / "other.varnns"
    written(other, ["a"], blob)
    for found in (0, 99):
        with sqlite3.connect(other) as database:
            database.execute(f"PRAGMA user_version = {found}")
        with pytest.raises(ModelFileError, match=f"another version of varnn: it has format {found}"):
            varnn.load(other)


def test_nothing_is_written_over_or_among_what_is_not_ours(tmp_path: Path, blob: bytes) -> None:
    others: list[tuple[Path, type[Exception], str]] = []
    journal = tmp_path / "other.varnns"
    with sqlite3.connect(journal) as database:
        database.execute("CREATE TABLE t (x)")
    others.append((journal, ModelFileError, "none of many models"))
    text = tmp_path / "text.varnns"
    text.write_text("no database" * 500)
    others.append((text, ModelFileError, "damaged"))
    plain = tmp_path / "models"
    plain.write_text("a file")
    others.append((plain, OutputError, "it is a file, and its name does not end in .varnns"))
    folder = tmp_path / "photos"
    folder.mkdir()
    (folder / "1.jpg").write_bytes(b"")
    others.append((folder, OutputError, "holds other things"))
    named = tmp_path / "folder.varnns"
    named.mkdir()
    others.append((named, OutputError, "it is a folder"))
    for path, kind, said in others:
        before = path.read_bytes() if path.is_file() else [one.name for one in path.iterdir()]
        with pytest.raises(kind, match=said):
            FileShelfWriter(path)
        assert before == (path.read_bytes() if path.is_file() else [one.name for one in path.iterdir()])


def test_one_process_writes_at_a_time(tmp_path: Path) -> None:
    writer = FileShelfWriter(tmp_path / "m.varnns")
    with pytest.raises(OutputError, match="is in use by process"):
        FileShelfWriter(tmp_path / "m.varnns")
    writer.close()
    FileShelfWriter(tmp_path / "m.varnns").close()
    assert [one.name for one in tmp_path.iterdir()] == ["m.varnns"]


@pytest.mark.parametrize("place", ["m.varnns", "folder"])
def test_readers_see_whole_models_while_one_writes(place: str, tmp_path: Path, blob: bytes) -> None:
    path = tmp_path / place
    written(path, ["a"], blob)
    other = Models.open(path)["a"]
    other.fitted_.training.history.append({"epoch": 99, "loss": 0.0})
    blobs = [blob, to_bytes(other, "another")]
    done, wrong = threading.Event(), []

    def read() -> None:
        shelf, models = FileShelf(path), Models.open(path)
        while not done.is_set():
            try:
                assert shelf.get("a") in blobs
                for name in models:
                    assert models[name].fitted_.n_members == 1
            except Exception as error:
                wrong.append(error)
                return

    readers = [threading.Thread(target=read) for _ in range(3)]
    for one in readers:
        one.start()
    writer = FileShelfWriter(path)
    for number in range(60):
        writer.put([entry("a", blobs[number % 2]), entry(f"m{number}", blob)])
    done.set()
    for one in readers:
        one.join()
    writer.close()
    assert wrong == [] and len(Models.open(path)) == 61


def test_reasons_of_failures_are_kept(tmp_path: Path, blob: bytes) -> None:
    writer = FileShelfWriter(tmp_path / "m.varnns")
    writer.expect(["a", "b", "c"])
    writer.put([entry("a", blob), Entry("b", "f", "{}", None, "no labels", {})])
    writer.close()
    models = Models.open(tmp_path / "m.varnns")
    assert models.failures == {"b": "no labels"} and models.waiting == 1 and list(models) == ["a"]
    assert repr(models).endswith("1 failed>") and models.settings == [(json.loads('{"window": 5}'), 1)]
    assert models.get("b") is None
    with pytest.raises(KeyError, match="names of models are texts; got 3"):
        models[3]  # type: ignore[index]
