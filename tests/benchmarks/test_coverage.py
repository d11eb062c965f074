"""The coverage bench: peers are what they say, figures are what they say, and its page shows them."""

import inspect
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app
from benchmarks.accuracy import coverage, coverage_page
from benchmarks.accuracy.coverage import ADAPTIVE, CONSTANT, LEVELS, OURS, Case, Found
from benchmarks.accuracy.coverage_peers import (
    GAMMAS,
    Predicted,
    adaptive,
    best_gamma,
    constant,
)
from benchmarks.record import Measured, Row, read, save
from tests.cases import random_panel
from varnn import VARNNRegressor, datasets, evaluation
from varnn.data.preparation import split_in_time
from varnn.errors import DataError
from varnn.evaluation.metrics import coverage as interval_coverage
from varnn.evaluation.metrics import interval_score

ROOT = Path(__file__).parents[2]
COMMITTED = ROOT / "benchmarks" / "results" / "coverage.json"
PAGE = ROOT / "docs" / "intervals-measured.md"


def made(rows: int, seed: int = 0) -> Predicted:
    generator = np.random.default_rng(seed)
    predictions = generator.normal(size=rows)
    return Predicted(predictions, predictions + generator.standard_t(4, size=rows))


def test_split_conformal_covers_what_comes_from_the_same_source() -> None:
    bounds = constant(made(4000), made(20_000, seed=1), LEVELS)
    labels = made(20_000, seed=1).labels[:, None]
    covered = ((labels >= bounds.lower) & (labels <= bounds.upper)).mean(axis=0)
    np.testing.assert_allclose(covered, LEVELS, atol=0.02)
    widths = bounds.upper - bounds.lower
    np.testing.assert_allclose(widths, np.tile(widths[:1], (20_000, 1)))


def test_mapie_is_adaptive_conformal_inference() -> None:
    """Against the few lines of the method: alpha moves by gamma (nominal - missed)."""
    pytest.importorskip("mapie")
    past, now, gamma = made(200), made(150, seed=1), 0.05
    found = adaptive(past, now, [0.9], gamma)
    errors = np.sort(past.labels - past.predictions)
    alpha = 0.1
    for row in range(150):
        places = np.array([np.floor(alpha / 2 * 201) - 1, np.ceil((1 - alpha / 2) * 201) - 1])
        low, high = errors[np.clip(places, 0, 199).astype(int)] + now.predictions[row]
        assert found.lower[row, 0] == pytest.approx(low)
        assert found.upper[row, 0] == pytest.approx(high)
        inside = low < now.labels[row] < high
        alpha = float(np.clip(alpha + gamma * (0.1 - (not inside)), 0, 1))


def test_the_step_size_is_the_one_that_scores_best() -> None:
    pytest.importorskip("mapie")
    past = made(300)
    past.labels[200:] += 6.0  # after a shift, the quickest follows best
    assert best_gamma(past) == max(GAMMAS)


@pytest.fixture(scope="module")
def judged() -> tuple[VARNNRegressor, evaluation.Parts, Found]:
    parts = evaluation.cut(random_panel([250, 200], missing=0.1, seed=4))
    model = VARNNRegressor(hidden_size=8, epochs=3, ensemble=1, window=4, device="cpu")
    model.fit(parts.train, validation=parts.validation)
    return model, parts, coverage.measure_intervals(model, parts, seed=3, week=True)


def test_figures_are_those_of_the_test_rows_with_labels(
    judged: tuple[VARNNRegressor, evaluation.Parts, Found],
) -> None:
    model, parts, found = judged
    rows = parts.scored()
    labels = parts.lead_in.target[rows]
    ours = model.predict(parts.lead_in, interval=0.9)
    lower, upper = ours.lower[rows], ours.upper[rows]
    (line,) = (row for row in found.rows if row["contender"] == OURS and row["level"] == 0.9)
    inside = (labels >= lower) & (labels <= upper)
    outside = np.maximum(lower - labels, 0) + np.maximum(labels - upper, 0)
    assert line["rows"] == rows.sum() < len(parts.test)
    assert line["seed"] == 3
    assert line["coverage"] == pytest.approx(inside.mean(), rel=1e-3)
    assert line["width"] == pytest.approx((upper - lower).mean(), rel=1e-3)
    assert line["score"] == pytest.approx((upper - lower + 20 * outside).mean(), rel=1e-3)
    # The test parts are 50 and 40 rows, so that a tenth is 5 of one series and 4 of the other.
    places = {row: (row - 200) // 5 for row in range(200, 250)} | {
        row: (row - 410) // 4 for row in range(410, 450)
    }
    tenths = np.array([places[row] for row in parts.lead_in.rows[rows]])
    worst = min(inside[tenths == tenth].mean() for tenth in range(10))
    assert line["worst tenth"] == pytest.approx(worst, rel=1e-3)


def test_every_contender_bounds_the_same_rows(
    judged: tuple[VARNNRegressor, evaluation.Parts, Found],
) -> None:
    pytest.importorskip("mapie")
    _, _, found = judged
    assert [(row["contender"], row["level"]) for row in found.rows] == [
        (name, level) for name in (OURS, CONSTANT, ADAPTIVE) for level in LEVELS
    ]
    assert len({row["rows"] for row in found.rows}) == 1


def test_constant_widths_are_those_of_each_series_own_validation_rows(
    judged: tuple[VARNNRegressor, evaluation.Parts, Found],
) -> None:
    model, parts, found = judged
    widths, counts = [], []
    errors = parts.validation.target - model.predict(parts.validation)
    for first, last, name in zip(
        parts.validation.starts, parts.validation.starts[1:], parts.validation.ids, strict=False
    ):
        mine = errors[first + 4 : last]
        sizes = np.sort(np.abs(mine[~np.isnan(mine)]))
        widths.append(2 * sizes[min(len(sizes), int(np.ceil((len(sizes) + 1) * 0.9))) - 1])
        index = parts.test.ids.index(name)
        counts.append(
            (~np.isnan(parts.test.target[parts.test.starts[index] : parts.test.starts[index + 1]])).sum()
        )
    (line,) = (row for row in found.rows if row["contender"] == CONSTANT and row["level"] == 0.9)
    assert line["width"] == pytest.approx(np.average(widths, weights=counts), rel=1e-3)


def test_every_synthetic_stream_and_every_data_set_is_measured() -> None:
    assert {f"synthetic, {kind}" for kind in datasets.synthetic.KINDS} < set(coverage.DATA)
    assert {"appliances", "bidmc", "beijing", "beijing, causal"} < set(coverage.DATA)
    inspect.signature(coverage.measure).bind(threads=1, **asdict(coverage.cases()[0]))


def test_a_made_stream_is_measured_from_fit_to_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("varnn.fitting.settings.STEPS", 20)
    monkeypatch.setattr("varnn.fitting.settings.EPOCHS", 1)
    monkeypatch.setattr(
        "benchmarks.accuracy.coverage.version", lambda name: None
    )  # MAPIE would take most of the time
    found = coverage.measure(threads=1, data="synthetic, drift", seed=1)
    assert [row["contender"] for row in found["rows"]] == [OURS] * 3 + [CONSTANT] * 3
    assert all(0.6 < float(row["coverage"] or 0) < 1 for row in found["rows"])


def fake(function: str, *, threads: int, data: str, seed: int) -> dict[str, list[Row]]:
    """Stand in for a measurement: scores that tell where they come from."""
    assert (function, threads) == ("benchmarks.accuracy.coverage:measure", 1)
    rows: list[Row] = [
        {
            "contender": name,
            "level": level,
            "seed": float(seed),
            "rows": 1200.0,
            "coverage": level + 0.002 * seed,
            "worst tenth": level - 0.05,
            "width": 2.0,
            "score": score + seed,
        }
        for name, score in ((OURS, 3.0), (CONSTANT, 4.0), (ADAPTIVE, 5.0))
        for level in LEVELS
    ]
    week: list[Row] = [
        {"time": f"2017-01-01T{hour:02}:00", "truth": None if hour == 3 else 5.0, "prediction": 5.0}
        | {"lower": 4.0, "upper": 6.0}
        for hour in range(24)
    ]
    return {"rows": rows, "week": week if data == coverage.SHOWN and seed == 0 else []}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    names = ["beijing, causal", "synthetic, drift"]
    found = {
        one: Found(**fake("benchmarks.accuracy.coverage:measure", threads=1, **asdict(one)))
        for one in coverage.cases(names, seeds=2)
    }
    save(tmp_path / "found.json", coverage.tables(found), "python -m benchmarks coverage")
    return tmp_path / "found.json"


def test_the_page_shows_means_over_seeds(saved: Path) -> None:
    coverage_page.write(saved, saved.with_name("page.md"))
    text = saved.with_name("page.md").read_text()
    ours_to_constant, ours_to_mapie = (3 / 4 + 4 / 5) / 2, (3 / 5 + 4 / 6) / 2
    ratios = f"{ours_to_constant:.3f} | {ours_to_mapie:.3f} |"
    assert f"| beijing, causal | 1,200 | {'90.1 | ' * 3}{'85.0 | ' * 3}{ratios}\n" in text
    assert "means over 2 seeds" in text
    assert "](page.svg)" in text
    svg = saved.with_name("page.svg").read_text()
    for word in ("90 % interval", "prediction", "truth"):
        assert f">{word}<" in svg


def test_without_a_week_or_mapie_there_is_still_a_page(tmp_path: Path) -> None:
    everyone = fake("benchmarks.accuracy.coverage:measure", threads=1, data="bidmc", seed=0)["rows"]
    rows = [row for row in everyone if row["contender"] != ADAPTIVE]
    save(tmp_path / "a.json", coverage.tables({Case("bidmc", 0): Found(rows, [])}), "x", complete=False)
    coverage_page.write(tmp_path / "a.json", tmp_path / "a.md")
    text = (tmp_path / "a.md").read_text()
    assert "| bidmc | 1,200 | 90.0 | 90.0 | - | 85.0 | 85.0 | - | 0.750 | - |" in text
    assert "It was interrupted" in text
    assert "from one seed" in text
    assert not (tmp_path / "a.svg").exists()


def test_other_figures_are_refused(tmp_path: Path) -> None:
    table = Measured(name="train RM", title="x", threads=1, rows=[{"contender": "x", "us": 1.0}])
    save(tmp_path / "a.json", [table], "python -m benchmarks train")
    with pytest.raises(DataError, match="those of `python -m benchmarks coverage`"):
        coverage_page.write(tmp_path / "a.json", tmp_path / "a.md")


def test_the_command_shows_and_saves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.fresh.call", fake)
    out = tmp_path / "a.json"
    arguments = ["coverage", "--data", "bidmc; synthetic, drift", "--seeds", "1", "--json", str(out)]
    done = CliRunner().invoke(app, arguments, env={"COLUMNS": "400"})
    assert done.exit_code == 0, done.output
    assert "synthetic, drift | 1,200 | 90.0" in done.output
    content = json.loads(out.read_text())
    assert content["complete"] and [one["name"] for one in content["measured"]] == [
        "coverage bidmc",
        "coverage synthetic, drift",
    ]
    done = CliRunner().invoke(app, ["coverage-page", str(out), "-o", str(tmp_path / "p.md")])
    assert done.exit_code == 0, done.output
    done = CliRunner().invoke(app, ["coverage", "--data", "moon"])
    assert "data must be one of" in str(done.exception)


def test_the_committed_page_is_what_the_committed_figures_give() -> None:
    saved = read(COMMITTED)
    assert PAGE.read_text() == coverage_page.page(saved, COMMITTED.name, f"{PAGE.stem}.svg")
    assert PAGE.with_suffix(".svg").is_file()


def test_on_a_real_house_intervals_hold_and_beat_a_constant_width() -> None:
    """On rows before the test part: a small model suffices to show it."""
    if not Path(os.environ.get("VARNN_DATA_DIR", "")).is_dir() or "VARNN_DATA_DIR" not in os.environ:
        pytest.skip("VARNN_DATA_DIR does not name a folder with the real data sets")
    before, _ = split_in_time(datasets.load("appliances", download=False), 0.8, 0.2)
    parts = evaluation.cut(before)
    settings: dict[str, Any] = {"ensemble": 1, "epochs": 3, "hidden_size": 32, "calendar": None}
    model = VARNNRegressor(**settings).fit(parts.train, validation=parts.validation)
    rows = parts.scored()
    ours = model.predict(parts.lead_in, interval=[0.9])
    labels = parts.lead_in.target[rows].astype(np.float64)
    bounds = ours.lower[rows, 0], ours.upper[rows, 0]
    past = Predicted(
        model.predict(parts.validation).astype(np.float64), parts.validation.target.astype(np.float64)
    )
    peer = constant(past, Predicted(ours.prediction[rows], labels), [0.9])
    theirs = interval_score(labels, peer.lower[:, 0], peer.upper[:, 0], 0.9)
    ratio = interval_score(labels, *bounds, 0.9) / theirs
    assert abs(interval_coverage(labels, *bounds) - 0.9) < 0.015
    assert ratio < 0.9
