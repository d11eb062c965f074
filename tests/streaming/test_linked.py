"""Series that see each other, streamed row by row: the numbers of a batch, whoever is missing."""

import copy
import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from varnn import Details, Panel, VARNNRegressor
from varnn.cli.app import main
from varnn.errors import DataError, ModelFileError
from varnn.streaming.linked import LinkedStreams
from varnn.streaming.stream import Stream

START = np.datetime64("2026-01-05T00:00")
ROWS, NAMES = 90, ("a", "b", "c")
CLOSE: Any = {"rtol": 2e-4, "atol": 2e-4}  # as the fleet's test has it
Line = dict[str, Any]
Pipe = Callable[..., list[Any]]


def panel_of(*, holes: bool, timed: bool = True) -> Panel:
    """Make three series that share what moves them; labels are missing, with ``holes`` whole rows as well."""
    generator = np.random.default_rng(3)
    rows, common = np.arange(ROWS), np.cumsum(generator.normal(size=ROWS))
    x = generator.normal(size=(3, ROWS, 2))
    y = 50 + common + generator.normal(size=(3, ROWS)) + x[..., 0]
    y[generator.random((3, ROWS)) < 0.15] = np.nan
    there = np.ones((3, ROWS), dtype=bool)
    if holes:
        there = generator.random((3, ROWS)) > 0.25
        there[1, :20] = False  # b comes late
        there[2, 70:] = False  # c ends early
    place = np.tile(rows, 3)[there.ravel()]
    return Panel.from_arrays(
        x.reshape(-1, 2)[there.ravel()],
        y.ravel()[there.ravel()],
        series=np.repeat(NAMES, ROWS)[there.ravel()],
        time=START + place * np.timedelta64(1, "h") if timed else None,
    )


@pytest.fixture(scope="module", params=[None, ["day"]], ids=["no clock", "clock"])
def model(request: pytest.FixtureRequest) -> VARNNRegressor:
    settings: Any = {"hidden_size": 8, "epochs": 2, "ensemble": 2, "window": 4, "device": "cpu"}
    return VARNNRegressor(
        peers=True, calendar=request.param, details=Details(forgetting=0.99), **settings
    ).fit(panel_of(holes=False))


def moments(panel: Panel, *, timed: bool = True) -> Iterator[list[tuple[int, Line]]]:
    """Give the lines of each moment with their rows in the panel, the series in an order that changes."""
    owner = np.repeat(panel.ids, panel.lengths)
    when = np.arange(len(panel)) - panel.first_rows if panel.time is None else panel.time
    for turn, moment in enumerate(np.unique(when)):
        lines = []
        for row in np.roll(np.flatnonzero(when == moment), turn):
            label = panel.target[row]
            line = {"series": str(owner[row]), "x": panel.inputs[row].tolist()}
            line["y"] = None if np.isnan(label) else float(label)
            if timed:
                line["time"] = str(moment)
            lines.append((int(row), line))
        yield lines


@pytest.fixture
def pipe(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Pipe:
    """Give a function that sends lines through ``varnn stream``."""

    def once(model: VARNNRegressor, lines: list[Any], *options: str) -> list[Any]:
        model.save(tmp_path / "m.varnn")
        text = "\n".join(json.dumps(line) for line in lines).encode()
        monkeypatch.setattr(sys, "argv", ["varnn", "stream", str(tmp_path / "m.varnn"), *options])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(text))))
        with pytest.raises(SystemExit) as left:
            main()
        out, error = capfdbinary.readouterr()
        assert left.value.code == 0, error.decode()
        assert not error, "nothing but answers"
        return [json.loads(line) for line in out.splitlines()]

    return once


def in_order(rows: list[int], answers: list[Line]) -> Any:
    predictions = np.full(len(rows), np.nan)
    predictions[rows] = [one["prediction"] for one in answers]
    return predictions


@pytest.mark.parametrize("timed", [True, False])
def test_lines_one_by_one_equal_the_batch(model: VARNNRegressor, pipe: Pipe, timed: bool) -> None:
    if not timed and model.fitted_.pipeline.calendar:
        pytest.skip("a model with a clock needs times")
    panel = panel_of(holes=False, timed=timed)
    sent = [pair for lines in moments(panel, timed=timed) for pair in lines]
    answers = pipe(model, [line for _, line in sent])
    ours, theirs = in_order([row for row, _ in sent], answers), model.predict(panel)
    np.testing.assert_allclose(ours, theirs, **CLOSE)
    innovations = [one["innovation"] for one in answers]
    expected = [None if np.isnan(panel.target[row]) else panel.target[row] - theirs[row] for row, _ in sent]
    for found, wanted in zip(innovations, expected, strict=True):
        assert found == (None if wanted is None else pytest.approx(wanted, rel=1e-3, abs=1e-3))


@pytest.mark.parametrize("asks_first", [False, True])
def test_lists_equal_the_batch_whoever_is_missing(
    model: VARNNRegressor, pipe: Pipe, asks_first: bool
) -> None:
    panel = panel_of(holes=True)
    assert 100 < len(panel) < 3 * ROWS - 40
    rows, lines = [], []
    for moment in moments(panel):
        rows += [row for row, _ in moment]
        if asks_first:  # all x of a moment, then all y
            lines.append([{k: v for k, v in line.items() if k != "y"} for _, line in moment])
            lines.append([{"series": line["series"], "y": line["y"]} for _, line in moment])
        else:
            lines.append([line for _, line in moment])
    answers = pipe(model, lines)
    if asks_first:
        answers = answers[::2]
    ours = in_order(rows, [one for answer in answers for one in answer])
    np.testing.assert_allclose(ours, model.predict(panel), **CLOSE)


def test_who_is_missing_matters(model: VARNNRegressor, pipe: Pipe) -> None:
    """Lines one by one cannot know who will not come: close to the batch, and not equal to it."""
    panel = panel_of(holes=True)
    sent = [pair for lines in moments(panel) for pair in lines]
    ours = in_order([row for row, _ in sent], pipe(model, [line for _, line in sent]))
    theirs = model.predict(panel)
    assert not np.allclose(ours, theirs, **CLOSE)
    assert np.abs(ours - theirs).mean() < 0.5 * np.nanstd(panel.target - theirs)


def test_a_state_file_holds_what_the_others_brought(
    model: VARNNRegressor, pipe: Pipe, tmp_path: Path
) -> None:
    panel = panel_of(holes=False)
    lines: list[Line] = []
    for moment in moments(panel):
        lines += [{k: v for k, v in line.items() if k != "y"} for _, line in moment]
        lines += [{"series": line["series"], "y": line["y"]} for _, line in moment]
    lines = lines[:200]
    whole = pipe(model, lines)
    for cut in (100, 101, 103, 104):  # within the questions and within the labels of a moment
        state = tmp_path / f"{cut}.state"
        parts = [pipe(model, some, "--state", str(state)) for some in (lines[:cut], lines[cut:])]
        answers = parts[0] + parts[1]
        counts = dict.fromkeys(NAMES, 0)
        for one in answers:
            counts[one["series"]] += 1
            assert one.pop("seq") == counts[one["series"]]
        assert answers == whole


def test_what_cannot_be_used_changes_nothing(model: VARNNRegressor, pipe: Pipe) -> None:
    lines = [line for moment in moments(panel_of(holes=False)) for _, line in moment][:60]
    clean = pipe(model, lines)
    far = "2062-01-01T00:00"
    bad: list[Any] = [
        {"series": "a", "x": [float("inf"), 1.0], "time": far},
        {"series": "a", "x": [1.0, 10**400], "time": far},
        {"series": "a", "x": [1.0, 2.0], "time": "yesterday"},
        {"series": "a", "x": [1.0, 2.0], "time": "NaT"},
        {"series": "a", "x": [1.0, 2.0], "time": 7},
        {"series": "a", "x": [1.0, 2.0]},
        {"series": "a", "x": [1.0, 2.0], "time": far, "interval": 2},
        {"series": "new", "x": [1.0], "time": far},
        {"series": "new", "y": 1.0},
        [
            {"series": "a", "x": [1.0, 2.0], "time": far},
            {"series": "b", "x": [1.0, 2.0], "time": lines[0]["time"]},
        ],
        [1],
        [],
        {"series": "a", "x": [1.0, 2.0], "time": "2025-01-01T00:00"},  # over
    ]
    for between in (False, True):  # also with a step open
        mixed: list[Any] = []
        for line in lines:
            question = {k: v for k, v in line.items() if k != "y"}
            mixed += [question, *bad, {"series": line["series"], "y": line["y"]}] if between else [*bad, line]
        if not between:
            mixed = mixed[len(bad) :]  # before the first row any time is fine
        answers = [one for one in pipe(model, mixed) if "error" not in one]
        if between:
            answers = [one | other for one, other in zip(answers[::2], answers[1::2], strict=True)]
        assert answers == clean


def test_a_label_that_comes_late_counts_as_missing_until_then(model: VARNNRegressor) -> None:
    def begun() -> LinkedStreams:
        live = LinkedStreams(model)
        for name in ("a", "b"):
            live[name] = live.begin()
        for row in range(10):
            for name in ("a", "b"):
                live[name].predict([0.1, 0.2], time=START + row * np.timedelta64(1, "h"))
                live[name].observe(50.0 + row)
        return live

    now, later = START + np.timedelta64(10, "h"), START + np.timedelta64(11, "h")
    late, missing, known = begun(), begun(), begun()
    for live in (late, missing, known):
        live["a"].predict([0.0, 0.0], time=now)
        live["b"].predict([0.0, 0.0], time=now)
        live["b"].observe(70.0)
    missing["a"].observe(None)
    known["a"].observe(64.0)
    x = [0.3, 0.3]
    before, without, with_it = (live["b"].predict(x, time=later) for live in (late, missing, known))
    assert before == without != with_it
    late["a"].observe(64.0)
    assert late["b"].predict(x, time=later) == pytest.approx(with_it, rel=1e-12)


def test_order_of_time_and_one_row_at_a_time(model: VARNNRegressor) -> None:
    live = LinkedStreams(model)
    live["a"] = live.begin()
    live["a"].predict([0.0, 0.0], time="2026-01-05T10:00")
    live["a"].predict([0.0, 0.0], time="2026-01-05T10:00")  # asked again
    live["a"].observe(1.0)
    for time, words in (
        ("2026-01-05T10:00", "one row at a time"),
        ("2026-01-05T09:00", "in the order of time"),
        (None, "none of them"),
        (5, "must be a timestamp"),
        ("soon", "must be a timestamp"),
    ):
        with pytest.raises(DataError, match=words):
            live["a"].predict([0.0, 0.0], time=time)
    assert np.isfinite(live["a"].predict([0.0, 0.0], time="2026-01-05T12:00"))


def test_a_list_without_times_is_a_round_of_its_own(model: VARNNRegressor) -> None:
    if model.fitted_.pipeline.calendar:
        pytest.skip("a model with a clock needs times")
    live = LinkedStreams(model)
    for names in ("abc", "ac", "bc"):
        with live.together(names):
            for name in names:
                live[name] = live.get(name) or live.begin()
                live[name].predict([0.0, 0.0])
                live[name].observe(1.0)
    assert live.now is not None
    assert live.now.value == 2
    assert [one.time_step.value for one in live.values() if hasattr(one, "time_step")] == [1, 2, 2]


def test_no_series_is_copied_without_the_others(model: VARNNRegressor) -> None:
    with pytest.raises(TypeError, match="copied with them"):
        copy.copy(LinkedStreams(model).begin())


def test_a_snapshot_belongs_to_its_model(model: VARNNRegressor) -> None:
    blob = LinkedStreams(model).snapshot()
    other = VARNNRegressor(peers=True, calendar=None, epochs=1, hidden_size=4).fit(panel_of(holes=False))
    with pytest.raises(ModelFileError, match="another model"):
        LinkedStreams.restore(other, blob)


def test_an_x_that_is_not_finite_leaves_the_open_step_of_any_stream_as_it_was() -> None:
    X = np.random.default_rng(0).normal(size=(80, 2))
    fitted = VARNNRegressor(epochs=1, hidden_size=4).fit(X, X[:, 0])
    clean, disturbed = Stream(fitted), Stream(fitted)
    for x in X[:6]:
        assert clean.predict(x) == disturbed.predict(x)
        with pytest.raises(DataError, match="must be finite"):
            disturbed.predict([np.inf, 0.0])
        assert clean.observe(0.5) == disturbed.observe(0.5)


def test_a_wild_first_label_of_the_others_is_seen_as_in_a_batch(model: VARNNRegressor) -> None:
    """What the linear part leaves of it is more than any change could be: nobody is told."""
    panel = panel_of(holes=False)
    panel.target[panel.starts[:-1]] += 60.0
    x, y, wanted = panel.inputs.reshape(3, ROWS, 2), panel.target.reshape(3, ROWS), model.predict(panel)
    times = [None] * ROWS if panel.time is None else panel.time[:ROWS]
    fleet, linked, found = model.stream(3), LinkedStreams(model), np.empty((2, 3, ROWS))
    for name in NAMES:
        linked[name] = linked.begin()
    for row, time in enumerate(times):
        found[0, :, row] = fleet.predict(x[:, row], time=time)
        fleet.observe(y[:, row])
        for index, name in enumerate(NAMES):
            found[1, index, row] = linked[name].predict(x[index, row], time=time)
            linked[name].observe(y[index, row])
    for ours in found:
        np.testing.assert_allclose(ours.ravel(), wanted, **CLOSE)
