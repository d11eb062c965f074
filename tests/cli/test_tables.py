"""Tables the command reads and writes: what it understands, in every form, and in parts."""

import gzip
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from varnn import Panel, VARNNRegressor, load
from varnn.cli import _predictions, _table
from varnn.cli.app import app, main
from varnn.data.tables import Reading
from varnn.errors import VarnnError

Run = Callable[..., tuple[str, str]]


@pytest.fixture
def run(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Give a function that runs the command in this process and gives its output and its words."""

    def once(*arguments: str | Path, stdin: bytes = b"") -> tuple[str, str]:
        monkeypatch.setattr(sys, "argv", ["varnn", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(stdin))))
        with pytest.raises(SystemExit) as left:
            main()
        out, error = (one.decode() for one in capfdbinary.readouterr())
        assert left.value.code == 0, error
        return out, error

    return once


def sites(rows: int = 60) -> pd.DataFrame:
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(2 * rows, 2)), columns=["heat", "load"])
    frame.insert(0, "site", ["north", "south"] * rows)
    frame.insert(0, "note", "fine")
    frame.insert(0, "when", pd.date_range("2026-01-01", periods=rows, freq="10min").repeat(2))
    return frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    sites().to_csv(folder / "sites.csv", index=False)
    panel = Panel.read(folder / "sites.csv", target="load", series="site")
    VARNNRegressor(epochs=1, hidden_size=4, ensemble=1).fit(panel).save(folder / "m.varnn")
    return folder


def understand(path: Path, time: str | None = None, series: str | None = None) -> _table.Table:
    return _table.read(path, Reading(target="load", time=time, series=series))


def test_time_and_series_are_guessed_and_any_guess_can_be_overruled(folder: Path) -> None:
    guessed = understand(folder / "sites.csv").facts()
    assert guessed == {
        "rows": 120,
        "series": 2,
        "target": "load",
        "target_missing": 0.0,
        "time": "when",
        "step": "every 10 min",
        "first_time": "2026-01-01 00:00",
        "last_time": "2026-01-01 09:50",
        "series_column": "site",
        "guessed": ["series", "time"],
        "inputs": ["heat"],
        "inputs_missing": 0.0,
        "left_out": ["note"],
        "notes": guessed["notes"],
    }
    assert [one[:16] for one in guessed["notes"]] == ["text is left out"]
    plain = understand(folder / "sites.csv", time="none").facts()
    assert (plain["time"], plain["series_column"], plain["series"]) == (None, None, 1)
    named = understand(folder / "sites.csv", time="when", series="site").facts()
    assert named == {**guessed, "guessed": []}


def test_rows_in_time_order_are_one_series_whatever_words_stand_beside_them(tmp_path: Path) -> None:
    sites()[::2].assign(weekday=["mon", "tue"] * 30).to_csv(tmp_path / "one.csv", index=False)
    facts = understand(tmp_path / "one.csv").facts()
    assert (facts["time"], facts["series_column"]) == ("when", None)


@pytest.mark.parametrize(
    ("times", "words"),
    [
        (pd.date_range("2026-01-01", periods=5, freq="h"), "every 1 h"),
        (pd.date_range("2026-01-01", periods=5, freq="90s"), "every 90 s"),
        (pd.to_datetime(["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-05"]), "about every 1 d, uneven"),
        (pd.Index([1.0, 1.5, 2.0]), "every 0.5"),
    ],
)
def test_the_sampling_step_is_said(times: pd.Index, words: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"when": times, "load": np.arange(len(times))})
    frame.to_csv(tmp_path / "steps.csv", index=False)
    assert understand(tmp_path / "steps.csv", time="when").facts()["step"] == words


def test_the_summary_says_what_was_guessed_and_what_is_missing(folder: Path, tmp_path: Path) -> None:
    frame = sites()
    frame.loc[:11, "load"] = np.nan
    frame.to_csv(tmp_path / "gaps.csv", index=False)
    said = understand(tmp_path / "gaps.csv").in_words()
    assert (
        "time     when, every 10 min, 2026-01-01 00:00 to 2026-01-01 09:50  (a guess; --time to change it)"
        in said
    )
    assert "series   site  (a guess; --series to change it)" in said
    assert "target   load, 10.0% missing" in said


def test_json_is_all_that_is_on_standard_output(folder: Path, run: Run, tmp_path: Path) -> None:
    data = folder / "sites.csv"
    quick = ("--epochs", "1", "--hidden-size", "4", "--ensemble", "1")
    out, words = run("fit", data, "--target", "load", *quick, "-o", tmp_path / "m.varnn", "--json")
    facts = json.loads(out)
    assert facts["data"]["time"] == "when"
    assert facts["best_validation_error"] > 0
    assert "rows" not in words
    out, _ = run("predict", folder / "m.varnn", data, "-o", tmp_path / "out.csv", "--json")
    assert json.loads(out)["how"] == "one step ahead"
    out, _ = run("compare", data, "--target", "load", "--models", "persistence,arx-lr", "--json")
    assert json.loads(out)["data"]["series"] == 2
    assert [one["name"] for one in json.loads(run("datasets", "list", "--json")[0])] == [
        "appliances",
        "bidmc",
        "beijing",
    ]


@pytest.mark.parametrize("form", ["csv", "semicolons", "gzip", "parquet"])
def test_any_form_comes_through_a_pipe_and_goes_out_of_one(form: str, folder: Path, run: Run) -> None:
    frame = sites()
    buffer = io.BytesIO()
    if form == "parquet":
        frame.to_parquet(buffer)
    else:
        text = frame.to_csv(index=False, sep=";" if form == "semicolons" else ",").encode()
        buffer.write(gzip.compress(text) if form == "gzip" else text)
    out, words = run("predict", folder / "m.varnn", "-", stdin=buffer.getvalue())
    assert words == ""
    written = pd.read_csv(io.StringIO(out))
    panel = Panel.from_frame(frame, target="load", time="when", series="site")
    expected = panel.in_caller_order(load(folder / "m.varnn").predict(panel))
    np.testing.assert_allclose(written["prediction"], expected, rtol=1e-9)
    np.testing.assert_allclose(written["load"], frame["load"], rtol=1e-14)  # as pandas reads numbers
    assert written["site"].tolist() == frame["site"].tolist()


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz", "out.parquet"])
def test_intervals_are_those_of_the_library_in_any_form(
    name: str, folder: Path, run: Run, tmp_path: Path
) -> None:
    path = tmp_path / name
    levels = ("--interval", "0.9", "--interval", "0.5")
    run("predict", folder / "m.varnn", folder / "sites.csv", "-o", path, *levels)
    written = pd.read_parquet(path) if name.endswith("parquet") else pd.read_csv(path)
    panel = Panel.read(folder / "sites.csv", target="load", time="when", series="site")
    _, lower, upper = load(folder / "m.varnn").predict(panel, interval=[0.9, 0.5])
    for index, level in enumerate(["90", "50"]):
        np.testing.assert_allclose(written[f"lower_{level}"], panel.in_caller_order(lower[:, index]))
        np.testing.assert_allclose(written[f"upper_{level}"], panel.in_caller_order(upper[:, index]))


def test_a_stream_answers_with_the_intervals_of_the_library(folder: Path, run: Run) -> None:
    lines = [
        {"x": [0.5], "interval": 0.9},
        {"x": [0.5], "interval": [0.5, 0.9], "y": 0.1},
        {"x": [0.4], "interval": 9},
        {"x": [0.4]},
    ]
    out, _ = run("stream", folder / "m.varnn", stdin="\n".join(map(json.dumps, lines)).encode())
    one, several, wrong, without = map(json.loads, out.splitlines())
    live = load(folder / "m.varnn").stream()
    expected = live.predict([0.5], interval=0.9)
    assert one == {"prediction": expected.prediction, "lower": expected.lower, "upper": expected.upper}
    assert several["upper"] == live.predict([0.5], interval=[0.5, 0.9]).upper.tolist()
    assert "levels above 0" in wrong["error"]
    assert without.keys() == {"prediction"}


@pytest.mark.parametrize("fill", ["forward", "zero"])
def test_parts_of_a_long_series_are_predicted_as_the_whole_is(
    fill: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(0)
    X, y = random.normal(size=(300, 2)), random.normal(size=300)
    X[:3, 0] = X[40:140, 0] = X[200, 1] = np.nan  # gaps longer than a part, too
    y[90:110] = np.nan
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "load": y})
    frame.to_csv(tmp_path / "long.csv", index=False)
    panel = Panel.from_frame(frame, target="load")
    model = VARNNRegressor.paper("RM", epochs=1, hidden_size=8, fill=fill).fit(panel)
    for size in (7, 50, 299, 300):
        monkeypatch.setattr(_predictions, "_ROWS_AT_ONCE", size)
        parts = list(_predictions.pieces(model, understand(tmp_path / "long.csv"), []))
        assert len(parts) == -(-300 // size)
        joined = np.concatenate([part["prediction"] for part in parts])
        np.testing.assert_allclose(joined, model.predict(panel), rtol=1e-5, atol=1e-6)


def test_a_kind_that_the_first_block_does_not_show_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "late.csv"
    path.write_text("a,b,load\n" + "1,,2\n" * 300_000 + "1.5,7,3\n")
    panel = Panel.read(path, target="load")
    assert panel.inputs[-1].tolist() == [1.5, 7.0]
    assert np.isnan(panel.inputs[0, 1])


@pytest.fixture(scope="module")
def timed(folder: Path) -> Path:
    """Fit a model that knows when its rows were."""
    panel = Panel.read(folder / "sites.csv", target="load", time="when", series="site", inputs=["heat"])
    VARNNRegressor(epochs=1, hidden_size=4, ensemble=1).fit(panel).save(folder / "timed.varnn")
    return folder


@pytest.mark.parametrize("mixed", [True, False])
def test_rows_that_follow_the_training_rows_start_from_them(
    timed: Path, run: Run, mixed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By their times, or as told; in parts, and where the table mixes its series, too."""
    table = sites(90)[120:]
    if not mixed:
        table = table.sort_values(["site", "when"])
    table.to_csv(timed / "later.csv", index=False)
    model = load(timed / "timed.varnn")
    panel = Panel.read(timed / "later.csv", target="load", time="when", series="site")
    kept = len(model.fitted_.last_rows["north"].target)
    monkeypatch.setattr(_predictions, "_ROWS_AT_ONCE", 7)
    for options, resume in (((), True), (("--resume",), True), (("--no-resume",), False)):
        out = timed / "later.out.csv"
        _, said = run(
            "predict", timed / "timed.varnn", timed / "later.csv", "-o", out, "--interval", "0.9", *options
        )
        assert (f"Starts from the last {kept} training rows." in said) == resume
        found = model.predict(panel, interval=0.9, resume=resume)
        written = pd.read_csv(out)
        for name, values in zip(("prediction", "lower_90", "upper_90"), found, strict=True):
            np.testing.assert_allclose(written[name], panel.in_caller_order(values), rtol=1e-6, atol=1e-6)
    facts, said = run("predict", timed / "timed.varnn", timed / "later.csv", "-o", out, "--json")
    assert json.loads(facts)["training_rows_before"] == kept and not said
    _, said = run("predict", timed / "timed.varnn", timed / "sites.csv", "-o", out)
    assert "Starts from" not in said


def test_a_start_from_nothing_is_said(timed: Path, run: Run) -> None:
    """Where some series are new, and where rows come after a gap: the first of them are predicted worse."""
    kept = len(load(timed / "timed.varnn").fitted_.last_rows["north"].target)
    later, out = sites(90)[120:], timed / "gap.out.csv"
    later.assign(site=later["site"].replace("south", "east")).to_csv(timed / "new.csv", index=False)
    _, said = run("predict", timed / "timed.varnn", timed / "new.csv", "-o", out)
    assert f"Starts from the last {kept} training rows; 1 of 2 series from nothing: 'east'." in said
    sites(90)[130:].to_csv(timed / "gap.csv", index=False)
    _, said = run("predict", timed / "timed.varnn", timed / "gap.csv", "-o", out)
    assert "Starts from nothing: the rows begin 1 h after the training rows end. --resume starts" in said
    _, said = run("predict", timed / "timed.varnn", timed / "gap.csv", "-o", out, "--no-resume")
    assert "Starts from" not in said


def test_what_does_not_follow_is_refused_in_one_line(timed: Path) -> None:
    for table, options, message in (
        (sites(), ["--resume"], "rows come after the training rows"),
        (sites().drop(columns="load"), ["--no-resume"], "leave out --no-resume, or give their labels"),
    ):
        table.to_csv(timed / "wrong.csv", index=False)
        done = CliRunner().invoke(
            app, ["predict", str(timed / "timed.varnn"), str(timed / "wrong.csv"), *options]
        )
        assert isinstance(done.exception, VarnnError) and message in str(done.exception)


def test_a_stream_of_lines_starts_from_the_training_rows(timed: Path, run: Run) -> None:
    table = sites(90)[120:]
    panel = Panel.from_frame(table, target="load", time="when", series="site", inputs=["heat"])
    expected = panel.in_caller_order(load(timed / "timed.varnn").predict(panel, resume=True))
    lines = [
        json.dumps({"series": site, "x": {"heat": heat}, "y": label, "time": str(when)})
        for when, site, heat, label in table[["when", "site", "heat", "load"]].itertuples(index=False)
    ]
    out, _ = run("stream", timed / "timed.varnn", "--resume", stdin="\n".join(lines).encode())
    found = [json.loads(line)["prediction"] for line in out.splitlines()]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    out, _ = run("stream", timed / "timed.varnn", stdin="\n".join(lines).encode())
    assert json.loads(out.splitlines()[0])["prediction"] != pytest.approx(found[0], abs=1e-3)
