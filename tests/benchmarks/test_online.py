"""The one-step tables: what a prediction may see, what is scored, and the page made of what was kept."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from benchmarks.fresh import run_module
from benchmarks.online import contenders, data, page, protocol, run
from benchmarks.online.data import FILES, Recorded
from benchmarks.online.protocol import Table, Task
from varnn.errors import ConfigError, DataError
from varnn.evaluation import metrics

ROOT = Path(__file__).parents[2]
SAVED = ROOT / "benchmarks" / "results" / "online.json"
MADE = Table("ETTh2", "ETTh2", "FSNet", 200, 250, 400)
SIMPLE = list(contenders.SIMPLE)


def made(rows: int = 450, channels: int = 3, *, seed: int = 0, hours: bool = True) -> Recorded:
    """Channels that follow each other, and the hour of the day."""
    generator = np.random.default_rng(seed)
    values = np.cumsum(generator.normal(size=(rows, channels)), axis=0) * 0.1
    values[1:, 0] += values[:-1, -1]
    values += np.sin(2 * np.pi * np.arange(rows) / 24)[:, None] + 0.1 * generator.normal(size=values.shape)
    times = np.datetime64("2026-01-01T00:00:00") + np.arange(rows) * np.timedelta64(3600, "s")
    return Recorded(values, tuple("abcdefgh"[:channels]), times if hours else None)


def online_file(name: str) -> None:
    if not any(path.is_file() for path in data.places(FILES[name])):
        pytest.skip(f"needs {FILES[name].name} in the folder `online` of VARNN_DATA_DIR")


def test_nothing_of_a_row_reaches_its_inputs() -> None:
    recorded, row = made(), 300
    later = recorded.values.copy()
    later[row:] = 99.0
    panels = [Task.of(MADE, replace(recorded, values=one)).panel("b") for one in (recorded.values, later)]
    assert np.array_equal(panels[0].inputs[: row + 1], panels[1].inputs[: row + 1], equal_nan=True)
    assert np.array_equal(panels[0].target[:row], panels[1].target[:row])
    assert (panels[0].inputs[row + 1] != panels[1].inputs[row + 1]).all()  # there it is known
    task = Task.of(MADE, recorded)
    assert panels[0].input_names == ("a, one row ago", "c, one row ago") and panels[0].target_name == "b"
    np.testing.assert_array_equal(panels[0].inputs[1:], task.rows.values[:-1, [0, 2]])
    assert np.isnan(panels[0].inputs[0]).all()
    assert panels[0].time is not None and task.rows.times is not None
    np.testing.assert_array_equal(panels[0].time, task.rows.times)


@pytest.mark.parametrize("contender", SIMPLE)
def test_no_simple_prediction_sees_its_row_or_a_later_one(contender: str) -> None:
    recorded, row = made(), 300
    later = recorded.values.copy()
    later[row:] += 9.0
    before, after = (
        contenders.SIMPLE[contender](Task.of(MADE, replace(recorded, values=one)))
        for one in (recorded.values, later)
    )
    assert before is not None and after is not None
    assert np.array_equal(before[: row + 1], after[: row + 1])
    assert (before[row + 1] != after[row + 1]).all()


def test_values_are_standardised_by_training_rows_alone() -> None:
    recorded = made()
    task = Task.of(MADE, recorded)
    assert task.rows.values.shape == (400, 3)  # nothing after the test part
    train = recorded.values[:200]
    np.testing.assert_allclose(task.rows.values[:200].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(task.rows.values[:200].std(axis=0), 1)
    np.testing.assert_allclose(
        task.rows.values[399] * train.std(axis=0) + train.mean(axis=0), recorded.values[399]
    )


def test_recursive_least_squares_is_ridge_regression_on_all_rows_before() -> None:
    values = Task.of(MADE, made()).rows.values
    found = contenders.recursive_least_squares(values, (1, 2))
    for row in (50, 399):
        regressors = np.column_stack([values[1 : row - 1], values[: row - 2], np.ones(row - 2)])
        model = Ridge(alpha=contenders.RIDGE, fit_intercept=False).fit(regressors, values[2:row])
        expected = model.predict(np.concatenate([values[row - 1], values[row - 2], [1.0]])[None])[0]
        np.testing.assert_allclose(found[row], expected, rtol=1e-6, atol=1e-9)


def test_persistence_is_scored_on_test_rows() -> None:
    task = Task.of(MADE, made())
    scores = contenders.simple_scores(task, "persistence")
    assert scores is not None
    steps = np.diff(task.rows.values[249:400, 1])
    assert scores["b"]["mse"] == pytest.approx(np.mean(steps**2))
    assert scores["b"]["mae"] == pytest.approx(np.mean(np.abs(steps)))


def test_a_day_is_found_in_the_times_or_does_not_apply() -> None:
    task = Task.of(MADE, made(hours=False))
    assert contenders.simple_scores(task, SIMPLE[2]) is None
    timed = contenders.simple_scores(Task.of(MADE, made()), SIMPLE[2])
    plain = contenders.simple_scores(Task.of(MADE, made()), SIMPLE[1])
    assert timed is not None and plain is not None and timed["c"]["mse"] != plain["c"]["mse"]


def test_the_default_learns_before_the_test_rows_and_is_scored_on_them() -> None:
    from varnn.estimator.regressor import VARNNRegressor

    quick: dict[str, Any] = {"epochs": 1, "ensemble": 1, "hidden_size": 8}
    task = Task.of(MADE, made())
    scores = contenders.default_scores(task, "b", 7, **quick)
    panel = task.panel("b")
    model = VARNNRegressor(random_state=7, **quick).fit(panel.between(0, 250))
    prediction, lower, upper = model.predict(panel.between(250, len(panel)), interval=0.9, resume=True)
    truth = panel.target[250:]
    assert scores["mse"] == metrics.mse(truth, prediction)
    assert scores["coverage"] == metrics.coverage(truth, lower, upper)
    assert scores["interval_score"] == metrics.interval_score(truth, lower, upper, 0.9)
    assert scores["seconds"] > 0


def test_cuts_are_those_of_the_papers() -> None:
    assert [Table.named(one).protocol for one in protocol.names()] == ["FSNet"] * 3 + ["ADAPT-Z"] * 2
    for name, rows in (("WTH", 35_064), ("Exchange", 7_588)):
        table = Table.named(name)
        assert (table.train, table.test) == (int(0.2 * rows), rows)
        assert table.test - table.validation == int(0.75 * rows)
    for name in ("ETTh1, 60/10/30", "ETTh2, 60/10/30"):
        table = Table.named(name)
        assert (table.train, table.validation, table.test) == (10_452, 12_194, 17_420)
    with pytest.raises(ConfigError, match="Did you mean 'ETTh2'"):
        Table.named("ETTh3")
    known = {(one["method"], one["table"]) for one in protocol.published()["figures"]}
    assert len(known) == len(protocol.published()["figures"]) == 24
    assert {table for _, table in known} == set(protocol.names())
    assert all(one["source"] and one["mse"] > 0 for one in protocol.published()["figures"])


@pytest.mark.parametrize(
    ("name", "errors"),
    [
        ("ETTh2", (0.404, 0.374)),
        ("WTH", (0.207, 0.1515)),
        ("Exchange", (0.0089, 0.0090)),
        ("ETTh1, 60/10/30", (0.194, 0.159)),
        ("ETTh2, 60/10/30", (0.087, 0.072)),
    ],
)
def test_the_files_are_read_as_others_read_them(name: str, errors: tuple[float, float]) -> None:
    table = Table.named(name)
    online_file(table.data)
    task = Task.of(table)
    assert len(task.rows.channels) == {"WTH": 12, "Exchange": 8}.get(table.data, 7)
    for contender, error in zip(SIMPLE, errors, strict=False):
        scores = contenders.simple_scores(task, contender)
        assert scores is not None
        mean = np.mean([one["mse"] for one in scores.values()])
        assert mean == pytest.approx(
            error, abs=0.0006 if error > 0.1 else 0.00006 if error < 0.01 else 0.0006
        )


def test_months_come_first_in_the_weather_and_its_counter_is_left_out() -> None:
    online_file("WTH")
    recorded = data.load("WTH")
    assert recorded.values.shape == (35_064, 12) and "time" not in recorded.channels
    assert recorded.times is not None
    assert (np.diff(recorded.times) == np.timedelta64(3600, "s")).all()


def test_a_file_that_is_not_here_or_not_itself_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("VARNN_DATA_DIR", raising=False)
    with pytest.raises(DataError, match=r"zhouhaoyi/ETDataset, ETT-small/ETTh2\.csv") as missing:
        data.load("ETTh2")
    assert "VARNN_DATA_DIR is not set" in str(missing.value) and "cache/varnn/online" in str(missing.value)
    monkeypatch.setenv("VARNN_DATA_DIR", str(tmp_path / "mine"))
    places = [
        str(path.relative_to(tmp_path)) if path.is_absolute() else str(path)
        for path in data.places(FILES["WTH"])
    ]
    assert places == ["mine/online/WTH.csv", "data/online/WTH.csv", "cache/varnn/online/WTH.csv"]
    (tmp_path / "mine" / "online").mkdir(parents=True)
    (tmp_path / "mine" / "online" / "ETTh2.csv").write_text("date,OT\n")
    with pytest.raises(DataError, match="must have SHA-256 a3dc2c59"):
        data.load("ETTh2")
    with pytest.raises(ConfigError, match="data must be one of"):
        data.load("moon")


@pytest.fixture
def made_rows(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let every file be a made one, long enough for its table."""
    widths = {"WTH": 12, "Exchange": 8}

    def load(name: str) -> Recorded:
        rows = {"WTH": 35_064, "Exchange": 7_588}.get(name, 17_420)
        return made(rows, min(widths.get(name, 7), 8), hours=name != "Exchange")

    monkeypatch.setattr(protocol, "load", load)
    yield


def finished(table: str, *, seeds: int = 2) -> list[run.Done]:
    """Made-up scores of every contender."""
    channels = Task.of(Table.named(table)).rows.channels
    done = []
    for contender in SIMPLE:
        mse = {"persistence": 1.0}.get(contender, 0.9)
        scores = {one: {"mse": mse, "mae": 0.5, "seconds": 0.1} for one in channels}
        done.append(run.Done(run.Job(table, contender), run.code(), scores, {"machine": "a machine"}))
    for number, channel in enumerate(channels):
        for seed in range(seeds):
            scores = {
                channel: {
                    "mse": 0.3 + 0.1 * number + 0.01 * seed,
                    "mae": 0.25,
                    "coverage": 0.89 + 0.01 * seed,
                }
            }
            scores[channel] |= {"interval_score": 2.0, "seconds": 3.0}
            job = run.Job(table, contenders.OURS, channel, 2025 + seed)
            done.append(run.Done(job, run.code(), scores, {"machine": "a machine"}))
    return done


@pytest.mark.usefixtures("made_rows")
def test_a_line_has_every_seed_whose_channels_are_all_there() -> None:
    done = finished("ETTh2")
    lines = {line["contender"]: line for line in run.summed_up(done, "")["lines"]}
    assert lines[contenders.OURS]["seeds"] == [2025, 2026]
    assert lines[contenders.OURS]["mse"] == pytest.approx([0.6, 0.61])
    assert lines[contenders.OURS]["channels"]["c"]["mse"] == pytest.approx([0.5, 0.51])
    lacking = [one for one in done if (one.job.channel, one.job.seed) != ("d", 2025)]
    (line,) = (one for one in run.summed_up(lacking, "")["lines"] if one["contender"] == contenders.OURS)
    assert line["seeds"] == [2026]


@pytest.mark.usefixtures("made_rows")
def test_the_page_of_made_up_scores(tmp_path: Path) -> None:
    done = [*finished("ETTh2"), *finished("ETTh1, 60/10/30", seeds=1)]
    source = tmp_path / "online.json"
    source.write_text(json.dumps(run.summed_up(done, "a command")))
    page.write(source, tmp_path / "online.md")
    text = (tmp_path / "online.md").read_text()
    assert "| **varnn's default** | measured here | 0.605 ± 0.0071 |" in text
    assert "- **ETTh2**: 0.605, 67% above the 0.362 of PatchTST, online; 33% below the 0.900 of" in text
    assert (
        "| LSTD | AAAI 2025 | 0.377 |" in text and "WTH |" not in text
    )  # what was not measured is not shown
    assert "Worst channel of varnn's default: g, 0.905 times persistence; 0 of 7 channels" in text
    assert "| ETTh2 | 0.250 ± 0.0000 | 89.5% | 89.5% | 2.000 | 3 |" in text
    assert "| ETTh2 | 0 to 2,879 | 2,880 to 3,599 | 3,600 to 14,399 | 10,800 |" in text
    assert "mean ± standard deviation over 1 or 2 seeds" in text


@pytest.mark.skipif(not SAVED.is_file(), reason="no results are committed yet")
def test_the_page_shows_the_committed_scores(tmp_path: Path) -> None:
    page.write(SAVED, tmp_path / "online.md")
    assert (ROOT / "docs" / "online.md").read_text() == (tmp_path / "online.md").read_text()
    assert "online.md" in (ROOT / "mkdocs.yml").read_text()
    lines = {(line["table"], line["contender"]): line for line in json.loads(SAVED.read_text())["lines"]}
    assert {table for table, contender in lines if contender == contenders.OURS} == set(protocol.names())
    for table, error in (("ETTh2", 0.404), ("WTH", 0.207), ("ETTh1, 60/10/30", 0.194)):
        assert lines[table, "persistence"]["mse"] == pytest.approx([error], abs=0.0005)


def test_finished_jobs_are_kept_and_those_of_other_code_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def call(function: str, *, threads: int, table: str, **job: Any) -> dict[str, Any]:
        asked.append(table)
        return {"scores": {"a": {"mse": 1.0}}, "made": {}}

    monkeypatch.setattr("benchmarks.fresh.call", call)
    jobs = [run.Job("ETTh2", "persistence"), run.Job("WTH", "persistence")]
    told: list[tuple[str, bool]] = []

    def on_done(one: run.Done, kept: bool) -> None:
        told.append((one.job.table, kept))

    run.run(jobs[:1], tmp_path, workers=1, on_done=on_done)
    other = run.Done(jobs[1], "other code", {"a": {"mse": 5.0}}, {})
    with (tmp_path / "jobs.jsonl").open("a") as file:
        file.write(json.dumps(asdict(other)) + '\n{"job": {"tab')  # and one that was cut off
    done = run.run(jobs, tmp_path, workers=2, on_done=on_done)
    assert asked == ["ETTh2", "WTH"]
    assert told == [("ETTh2", False), ("ETTh2", True), ("WTH", False)]
    assert [one.scores for one in done] == [{"a": {"mse": 1.0}}] * 2


def test_a_real_job_in_a_process_of_its_own(tmp_path: Path) -> None:
    online_file("Exchange")
    words = ("--data", "Exchange", "--contenders", "persistence", "--jobs", "1", "--output", str(tmp_path))
    for again in ("", " (done before)"):
        done = run_module("benchmarks.online.run", *words)
        assert done.stdout == f"Exchange, persistence: MSE 0.008921{again}; 0 left\n", done.stderr
    file = tmp_path / "results.json"
    done = run_module("benchmarks", "online", *words, "--json", str(file))
    assert done.returncode == 0, done.stderr
    (line,) = json.loads(file.read_text())["lines"]
    assert line["mse"] == pytest.approx([0.00892], abs=1e-5) and len(line["channels"]) == 8


def test_jobs_need_the_core_alone() -> None:
    """Where the jobs are done there may be no packages for commands, files, figures or other baselines."""
    absent = (
        "typer",
        "rich",
        "pyarrow",
        "pandas",
        "polars",
        "matplotlib",
        "lightgbm",
        "statsmodels",
        "numba",
    )
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({absent!r}))\n"
        "import numpy as np\n"
        "from benchmarks.online import run, contenders\n"
        "from benchmarks.online.protocol import Table, Task\n"
        "from benchmarks.online.data import Recorded\n"
        "values = np.random.default_rng(0).normal(size=(300, 2))\n"
        "times = np.datetime64('2026-01-01T00:00:00') + np.arange(300) * np.timedelta64(3600, 's')\n"
        "task = Task.of(Table('made', 'made', '', 150, 200, 300), Recorded(values, ('a', 'b'), times))\n"
        "print(contenders.default_scores(task, 'a', 1, epochs=1, ensemble=1, hidden_size=4)['mse'] > 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "True", done.stderr


def test_a_wrong_file_or_name_is_refused(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_text("{}")
    with pytest.raises(DataError, match="no file of"):
        page.write(wrong, tmp_path / "page.md")
    refused = run_module("benchmarks", "online", "--data", "moon")
    assert refused.returncode == 2 and "ETTh2" in refused.stderr
