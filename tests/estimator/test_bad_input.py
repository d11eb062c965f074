"""Every command with input it cannot use: one clear line, exit code 2, and no file touched.

In this process, through the entry point of the console script: a new one for each of a hundred cases would
take minutes. `test_cli` starts real ones.
"""

import gzip
import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from varnn import Panel, VARNNRegressor
from varnn.cli.app import main
from varnn.data.files import read_table
from varnn.errors import VarnnError

QUICK = ("--epochs", "1", "--hidden-size", "4", "--ensemble", "1")
MODELS = ("--models", "persistence,arx-lr")
COLUMNS = ("--target", "load", "--time", "time")

Run = Callable[..., "Outcome"]


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    error: str

    @property
    def complaint(self) -> str:
        """Give the one line that says what is wrong; all that came before it is no complaint."""
        *before, last = self.error.strip().splitlines()
        assert last.startswith("error: "), self.error
        assert not any(line.startswith("error: ") or "Traceback" in line for line in before), self.error
        return last


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    def once(*arguments: str | Path, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "argv", ["varnn", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(stdin))))
        with pytest.raises(SystemExit) as left:
            main()
        captured = capsys.readouterr()
        assert isinstance(left.value.code, int)
        return Outcome(left.value.code, captured.out, captured.err)

    yield once


def table(rows: int = 120) -> pd.DataFrame:
    random = np.random.default_rng(0)
    heat, wind = random.normal(size=(2, rows))
    load = heat + np.cumsum(random.normal(size=rows)) / 10
    time = pd.date_range("2026-01-01", periods=rows, freq="h")
    return pd.DataFrame({"time": time, "heat": heat, "wind": wind, "load": load})


def changed(column: str, row: int, value: str | pd.Timestamp | None) -> pd.DataFrame:
    frame = table().astype({column: object})
    frame.loc[row, column] = value
    return frame


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with a good table, a good model, and bad ones of all kinds."""
    folder = tmp_path_factory.mktemp("bad")
    good = table()
    tables = {
        "good": good,
        "header": good.head(0),
        "one": good.head(1),
        "unknown": good.assign(load=np.nan),
        "text": changed("heat", 7, "warm"),
        "text-target": changed("load", 7, "high"),
        "twice": changed("time", 5, good.time[4]),
        "unsorted": good.iloc[::-1],
        "no-date": changed("time", 3, "soon"),
        "no-time": changed("time", 3, None),
        "infinite": changed("wind", 9, "inf"),
        "no-series": table().assign(site=["north", ""] * 60),
        "lacks": good.drop(columns="wind"),
    }
    for name, frame in tables.items():
        frame.to_csv(folder / f"{name}.csv", index=False)
    good.to_csv(folder / "utf16.csv", index=False, encoding="utf-16")
    noise = np.random.default_rng(1).bytes(5000)
    for name in ("garbage.csv", "garbage.csv.gz", "garbage.parquet"):
        (folder / name).write_bytes(noise)
    good.to_csv(folder / "cut.csv.gz", index=False)
    (folder / "cut.csv.gz").write_bytes((folder / "cut.csv.gz").read_bytes()[:-200])
    good.to_parquet(folder / "cut.parquet")
    (folder / "cut.parquet").write_bytes((folder / "cut.parquet").read_bytes()[:-200])
    (folder / "empty.csv").write_bytes(b"")
    (folder / "ragged.csv").write_text("a,load\n1,2\n1,2,3\n")
    (folder / "same.csv").write_text("heat,heat,load\n1,2,3\n")
    (folder / "folder").mkdir()
    model = folder / "model.varnn"
    panel = Panel.read(folder / "good.csv", target="load", time="time")
    VARNNRegressor(epochs=1, hidden_size=4, ensemble=1, intervals=False).fit(panel).save(model)
    (folder / "cut.varnn").write_bytes(model.read_bytes()[:-100])
    (folder / "head.varnn").write_bytes(model.read_bytes()[:300])
    return folder


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# What a command must say; None where it can do its work all the same.
FIT, PREDICT, COMPARE = "fit", "predict", "compare"
TABLES: list[tuple[str, dict[str, str | None]]] = [
    ("absent.csv", dict.fromkeys((FIT, PREDICT, COMPARE), "there is no file")),
    ("empty.csv", dict.fromkeys((FIT, PREDICT, COMPARE), "Empty CSV file")),
    ("header.csv", dict.fromkeys((FIT, PREDICT, COMPARE), "at least one row")),
    ("one.csv", {FIT: "too short", PREDICT: None, COMPARE: "Give more rows"}),
    ("unknown.csv", {FIT: "nothing to learn from", PREDICT: None, COMPARE: "known target"}),
    (
        "text.csv",
        dict.fromkeys((FIT, PREDICT, COMPARE), "column 'heat' must hold numbers; line 9 holds 'warm'"),
    ),
    ("text-target.csv", dict.fromkeys((FIT, PREDICT, COMPARE), "line 9 holds 'high'")),
    ("twice.csv", dict.fromkeys((FIT, PREDICT, COMPARE), "line 7 repeats 2026-01-01T04:00:00")),
    ("unsorted.csv", dict.fromkeys((FIT, PREDICT, COMPARE), "time must increase")),
    ("no-date.csv", dict.fromkeys((FIT, PREDICT, COMPARE), "must hold dates such as")),
    ("no-time.csv", dict.fromkeys((FIT, PREDICT, COMPARE), "line 5 is empty")),
    ("infinite.csv", dict.fromkeys((FIT, PREDICT, COMPARE), "'wind' holds infinity in line 11")),
    ("lacks.csv", {PREDICT: "input column 'wind' is not in the table"}),
    ("utf16.csv", dict.fromkeys((FIT, PREDICT, COMPARE), None)),
    ("garbage.csv", dict.fromkeys((FIT, PREDICT, COMPARE), "bytes that are no text")),
    ("garbage.csv.gz", dict.fromkeys((FIT, PREDICT, COMPARE), "cannot be read as a table")),
    ("garbage.parquet", dict.fromkeys((FIT, PREDICT, COMPARE), "cannot be read as a table")),
    ("cut.csv.gz", dict.fromkeys((FIT, PREDICT, COMPARE), "cannot be read as a table")),
    ("cut.parquet", dict.fromkeys((FIT, PREDICT, COMPARE), "cannot be read as a table")),
    ("ragged.csv", dict.fromkeys((FIT, PREDICT, COMPARE), "as many cells as the first, 2; line 3 has 3")),
    ("same.csv", dict.fromkeys((FIT, PREDICT, COMPARE), "['heat'] twice")),
    ("folder", {FIT: "is a folder", PREDICT: "holds no Parquet files", COMPARE: "is a folder"}),
]


def arguments(command: str, place: Path, data: Path, output: Path) -> list[str | Path]:
    """Give a whole command line, good but for the data and the output."""
    words: dict[str, list[str | Path]] = {
        FIT: ["fit", data, *COLUMNS, *QUICK, "-o", output],
        PREDICT: ["predict", place / "model.varnn", data, "--time", "time", "-o", output],
        COMPARE: ["compare", data, *COLUMNS, *MODELS, "--report", output],
    }
    return words[command]


@pytest.mark.parametrize(
    ("data", "command", "message"),
    [(data, command, message) for data, commands in TABLES for command, message in commands.items()],
)
def test_a_table(data: str, command: str, message: str | None, place: Path, run: Run, tmp_path: Path) -> None:
    output = tmp_path / "kept"
    output.write_bytes(b"what was there")
    before = contents(place)
    done = run(*arguments(command, place, place / data, output))
    if message is None:
        assert done.code == 0, done.error
        assert output.read_bytes() != b"what was there"
        return
    assert done.code == 2
    assert message in done.complaint
    assert done.complaint.isprintable()
    assert done.out == ""
    assert contents(tmp_path) == {output: b"what was there"}
    assert contents(place) == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fit", "good.csv", "--target", "laod", "-o", "x.varnn"], "Did you mean 'load'"),
        (["fit", "good.csv", *COLUMNS, "--series", "site", "-o", "x.varnn"], "series column 'site' is not"),
        (["fit", "no-series.csv", *COLUMNS, "--series", "site", "-o", "x.varnn"], "line 3 is empty"),
        (["fit", "good.csv", *COLUMNS, "--inputs", "haet", "-o", "x.varnn"], "Did you mean 'heat'"),
        (["fit", "good.csv", *COLUMNS, "--inputs", "load", "-o", "x.varnn"], "cannot also be an input"),
        (["fit", "good.csv", *COLUMNS, "--series", "heat", "-o", "x.varnn"], "too short"),
        (["fit", "good.csv", *COLUMNS, "--learning-rate", "0", "-o", "x.varnn"], "--learning-rate must be"),
        (["fit", "good.csv", *COLUMNS, "--device", "tpu", "-o", "x.varnn"], "device"),
        (["fit", "unsorted.csv", "--target", "load", "-o", "x.varnn"], "--sort puts them in order"),
        (["compare", "good.csv", "--target", "laod"], "Did you mean 'load'"),
        (["compare", "good.csv", *COLUMNS, "--models", "arx-rl"], "Did you mean 'arx-lr'"),
        (["compare", "good.csv", *COLUMNS, "--models", "arx-lr", "--protocol", "fair"], "protocol must be"),
        (["predict", "model.varnn", "good.csv", "--time", "tiem"], "Did you mean 'time'"),
        (["predict", "model.varnn", "good.csv", "--target", "laod"], "Did you mean 'load'"),
        (["predict", "model.varnn", "good.csv", "--interval", "90"], "levels above 0 and at most 0.99"),
        (["predict", "model.varnn", "good.csv", "--interval", "0.9"], "fitted with intervals=False"),
        (["predict", "model.varnn", "good.csv", "--json"], "cannot both go to standard output"),
        (["inspect"], "MODEL"),
        (["datasets", "fetch", "beijng"], "Did you mean 'beijing'"),
    ],
)
def test_a_word(words: list[str], message: str, place: Path, run: Run) -> None:
    before = contents(place)
    done = run(*(place / one if one.endswith((".csv", ".varnn")) else one for one in words))
    assert done.code == 2
    assert message in done.complaint
    assert done.out == ""
    assert contents(place) == before


@pytest.mark.parametrize("command", ["predict", "inspect", "stream"])
@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("absent.varnn", "there is no model file"),
        ("folder", "no model"),  # none in it, or not one: some commands take folders of many
        ("cut.varnn", "truncated or damaged"),
        ("head.varnn", "not a file of this library"),
        ("empty.csv", "not a file of this library"),
        ("garbage.csv", "not a file of this library"),
        ("good.csv", "not a file of this library"),
    ],
)
def test_a_model(command: str, model: str, message: str, place: Path, run: Run, tmp_path: Path) -> None:
    more = [place / "good.csv", "-o", tmp_path / "out.csv"] if command == "predict" else []
    done = run(command, place / model, *more, stdin=b'{"x": [1, 2]}\n')
    assert done.code == 2
    assert message in done.complaint
    assert done.out == ""
    assert contents(tmp_path) == {}


@pytest.mark.parametrize("command", [FIT, PREDICT, COMPARE, "stream", "demo"])
@pytest.mark.parametrize(
    ("output", "message"),
    [("nowhere/out", "does not exist"), ("taken", "it is a folder"), (None, "permission")],
)
def test_an_output(
    command: str,
    output: str | None,
    message: str,
    place: Path,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if output is None:  # chmod means nothing to root, which tests may run as
        monkeypatch.setattr("varnn.data.files.os.access", lambda _, mode: mode != os.W_OK)
    (tmp_path / "taken").mkdir()
    path = tmp_path / (output or "out")
    if command == "stream":
        words: list[str | Path] = ["stream", place / "model.varnn", "--state", path]
    elif command == "demo":
        words = ["demo", "-o", path]
    else:
        words = arguments(command, place, place / "good.csv", path)
    done = run(*words, stdin=b'{"x": [1, 2]}\n')
    assert done.code == 2
    assert message in done.complaint
    assert "missing" not in done.error, "the place is looked at before the table is read"
    assert [one.name for one in tmp_path.iterdir()] == ["taken"]


def test_a_disk_that_fills_up_leaves_what_was_there(
    place: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("varnn.data.files.os.fsync", fails)
    for command in (FIT, PREDICT, COMPARE):
        output = tmp_path / "kept"
        output.write_bytes(b"what was there")
        done = run(*arguments(command, place, place / "good.csv", output))
        assert done.code == 2
        assert "No space left on device" in done.complaint
        assert contents(tmp_path) == {output: b"what was there"}


def test_a_failure_half_way_through_a_table_leaves_what_was_there(
    place: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pieces(*_: object) -> Iterator[dict[str, object]]:
        yield {"prediction": np.zeros(3)}
        raise VarnnError("half way.")

    monkeypatch.setattr("varnn.cli._predictions.pieces", pieces)
    output = tmp_path / "kept.csv"
    output.write_bytes(b"what was there")
    assert run(*arguments(PREDICT, place, place / "good.csv", output)).code == 2
    assert contents(tmp_path) == {output: b"what was there"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"not json", "is not JSON"),
        (b"\xff\xfe\x00", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[1]", "must be an object"),
        (b"{}", "must be an object"),
        (b'{"x": [1]}', "2 numbers (heat, wind)"),
        (b'{"x": ["a", 2]}', "numbers only"),
        (b'{"x": [1, Infinity]}', "finite"),
        (b'{"x": [1, 1' + b"0" * 400 + b"]}", "at most 1e"),
        (b'{"x": {"heat": 1}}', "lacks"),
        (b'{"y": 1}', "Call predict(x) first"),
        (b'{"x": [1, 2], "y": "high"}', "must be a number"),
        (b'{"x": [1, 2], "interval": 90}', "at most 0.99"),
        (b'{"x": [1, 2], "interval": 0.9}', "intervals=False"),
    ],
)
def test_a_line_of_a_stream_is_answered_and_the_stream_goes_on(
    line: bytes, message: str, place: Path, run: Run
) -> None:
    good = b'{"x": [0.1, 0.2], "time": "2026-01-10T05:00"}\n'
    done = run("stream", place / "model.varnn", stdin=line + b"\n" + good)
    assert done.code == 0, done.error
    bad, fine = done.out.splitlines()
    assert message in bad
    assert '"prediction"' in fine


def test_a_table_whose_kinds_change_is_read_whole_however_it_is_packed(tmp_path: Path) -> None:
    """It is begun block by block, and then read anew: nobody else may go on reading the same file."""
    rows = 240_000
    early = "".join(f"{row},{row % 7},{row / 3:.5f}\n" for row in range(rows // 3))
    late = "".join(f"{row},{row % 7}.5,{row / 3:.5f}\n" for row in range(rows // 3, rows))
    packed = tmp_path / "kinds.csv.gz"
    packed.write_bytes(gzip.compress(f"t,a,y\n{early}{late}".encode()))
    for _ in range(20):  # rows went missing every now and then
        table = read_table(packed).table
        assert table.num_rows == rows
        assert table["t"][-1].as_py() == rows - 1


@pytest.mark.parametrize("name", ["broken.csv", "broken.csv.gz"])
def test_a_process_that_met_a_broken_table_ends_in_peace(name: str, tmp_path: Path) -> None:
    """Threads that read ahead called into a Python that was ending, and aborted it now and then."""
    line = "1,2,3\n" * 200_000
    text = f"a,b,y\n{line}1,2,3,4,5\n{line * 10}".encode()
    (tmp_path / name).write_bytes(gzip.compress(text, 1) if name.endswith("gz") else text)
    script = f"""
import io, pathlib, time
from varnn.errors import DataError
from varnn.data.files import read_table

class Slow(io.BufferedReader):
    def read(self, *size):
        time.sleep(0.02)  # as a busy disk would
        return super().read(*size)

class Place(type(pathlib.Path())):
    def open(self, mode):
        return Slow(io.FileIO(str(self)))

try:
    read_table(Place({str(tmp_path / name)!r}))
except DataError as error:
    print(error)
"""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "as many cells as the first, 3; line 200,002 has 5" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fit", "good.csv", *COLUMNS, "-o", "good.csv"], "--output must be another file than the table"),
        (["fit", "good.csv", *COLUMNS, "-o", "x.varnn", "--report", "good.csv"], "--report must be another"),
        (
            ["predict", "model.varnn", "good.csv", "-o", "good.csv"],
            "--output must be another file than the table",
        ),
        (
            ["predict", "model.varnn", "good.csv", "-o", "model.varnn"],
            "--output must be another file than the model",
        ),
        (
            ["predict", "model.varnn", "good.csv", "-o", "x.csv", "--report", "x.csv"],
            "another file than --output",
        ),
        (
            ["forecast", "good.csv", *COLUMNS, "-o", "link.csv"],
            "--output must be another file than the table",
        ),
        (["monitor", "model.varnn", "good.csv", "--report", "good.csv"], "--report must be another file"),
        (["compare", "good.csv", *COLUMNS, "--report", "good.csv"], "--report must be another file"),
        (["tune", "good.csv", *COLUMNS, "-o", "good.csv"], "--output must be another file than the table"),
    ],
)
def test_what_is_read_is_not_written_over(words: list[str], message: str, place: Path, run: Run) -> None:
    link = place / "link.csv"
    link.unlink(missing_ok=True)
    link.symlink_to(place / "good.csv")
    before = contents(place)
    done = run(*(place / one if one.endswith((".csv", ".varnn")) else one for one in words))
    assert done.code == 2
    assert message in done.complaint
    assert contents(place) == before
    link.unlink()
