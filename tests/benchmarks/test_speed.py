"""The benchmarks: that they time what they say, refuse unequal contenders, and keep what they found."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from benchmarks import fresh
from benchmarks.__main__ import app
from benchmarks.record import Measured, read, save, significant, timed_rows
from benchmarks.robustness import fuzz
from benchmarks.speed import growth, page, plan, score, stream, stream_peers, train, train_torch
from benchmarks.speed.model import untrained
from benchmarks.speed.rounds import Contender, Timing, agree, interleave
from benchmarks.speed.train_case import Case
from varnn.errors import DataError, VarnnError

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
COMMITTED = [RESULTS / f"{bench}.json" for bench in plan.BENCHES]
COMMITTED += [path for bench in plan.DEFAULT_BENCHES if (path := RESULTS / f"{bench}.json").exists()]
COMMITTED.append(RESULTS / "service-load.json")


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_contenders_take_turns_and_steps_are_numbered_in_a_row() -> None:
    seen: list[tuple[str, int]] = []
    contenders = [
        Contender("one", lambda number: seen.append(("one", number))),
        Contender("four", lambda number: seen.append(("four", number)), steps=4),
        Contender("slow", lambda number: seen.append(("slow", number)), calls=1),
    ]
    timings = interleave(contenders, rounds=2, calls=3, warm_up=1, first=10)
    warm = [("one", 10), ("four", 10), ("slow", 10)]
    first = [("one", 11), ("one", 12), ("one", 13), ("four", 14), ("slow", 11)]
    second = [("one", 14), ("one", 15), ("one", 16), ("four", 18), ("slow", 12)]
    assert seen == warm + first + second
    assert [one.seconds.shape for one in timings] == [(2, 3), (2, 1), (2, 1)]


def test_times_are_per_step(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 1000, 8))
    monkeypatch.setattr("time.perf_counter", lambda: float(next(clock)))
    (timing,) = interleave([Contender("four", lambda number: None, steps=4)], rounds=1, calls=4)
    assert timing.median == 2.0


def test_rows_hold_medians_and_ratios_by_name() -> None:
    timings = [Timing("a", np.array([[1e-6, 3e-6, 2e-6]])), Timing("b", np.array([[9e-6], [7e-6], [5e-6]]))]
    rows = timed_rows(timings, ["a", "not there"], p99=True)
    assert rows[1] == {"contender": "b", "median us": 7.0, "best us": 5.0, "p99 us": 8.96, "time / a": 2.5}


@pytest.mark.parametrize("wrong", [lambda n: n + 0.01, lambda n: float("nan")])
def test_disagreement_is_refused(wrong: Any) -> None:
    right = Contender("right", lambda number: number + 1.0)
    assert (
        agree([right, Contender("close", lambda number: number + 1.0 + 1e-7)], calls=3, tolerance=1e-3) < 1e-6
    )
    with pytest.raises(VarnnError, match="'wrong' differs from 'right'"):
        agree([right, Contender("wrong", wrong)], calls=3, tolerance=1e-3)


SMALL = {
    "RM": Case("RM", n_inputs=3, window=4, batch=8, hidden_size=6),
    "ARM+AM": Case("ARM+AM", n_inputs=3, window=4, batch=8, hidden_size=6),
}


@pytest.fixture
def small_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "CASES", SMALL)
    monkeypatch.setattr("benchmarks.speed.train_case.ROWS", 200)


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.usefixtures("small_cases")
def test_training_steps_are_measured_and_checked(name: str) -> None:
    measured = Measured(**train.measure(name, threads=1, rounds=1, calls=2))
    names = [row["contender"] for row in measured.rows]
    assert names[:2] == ["varnn reference", "varnn fused"]
    assert names[-1] == "matrix products alone"
    assert {"torch, naive loop", "torch nn.RNN", "torch nn.GRU", "torch nn.LSTM"} < set(names)
    assert ("varnn compiled" in names or "varnn compiled (numba)" in measured.absent) == (name == "RM")
    keras = any("Keras VARNN" in str(one) for one in names)
    assert keras != any("Keras VARNN" in one for one in measured.absent)
    assert "torch, naive loop" in measured.checks[0]
    assert all(float(row["median us"] or 0) > 0 for row in measured.rows)


@pytest.mark.usefixtures("small_cases")
def test_a_contender_that_learns_something_else_stops_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    forward = train_torch.PlainVarnn.forward
    monkeypatch.setattr(train_torch.PlainVarnn, "forward", lambda self, x, y: forward(self, x, y) * 1.05)
    with pytest.raises(VarnnError, match="torch, naive loop"):
        train.measure("RM", threads=1, rounds=1, calls=1)


def test_whole_fits_are_timed_for_each_engine() -> None:
    measured = Measured(**train.measure_fit(threads=1, rounds=1, epochs=1, rows=700))
    assert [row["contender"] for row in measured.rows][:2] == ["varnn reference", "varnn fused"]
    assert "700 rows" in measured.title


@pytest.mark.parametrize(("variant", "multiplies"), [("RM", 3), ("ARM+AM", 3)])
def test_the_products_alone_are_those_of_forward_and_backward(
    variant: Any, multiplies: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(variant, n_inputs=9, window=6, batch=4, hidden_size=5)
    counted = 0

    def count(left: torch.Tensor, right: torch.Tensor, out: torch.Tensor) -> None:
        nonlocal counted
        counted += left.shape[0] * left.shape[1] * right.shape[1]

    step = train_torch.products(case).call
    monkeypatch.setattr(torch, "mm", count)
    step(0)
    # Each product of the forward pass comes back twice; that of the inputs once, for nobody asks
    # for the inputs' gradient. The first memory is zero, and so is what the second accumulates.
    memory = 9 * 5 * 5 + (5 * 5 * 5 + 9 * 9 * 4) * (variant == "ARM+AM")
    assert counted == 4 * (2 * 6 * 9 * 5 + multiplies * memory)


def test_scoring_is_measured_in_time_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def peak(function: str, *, name: str, **_: Any) -> float:
        asked.append(name)
        return 2e6

    monkeypatch.setattr(score, "call", peak)
    measured = Measured(**score.measure(threads=1, rounds=1, rows=3000))
    named = [row["contender"] for row in measured.rows]
    assert asked == named
    assert named[0] == score.STEPWISE
    assert {score.NUMPY, score.TORCH} < set(named)
    assert all(float(row["rows per s"] or 0) > 0 for row in measured.rows)
    assert all(float(row[f"time / {score.STEPWISE}"] or 0) > 0 for row in measured.rows)
    assert {(row["peak MB"], row[f"memory / {score.STEPWISE}"]) for row in measured.rows} == {(2.0, 1.0)}


def test_copies_take_the_memory_of_their_windows() -> None:
    rows = 200_000
    ours, copies = (
        fresh.call("benchmarks.speed.score:peak", threads=1, name=one, rows=rows)
        for one in (score.STEPWISE, score.NUMPY)
    )
    if ours is None:
        pytest.skip("this system keeps no count of the peak of memory")
    windows = 4 * rows * score.WINDOW * score.INPUTS
    assert ours < windows < copies < 2 * windows


def test_scoring_refuses_a_wrong_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score, "NEEDS", {score.STEPWISE: "numpy", score.NUMPY: "numpy"})
    monkeypatch.setattr(score, "_numpy", lambda *_: lambda windows, labels: labels[:, 0])
    with pytest.raises(VarnnError, match="copies, NumPy"):
        score.measure(threads=1, rounds=1, rows=100)


def test_streamed_steps_are_measured_and_checked() -> None:
    measured = Measured(**stream.measure(threads=1, rounds=1, calls=3))
    named = [row["contender"] for row in measured.rows]
    assert named[:2] == ["varnn Stream", "torch, eager"]
    assert sorted([*map(str, named), *measured.absent]) == sorted(["varnn Stream", *stream.PEERS])
    fleet = Measured(**stream.measure_fleet(threads=1, rounds=1, calls=2, n_series=50))
    assert fleet.title.startswith("50 series")
    assert float(fleet.rows[0]["series-steps per s"] or 0) > 0


def test_the_onnx_graph_is_the_cell() -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    fitted = untrained("RM", n_inputs=3, hidden_size=6, window=4)
    X, y = np.random.default_rng(0).normal(size=(12, 3)), np.arange(12.0)
    ours, theirs = (make(fitted, X, y) for make in (stream_peers.eager, stream_peers.onnx))
    np.testing.assert_allclose(
        [theirs(row) for row in range(12)], [ours(row) for row in range(12)], rtol=1e-5
    )


def test_growth_is_measured_point_by_point() -> None:
    base = {"rows": 300, "inputs": 2, "window": 3, "width": 4, "members": 1}
    grown = {"window": [5]}
    (row,) = Measured(**growth.measure(threads=1, variants=["ARM"], grown=grown, base=base)).rows
    assert (row["cell"], row["grown"], row["to"]) == ("ARM", "window", 5.0)
    assert float(row["fit s"] or 0) > 0


def test_a_process_of_its_own_has_its_threads_and_tells_why_it_failed() -> None:
    assert set(fresh.call("benchmarks.fresh:settings", threads=3).values()) == {"3"}
    with pytest.raises(VarnnError, match="unexpected keyword argument 'colour'"):
        fresh.call("benchmarks.fresh:settings", threads=1, colour="red")
    with pytest.raises(VarnnError, match=r"no stream 'moon'.*[^.]\. Run it alone"):
        fresh.call("benchmarks.accuracy.other_streams:measure", threads=1, name="moon")


def test_a_process_of_its_own_finds_the_benches_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "benchmarks.py").write_text("raise ImportError('another thing of that name')")
    monkeypatch.chdir(tmp_path)
    assert fresh.call("benchmarks.fresh:settings", threads=1)["OMP_NUM_THREADS"] == "1"
    assert fuzz.run(3).files == 3


TABLE = Measured(
    name="train RM",
    title="One step",
    threads=1,
    rows=[
        {"contender": "varnn reference", "median us": 1230.0, "time / varnn fused": 2.0},
        {"contender": "varnn fused", "median us": 615.0, "time / varnn fused": 1.0},
    ],
    checks=["losses agree"],
    absent=["Keras"],
)


def test_figures_come_back_from_their_file(tmp_path: Path) -> None:
    save(tmp_path / "a.json", [TABLE], "python -m benchmarks train")
    saved = read(tmp_path / "a.json")
    assert saved.measured == [TABLE]
    assert saved.command == "python -m benchmarks train"
    assert saved.complete
    assert {"machine", "torch", "numba", "load average at the end"} <= set(saved.made)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("not json", "must be a file written by"),
        ('{"format": 99}', "must have format 1"),
        (
            '{"format": 1, "command": "", "complete": true, "made": {}, "measured": [{"name": "x"}]}',
            "must be a file written by",
        ),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(DataError, match=message):
        read(tmp_path / "a.json")


def test_rows_with_other_columns_are_refused(tmp_path: Path) -> None:
    uneven = Measured(name="x", title="x", threads=1, rows=[{"a": 1.0}, {"b": 1.0}])
    save(tmp_path / "a.json", [uneven], "python -m benchmarks train")
    with pytest.raises(DataError, match="same columns"):
        read(tmp_path / "a.json")


def test_a_page_tells_figures_and_who_was_absent(tmp_path: Path) -> None:
    save(tmp_path / "train.json", [TABLE], "python -m benchmarks train")
    text = page.tables_page([tmp_path / "train.json"])
    assert "| varnn reference | 1,230 | 2 |" in text
    assert "Not installed, so not measured: Keras." in text
    assert "`python -m benchmarks train`\n" in text
    assert "## The default" not in text
    save(tmp_path / "train.json", [TABLE], "python -m benchmarks train", complete=False)
    assert "`python -m benchmarks train` was interrupted" in page.tables_page([tmp_path / "train.json"])


def test_the_committed_pages_are_what_the_committed_figures_give() -> None:
    assert (ROOT / "docs" / "performance.md").read_text() == page.page(COMMITTED)
    assert (ROOT / "docs" / "performance-tables.md").read_text() == page.tables_page(COMMITTED)


def test_the_published_network_is_answered_from_its_files() -> None:
    text = page.page(COMMITTED)
    assert "### The paper's network" in text
    rows = {row["contender"]: row for table in read(COMMITTED[0]).measured[:1] for row in table.rows}
    ratio = float(rows["Keras VARNN, fit()"]["best us"] or 0) / float(rows["varnn compiled"]["best us"] or 0)
    assert re.search(rf"^\| Keras VARNN, fit\(\) \| .* \| {ratio:.3g} \|$", text, re.MULTILINE)


@pytest.mark.parametrize("bench", [*plan.BENCHES, *plan.DEFAULT_BENCHES])
def test_every_measurement_of_the_plan_exists(bench: str) -> None:
    import importlib
    import inspect

    for run in plan.plan(bench, threads=[1, 2], rounds=1):
        module, name = run.function.split(":")
        function = getattr(importlib.import_module(module), name)
        inspect.signature(function).bind(threads=run.threads, **run.arguments)


def test_the_command_shows_and_saves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan.Run, "measure", lambda self: TABLE)
    out = tmp_path / "a.json"
    done = CliRunner().invoke(app, ["score", "--threads", "1,2", "--json", str(out)])
    assert done.exit_code == 0, done.output
    assert "varnn reference" in done.output
    assert "not installed, so not measured: Keras" in done.output
    saved = json.loads(out.read_text())
    assert (len(saved["measured"]), saved["complete"]) == (2, True)
    done = CliRunner().invoke(app, ["page", str(out), "-o", str(tmp_path / "p.md")])
    assert (tmp_path / "p.md").read_text() == page.page([out])


@pytest.mark.parametrize("threads", ["0", "one", "1,-2"])
def test_bad_thread_counts_are_refused(threads: str) -> None:
    done = CliRunner().invoke(app, ["score", "--threads", threads])
    assert "whole numbers from 1" in str(done.exception)


def test_figures_are_rounded_once() -> None:
    assert significant(significant(123456.0)) == significant(123456.0) == 123000.0
