"""Tables as people have them, one fault each: every command works on them, or says in one line what to do.

The files are in ``tests/awkward``: an hourly load, and the heat that goes with it, written in one odd way.
"""

import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from varnn import Panel, VARNNRegressor
from varnn.cli.app import main
from varnn.errors import DataError, RowError

FOLDER = Path(__file__).with_name("awkward")
HOURS = ("2024-03-25 00:00", "2024-03-27 11:00", "every 1 h")
QUICK = ("--epochs", "1", "--hidden-size", "4", "--ensemble", "1")

Run = Callable[..., "Outcome"]


class Outcome(NamedTuple):
    code: int
    out: str
    error: str


class Good(NamedTuple):
    """A table that is understood, and a part of what is to be said of it."""

    name: str
    said: str = ""
    times: tuple[str, str, str] = HOURS
    time: str = "time"
    inputs: tuple[str, ...] = ("heat",)
    rows: int = 60


class Bad(NamedTuple):
    """A table that is refused, a part of the message, and the options that mend it, if any do."""

    name: str
    said: str
    mended: tuple[str, ...] = ()
    times: tuple[str, str, str] | None = HOURS
    rows: int = 60


UNDERSTOOD = [
    Good("us-dates", "month/day/year"),
    Good("day-first", "day/month/year"),
    Good("dots", "day/month/year"),
    Good("early-in-the-month", "month/day/year", ("2024-03-01 00:00", "2024-03-03 11:00", "every 1 h")),
    Good("two-digit-years", "month/day/year", ("2024-03-25 00:00", "2024-04-08 18:00", "every 6 h")),
    Good("month-names", "day month year"),
    Good("am-pm", "month/day/year"),
    Good("epoch-seconds", "seconds since 1970", time="timestamp"),
    Good("epoch-milliseconds", "milliseconds since 1970", time="ts"),
    Good("compact", "dates written as numbers"),
    Good("date-and-time", "day/month/year", time="Date, Time"),
    Good("date-and-hour", "year/month/day", time="dteday, hr"),
    Good("year-month-day-hour", time="year, month, day, hour"),
    Good("offsets", "read as UTC", ("2024-03-30 00:00", "2024-04-01 11:00", "every 1 h")),
    Good("semicolons", "decimal comma"),
    Good("tabs"),
    Good("bom"),
    Good("latin-1", "Latin-1", inputs=("wärme",)),
    Good("utf-16", "UTF-16"),
    Good("sentinel", "'heat' holds -200 6 times"),
    Good("missing-in-twelve-ways"),
    Good("trailing", "3 empty rows at the end are left out"),
    Good("index-column", "only counts the rows"),
    Good(
        "categories",
        "text is read as categories: 'weather' (3 values)",
        inputs=("heat", "weather=sun", "weather=rain", "weather=fog"),
    ),
    Good("long-format", time="ds", rows=120),
    Good("thousands"),
]
REFUSED = [
    Bad(
        "ambiguous-dates",
        "'01/02/2024' may be month/day/year or day/month/year",
        ("--time-format", "day-first"),
        ("2024-02-01 00:00", "2024-02-12 00:00", "every 1 d"),
        rows=12,
    ),
    Bad(
        "summer-time-ends",
        "--time-zone",
        ("--time-zone", "Europe/Berlin"),
        ("2024-10-26 00:00", "2024-10-28 11:00", "every 1 h"),
    ),
    Bad(
        "newest-first",
        "All rows run from the latest to the earliest: --sort puts",
        ("--sort",),
    ),
    Bad("shuffled", "32 of 59 steps do not go forward: --sort", ("--sort",)),
    Bad("duplicates", "line 8 repeats 2024-03-25T05:00:00", ("--duplicates", "first")),
    Bad(
        "numbered-stores",
        "Times increase within column 'store': if it names series, say --series 'store'",
        ("--series", "store"),
        rows=120,
    ),
    Bad("bad-target", "column 'load' must hold numbers; line 11 holds 'broken'", ("--missing", "broken")),
    Bad("bad-input", "column 'heat' must hold numbers; line 12 holds 'warm'", ("--inputs", "none")),
    Bad("no-names", "the first line must hold the names of the columns"),
    Bad("unknown-date", "--time none", ("--time", "none"), None),
    Bad("impossible-date", "line 22 holds '13/45/2024 20:00'"),
]


@pytest.fixture
def run(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Run:
    def once(*arguments: str | Path) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["varnn", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO())))
        with pytest.raises(SystemExit) as left:
            main()
        out, error = (one.decode() for one in capfdbinary.readouterr())
        assert isinstance(left.value.code, int)
        return Outcome(left.value.code, out, error)

    return once


def path(name: str) -> Path:
    return FOLDER / f"{name}.csv"


def test_every_table_of_the_folder_is_looked_at() -> None:
    known = {one.name for one in UNDERSTOOD} | {one.name for one in REFUSED} | {"constant"}
    assert {one.stem for one in FOLDER.glob("*.csv")} == known


@pytest.mark.parametrize("case", UNDERSTOOD, ids=lambda one: one.name)
def test_a_table_reaches_a_page_with_dates_and_a_model(case: Good, run: Run, tmp_path: Path) -> None:
    compared = run(
        *("compare", path(case.name), "--target", "load", "--models", "persistence,arx-lr"),
        *("--report", tmp_path / "page.html"),
    )
    assert compared.code == 0, compared.error
    assert case.said in compared.error
    page = (tmp_path / "page.html").read_text()
    assert re.search(r"<text[^>]*>[^<]*(2024|Mar|Apr|\d\d:\d\d)", page), "no date on any axis"
    fitted = run("fit", path(case.name), "--target", "load", *QUICK, "-o", tmp_path / "m.varnn", "--json")
    assert fitted.code == 0, fitted.error
    facts = json.loads(fitted.out)["data"]
    assert (facts["first_time"], facts["last_time"], facts["step"]) == case.times
    assert (facts["time"], facts["rows"], facts["inputs"]) == (case.time, case.rows, list(case.inputs))
    predicted = run("predict", tmp_path / "m.varnn", path(case.name), "-o", tmp_path / "p.csv")
    assert predicted.code == 0, predicted.error
    written = pd.read_csv(tmp_path / "p.csv")
    assert len(written) == case.rows
    assert written["prediction"].notna().all()


@pytest.mark.parametrize("case", UNDERSTOOD, ids=lambda one: one.name)
def test_a_forecast_goes_on_in_time(case: Good, run: Run, tmp_path: Path) -> None:
    done = run("forecast", path(case.name), "--target", "load", "--horizon", "2", "-o", tmp_path / "f.csv")
    assert done.code == 0, done.error
    written = pd.read_csv(tmp_path / "f.csv")
    column = case.time if "," not in case.time else "time"
    last, step = pd.Timestamp(case.times[1]), pd.Timedelta(case.times[2].removeprefix("every "))
    assert pd.to_datetime(written[column]).tolist()[-2:] == [last + step, last + 2 * step]
    assert written["prediction"].notna().all()


def test_a_constant_target_is_said_to_be_nothing_to_learn(
    run: Run, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    done = run("fit", path("constant"), "--target", "load", *QUICK, "-o", tmp_path / "m.varnn")
    assert done.code == 0, done.error
    assert "the target 'load' is 7 in all" in caplog.text


@pytest.mark.parametrize("command", ["compare", "fit", "forecast"])
@pytest.mark.parametrize("case", REFUSED, ids=lambda one: one.name)
def test_a_table_is_refused_in_one_line_that_names_the_fix(
    case: Bad, command: str, run: Run, tmp_path: Path
) -> None:
    output = ("--report", tmp_path / "out") if command == "compare" else ("-o", tmp_path / "out")
    done = run(command, path(case.name), "--target", "load", *output)
    assert done.code == 2
    assert len(done.error.splitlines()) == 1
    assert case.said in done.error
    assert "--time none" not in done.error or case.name == "unknown-date"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("case", [one for one in REFUSED if one.mended], ids=lambda one: one.name)
def test_the_fix_that_is_named_mends_it(case: Bad, run: Run, tmp_path: Path) -> None:
    model = tmp_path / "m.varnn"
    done = run("fit", path(case.name), "--target", "load", *QUICK, "-o", model, *case.mended, "--json")
    assert done.code == 0, done.error
    facts = json.loads(done.out)["data"]
    assert facts["rows"] == case.rows
    if case.times:
        assert (facts["first_time"], facts["last_time"], facts["step"]) == case.times
    if "--inputs" in case.mended:
        return
    predicted = run("predict", model, path(case.name), "-o", tmp_path / "p.csv", *case.mended)
    assert predicted.code == 0, predicted.error
    assert len(pd.read_csv(tmp_path / "p.csv")) == case.rows


def test_a_bad_target_is_not_advised_to_be_left_out() -> None:
    with pytest.raises(RowError) as bad:
        Panel.read(path("bad-target"), target="load", time="time")
    assert "leave the column out" not in str(bad.value)
    with pytest.raises(RowError, match="leave the column out"):
        Panel.read(path("bad-input"), target="load", time="time")


def test_predictions_of_rows_that_repeat_a_time_stand_beside_the_rows_that_were_kept(
    run: Run, tmp_path: Path
) -> None:
    model = tmp_path / "m.varnn"
    panel = Panel.read(path("duplicates"), target="load", time="date_time", duplicates="last")
    VARNNRegressor(epochs=1, hidden_size=4, ensemble=1).fit(panel).save(model)
    done = run("predict", model, path("duplicates"), "--duplicates", "last", "-o", tmp_path / "p.csv")
    assert done.code == 0, done.error
    written = pd.read_csv(tmp_path / "p.csv", parse_dates=["date_time"])
    assert written["date_time"].tolist() == pd.Series(panel.time).tolist()
    assert written["load"].tolist() == panel.target.tolist()


def test_shuffled_rows_are_predicted_in_the_order_of_the_table(run: Run, tmp_path: Path) -> None:
    model = tmp_path / "m.varnn"
    panel = Panel.read(path("shuffled"), target="load", time="time", sort=True)
    fitted = VARNNRegressor(epochs=1, hidden_size=4, ensemble=1).fit(panel)
    fitted.save(model)
    done = run("predict", model, path("shuffled"), "--sort", "-o", tmp_path / "p.csv")
    assert done.code == 0, done.error
    written = pd.read_csv(tmp_path / "p.csv", parse_dates=["time"]).set_index("time")["prediction"]
    expected = pd.Series(fitted.predict(panel), index=pd.DatetimeIndex(np.asarray(panel.time)))
    pd.testing.assert_series_equal(
        written.sort_index(), expected, check_names=False, check_index_type=False, rtol=1e-9
    )
    asked = pd.read_csv(path("shuffled"), parse_dates=["time"])["time"]
    assert written.index.tolist() == asked.tolist()


def test_python_hears_of_what_calls_for_a_second_look(caplog: pytest.LogCaptureFixture) -> None:
    panel = Panel.read(path("sentinel"), target="load")
    assert "'heat' holds -200 6 times" in caplog.text
    assert "'time' looks like times and is not used as such" in caplog.text
    assert sum(note.is_doubt for note in panel.notes) == 2


def test_a_sentinel_that_is_named_is_missing() -> None:
    panel = Panel.read(path("sentinel"), target="load", time="time", missing=[-200])
    assert pd.isna(panel.inputs).sum() == 6
    assert not any(note.is_doubt for note in panel.notes)


def test_a_misspelt_argument_of_read_is_named() -> None:
    with pytest.raises(ValueError, match="dublicates"):
        Panel.read(path("bom"), target="load", dublicates="first")


def test_an_hour_that_comes_twice_is_two_hours_in_utc() -> None:
    panel = Panel.read(path("summer-time-ends"), target="load", time="time", time_zone="Europe/Berlin")
    assert (pd.Series(panel.time).diff().dropna() == pd.Timedelta("1h")).all()
    with pytest.raises(ValueError, match="must name a zone"):
        Panel.read(path("summer-time-ends"), target="load", time="time", time_zone="Europe/Berlln")
    with pytest.raises(ValueError, match="do not say their own"):
        Panel.read(path("offsets"), target="load", time="time", time_zone="Europe/Berlin")


@pytest.mark.parametrize("rows", [1, 2])
def test_text_columns_of_several_chunks(rows: int) -> None:
    """As pandas 3 holds them after concat, and after reading a longer file."""
    one = pd.DataFrame({"s": ["a"] * rows + ["b"] * rows, "y": range(2 * rows), "t": ["1.5"] * 2 * rows})
    frame = pd.concat([one, one[::-1]], ignore_index=True)
    panel = Panel.from_frame(frame, target="y", series="s")
    assert panel.ids == ("a", "b")
    assert panel.lengths.tolist() == [2 * rows, 2 * rows]
    assert panel.inputs.ravel().tolist() == [1.5] * 4 * rows


def test_no_time_but_an_order_asked_for() -> None:
    with pytest.raises(ValueError, match="Name the `time` column"):
        Panel.read(path("bom"), target="load", sort=True)


def test_a_time_of_day_alone_is_no_time() -> None:
    frame = pd.DataFrame({"at": [pd.Timestamp("2024-01-01 05:00").time()], "y": [1.0]})
    with pytest.raises(DataError, match="must hold dates"):
        Panel.from_frame(frame, target="y", time="at")


def written(folder: Path, name: str, lines: list[str]) -> Path:
    (folder / name).write_text("\n".join(lines) + "\n")
    return folder / name


def test_a_model_remembers_how_its_table_was_read(run: Run, tmp_path: Path) -> None:
    rows = [f"{day:02d}/02/2024,{-200 if day == 5 else 20 + day},{day % 4}" for day in range(1, 13)]
    data = written(tmp_path, "few.csv", ["time,heat,load", *rows])
    model, options = tmp_path / "m.varnn", ("--time-format", "day-first", "--missing", "-200")
    done = run("fit", data, "--target", "load", *QUICK, *options, "-o", model)
    assert done.code == 0, done.error
    alike = run("predict", model, data, "-o", tmp_path / "a.csv", "--json")
    said = run("predict", model, data, "-o", tmp_path / "b.csv", *options, "--json")
    assert alike.code == said.code == 0, alike.error
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert json.loads(alike.out)["data"]["inputs_missing"] > 0
    assert json.loads(alike.out)["data"]["last_time"] == "2024-02-12 00:00"


def test_weather_told_twice_for_an_hour_is_no_series(run: Run, tmp_path: Path) -> None:
    times = pd.date_range("2024-01-01", periods=200, freq="h")
    rows = []
    for place, one in enumerate(times):
        rows.append(f"{one},{['Clear', 'Rain', 'Mist'][place // 9 % 3]},{place % 24}")
        rows += [f"{one},Snow,{place % 24}"] if place % 15 == 0 else []
    data = written(tmp_path, "metro.csv", ["date_time,weather_main,load", *rows])
    refused = run("fit", data, "--target", "load", *QUICK, "-o", tmp_path / "m.varnn")
    assert refused.code == 2
    assert "--duplicates" in refused.error
    done = run(
        *("fit", data, "--target", "load", *QUICK, "-o", tmp_path / "m.varnn"),
        *("--duplicates", "first", "--json"),
    )
    assert done.code == 0, done.error
    facts = json.loads(done.out)["data"]
    assert (facts["rows"], facts["series"], facts["step"]) == (200, 1, "every 1 h")
    predicted = run("predict", tmp_path / "m.varnn", data, "-o", tmp_path / "p.csv", "--json")
    assert json.loads(predicted.out)["data"]["series"] == 1


def test_a_format_is_enough_to_find_the_column(run: Run, tmp_path: Path) -> None:
    months = pd.date_range("2010-01-01", periods=60, freq="MS").strftime("%b-%y")
    rows = [f"{month},{place % 12}" for place, month in enumerate(months)]
    data = written(tmp_path, "months.csv", ["period,load", *rows])
    assert "--time-format" in run("fit", data, "--target", "load", "-o", tmp_path / "m.varnn").error
    done = run("forecast", data, "--target", "load", "--time-format", "%b-%y", "--horizon", "5", "-o", "-")
    assert done.code == 0, done.error
    times = pd.read_csv(io.StringIO(done.out))["period"].tolist()
    assert [one[:10] for one in times] == [f"2015-{month:02d}-01" for month in range(1, 6)]


def test_a_bad_time_cell_is_named_by_its_line(run: Run, tmp_path: Path) -> None:
    rows = [f"2024-01-{day:02d},{day}" for day in range(1, 29)]
    rows[9] = "garbage,10"
    data = written(tmp_path, "bad.csv", ["time,load", *rows])
    said = run("fit", data, "--target", "load", "-o", tmp_path / "m.varnn").error
    assert "line 11 holds 'garbage'" in said


def test_what_is_empty_far_off_or_mostly_a_sentinel_is_said(run: Run, tmp_path: Path) -> None:
    rows = []
    for hour in range(240):
        gas, load = -200 if hour % 8 else 5.5, 9e9 if hour == 70 else hour % 5
        rows.append(f"2024-01-{1 + hour // 24:02d} {hour % 24}:00,,{gas},{hour % 7},{load}")
    data = written(tmp_path, "odd.csv", ["time,nothing,gas,heat,load", *rows])
    done = run("fit", data, "--target", "load", *QUICK, "-o", tmp_path / "m.varnn")
    assert done.code == 0, done.error
    assert "nothing is in column 'nothing', which is left out" in done.error
    assert "column 'gas' holds -200 210 times" in done.error
    assert "column 'load' holds 9e+09 in row 71, far from its other values" in done.error


def test_the_length_of_a_month_is_the_calendars() -> None:
    from varnn.model.forecast.rows import coming_times

    ends = np.array(["2023-10-31", "2023-11-30", "2023-12-31"], dtype="datetime64[D]")
    by_days = Panel.from_arrays(None, [1.0, 2.0, 3.0], time=ends)
    assert coming_times(by_days, 1).astype(str).tolist() == [["2024-01-31"]]
    same = np.array(["2023-10-31", "2024-01-31", "2024-04-30"], dtype="datetime64[D]")
    quarters = np.array(["2023-01-15", "2023-04-15", "2023-07-15"], dtype="datetime64[D]")
    assert coming_times(Panel.from_arrays(None, [1.0, 2.0, 3.0], time=quarters), 3).astype(str).tolist() == [
        ["2023-10-15", "2024-01-15", "2024-04-15"]
    ]
    assert coming_times(Panel.from_arrays(None, [1.0, 2.0, 3.0], time=same), 1).shape == (1, 1)


def test_rows_without_labels_that_do_not_follow_are_pointed_out(caplog: pytest.LogCaptureFixture) -> None:
    frame = pd.read_csv(path("bom"), parse_dates=["time"])
    model = VARNNRegressor(epochs=1, hidden_size=4, ensemble=1).fit(
        Panel.from_frame(frame, target="load", time="time")
    )
    model.predict_frame(frame.drop(columns="load"))
    assert "as if they came after the training rows" in caplog.text
