"""Folders of Parquet files scored: what one panel gives, whatever the files and workers."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

from tests.scale.meters import ROLES, TINY, fitted, meters, panel_of, together, written
from varnn import Panel, VARNNRegressor
from varnn.data.blas import one_blas_thread
from varnn.errors import ConfigError, DataError, OutputError
from varnn.scale import Models, ScoredFile, _groups, _score_file, fit_many, score_files
from varnn.scale._score_rows import GroupReader


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Predict with as many threads as a worker: with more, BLAS rounds otherwise (to 1e-7)."""
    with one_blas_thread():
        yield


@pytest.fixture(scope="module")
def frame() -> polars.DataFrame:
    return meters()


@pytest.fixture(scope="module")
def model(frame: polars.DataFrame) -> VARNNRegressor:
    """Trained on the first rows of some of the meters."""
    names = [f"m{number:03}" for number in range(6)]
    early = frame.filter(polars.col("meter").is_in(names)).group_by("meter", maintain_order=True).head(200)
    return fitted(early)


def expected(model: VARNNRegressor, frame: polars.DataFrame, **options: Any) -> polars.DataFrame:
    """What ``predict`` says of all rows in one panel."""
    panel = panel_of(frame)
    found = model.predict(panel, interval=0.9, **options)
    columns = {
        name: panel.in_caller_order(values)
        for name, values in zip(("prediction", "lower_90", "upper_90"), found, strict=True)
    }
    return frame.select("when", "meter", "load").with_columns(**columns).sort("meter", "when")


def same(ours: polars.DataFrame, theirs: polars.DataFrame) -> None:
    """Compare tables: numbers to the last digits, as BLAS rounds by the shape of a product."""
    assert ours.columns == theirs.columns
    for name in ours.columns:
        if ours[name].dtype == polars.Float64:
            np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-11, atol=1e-11)
        else:
            assert ours[name].to_list() == theirs[name].to_list(), name


@pytest.mark.parametrize("workers", [1, 2])
def test_predictions_are_those_of_one_panel(
    workers: int, model: VARNNRegressor, frame: polars.DataFrame, tmp_path: Path
) -> None:
    assert len(frame) > 2048  # where compiled code is used
    seen: list[ScoredFile] = []
    scored = score_files(
        model,
        written(frame, tmp_path / "in"),
        tmp_path / "out",
        interval=0.9,
        workers=workers,
        on_file=seen.append,
    )
    same(together(tmp_path / "out"), expected(model, frame))
    assert [one.name for one in scored.files] == [f"part-{number}.parquet" for number in range(4)]
    assert sorted(seen) == sorted(scored.files)
    assert not scored.failures
    assert scored.rows == len(frame)
    assert sum(one.series for one in scored.files) == 12
    assert [one.name for one in (tmp_path / "out").iterdir() if one.name.startswith(".")] == []


@pytest.mark.parametrize("rows", [1, 300, 1000])
def test_groups_make_no_difference(
    rows: int,
    model: VARNNRegressor,
    frame: polars.DataFrame,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_groups.groups, "__kwdefaults__", {"rows": rows, "longest": 1 << 20})
    score_files(model, written(frame, tmp_path / "in", 2), tmp_path / "out", interval=0.9, workers=1)
    same(together(tmp_path / "out"), expected(model, frame))


def test_rows_that_follow_the_training_rows_start_from_these(tmp_path: Path) -> None:
    frame = meters(rows=450)
    each = frame.group_by("meter", maintain_order=True)
    model = fitted(each.head(200).filter(polars.col("meter") < "m006"))
    later = (
        each.agg(polars.all().slice(200))
        .explode([one for one in frame.columns if one != "meter"])
        .select(frame.columns)
    )
    where = written(later, tmp_path / "in")
    for resume in (None, False, True):
        score_files(model, where, tmp_path / "out", interval=0.9, workers=1, after_training=resume)
        same(together(tmp_path / "out"), expected(model, later, resume=resume))


def test_a_series_that_is_too_long_goes_through_a_stream(
    model: VARNNRegressor, frame: polars.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Series of 250 rows and more come in pieces of 100; the last is whole again where it ends with one."""
    monkeypatch.setattr(_groups.groups, "__kwdefaults__", {"rows": 50, "longest": 100})
    monkeypatch.setattr(_score_file, "batches", lambda *given: _small(*given))
    score_files(model, written(frame, tmp_path / "in"), tmp_path / "out", interval=0.9, workers=1)
    ours, theirs = together(tmp_path / "out"), expected(model, frame)
    same(ours.select("when", "meter", "load"), theirs.select("when", "meter", "load"))
    for name in ("prediction", "lower_90", "upper_90"):
        assert ours[name].to_list() == theirs[name].to_list()  # a stream takes the same step


def _small(file: Any, path: Path, columns: Any) -> Any:
    from varnn.scale.parquet import batches

    return batches(file, path, columns, 40)


def test_a_series_that_is_too_long_must_be_in_order(
    model: VARNNRegressor, frame: polars.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pieces of it are sorted one by one, which is not the order of all."""
    one = frame.filter(polars.col("meter") == "m000").sort("when", descending=True)
    where = written(one, tmp_path / "in", 1)
    assert not score_files(model, where, tmp_path / "held", sort=True, workers=1).failures
    monkeypatch.setattr(_groups.groups, "__kwdefaults__", {"rows": 50, "longest": 100})
    monkeypatch.setattr(_score_file, "batches", lambda *given: _small(*given))
    scored = score_files(model, where, tmp_path / "out", sort=True, workers=1)
    assert "must come in the order of time; after 2024-01-11" in scored.failures["part-0.parquet"]


def test_a_series_that_is_too_long_may_have_no_model(
    frame: polars.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = frame.filter(polars.col("meter") < "m002")
    fit_many(panel_of(some), VARNNRegressor(**TINY), path=tmp_path / "m.varnns", workers=1)
    monkeypatch.setattr(_groups.groups, "__kwdefaults__", {"rows": 50, "longest": 100})
    monkeypatch.setattr(_score_file, "batches", lambda *given: _small(*given))
    where = written(frame.filter(polars.col("meter") < "m003"), tmp_path / "in", 1)
    scored = score_files(tmp_path / "m.varnns", where, tmp_path / "out", interval=0.9, workers=1)
    assert not scored.failures and (scored.files[0].series, scored.files[0].without_model) == (3, 1)
    found = together(tmp_path / "out")
    assert found.filter(polars.col("meter") == "m002")["prediction"].is_null().all()
    assert found.filter(polars.col("meter") < "m002")["prediction"].is_not_null().all()


def test_a_series_in_two_files_is_a_failure_of_both(
    model: VARNNRegressor, frame: polars.DataFrame, tmp_path: Path
) -> None:
    """Each would be predicted as if the rows of the other had not been."""
    where, out = written(frame, tmp_path / "in"), tmp_path / "out"
    parts = [polars.read_parquet(where / f"part-{number}.parquet") for number in (1, 2)]
    late = parts[0].filter(polars.col("when") > polars.col("when").median(), meter="m001")
    parts[0].join(late, on=["meter", "when"], how="anti").write_parquet(where / "part-1.parquet")
    polars.concat([parts[1], late]).write_parquet(where / "part-2.parquet")
    for kept in (False, True):  # what was scored before is looked at, too
        scored = score_files(model, where, out, workers=1)
        assert list(scored.failures) == ["part-1.parquet", "part-2.parquet"]
        assert "series 'm001' is in 'part-2.parquet', too" in scored.failures["part-1.parquet"]
        assert "series 'm001' is in 'part-1.parquet', too" in scored.failures["part-2.parquet"]
        assert [one.is_kept for one in scored.files] == [kept, False, False, kept]
        assert sorted(one.name for one in out.iterdir()) == ["part-0.parquet", "part-3.parquet"]


def test_series_that_are_mixed_are_scored_where_the_file_is_small(
    model: VARNNRegressor, frame: polars.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mixed = frame.sort("when", maintain_order=True)
    where = written(mixed, tmp_path / "in", 2)
    score_files(model, where, tmp_path / "out", interval=0.9, workers=1)
    same(together(tmp_path / "out"), expected(model, frame))
    for number in range(2):  # rows stay where they were
        ours = polars.read_parquet(tmp_path / "out" / f"part-{number}.parquet")
        theirs = polars.read_parquet(where / f"part-{number}.parquet")
        assert ours["meter"].to_list() == theirs["meter"].to_list()
    monkeypatch.setattr(_score_file, "LONGEST", 1000)
    scored = score_files(model, where, tmp_path / "other", workers=1)
    assert all("partition_files" in why for why in scored.failures.values()) and len(scored.failures) == 2


def test_a_file_that_fails_does_not_stop_the_others(
    model: VARNNRegressor, frame: polars.DataFrame, tmp_path: Path
) -> None:
    where = written(frame, tmp_path / "in")
    (where / "a-broken.parquet").write_bytes(b"PAR1 and no more")
    whole = (where / "part-0.parquet").read_bytes()
    (where / "b-torn.parquet").write_bytes(whole[:4] + bytes(len(whole) // 2) + whole[4 + len(whole) // 2 :])
    polars.read_parquet(where / "part-1.parquet").drop("heat").write_parquet(where / "part-1.parquet")
    bad = polars.read_parquet(where / "part-2.parquet").with_columns(heat=polars.lit("warm"))
    bad.write_parquet(where / "part-2.parquet")
    scored = score_files(model, where, tmp_path / "out", interval=0.9, workers=1)
    names = ["a-broken.parquet", "b-torn.parquet", "part-1.parquet", "part-2.parquet"]
    assert list(scored.failures) == names
    assert "cannot be read as Parquet" in scored.failures["a-broken.parquet"]
    assert "input column 'heat' is not in the file" in scored.failures["part-1.parquet"]
    assert "'heat' must hold numbers; row 0 holds 'warm'" in scored.failures["part-2.parquet"]
    assert sorted(one.name for one in (tmp_path / "out").iterdir()) == ["part-0.parquet", "part-3.parquet"]


def test_a_second_run_does_what_is_missing_or_has_changed(
    model: VARNNRegressor, frame: polars.DataFrame, tmp_path: Path
) -> None:
    where, out = written(frame, tmp_path / "in"), tmp_path / "out"
    score_files(model, where, out, interval=0.9, workers=1)
    whole = together(out)
    (out / "part-1.parquet").unlink()
    (out / "part-2.parquet").write_bytes(b"half of a file")
    stamp = time.time_ns() + 10**9
    os.utime(where / "part-3.parquet", ns=(stamp, stamp))
    again = score_files(model, where, out, interval=0.9, workers=1)
    assert [one.is_kept for one in again.files] == [True, False, False, False]
    assert again.rows == len(frame) and again.files[0].series == 3
    same(together(out), whole)
    others: list[dict[str, Any]] = [{"resume": False}, {"interval": 0.8}, {"after_training": False}]
    for options in others:
        given = {"interval": 0.9, "workers": 1, **options}
        scored = score_files(model, where, out, **given)
        assert not any(one.is_kept for one in scored.files), options


def test_a_killed_worker_costs_another_try(
    model: VARNNRegressor, frame: polars.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("varnn.scale.scoring.score_file", killed_once)
    where = written(frame, tmp_path / "in")
    scored = score_files(model, where, tmp_path / "out", interval=0.9, workers=2)
    assert not scored.failures
    assert (tmp_path / "killed").exists()
    same(together(tmp_path / "out"), expected(model, frame))
    assert not list((tmp_path / "out").glob(".*"))


def killed_once(job: Any, scoring: Any) -> Any:
    """Score a file, but die in the middle of it, the first time."""
    once = job.output.parent.parent / "killed"
    if job.source.name == "part-1.parquet" and not once.exists():
        once.touch()
        written = GroupReader.predicted

        def die(*given: Any, **more: Any) -> Any:
            written(*given, **more)
            os.kill(os.getpid(), signal.SIGKILL)

        GroupReader.predicted = die  # type: ignore[method-assign]
    return _score_file.score_file(job, scoring)


def test_rows_without_any_label_go_on_after_the_training_rows(
    model: VARNNRegressor, frame: polars.DataFrame, tmp_path: Path
) -> None:
    names = [f"m{number:03}" for number in range(6)]
    later = frame.filter(polars.col("meter").is_in(names)).with_columns(load=polars.lit(None, polars.Float64))
    later = later.group_by("meter", maintain_order=True).head(20)
    score_files(model, written(later, tmp_path / "in", 3), tmp_path / "out", workers=1)
    panel = panel_of(later)
    theirs = later.with_columns(prediction=panel.in_caller_order(model.predict(panel))).sort("meter", "when")
    assert together(tmp_path / "out")["prediction"].to_list() == theirs["prediction"].to_list()
    without = written(later.drop("load"), tmp_path / "without", 3)
    score_files(model, without, tmp_path / "other", workers=1)
    assert together(tmp_path / "other")["prediction"].to_list() == theirs["prediction"].to_list()
    with pytest.raises(DataError, match="rows need labels"):
        score_files(model, without, tmp_path / "third", interval=0.9)
    with pytest.raises(ConfigError, match="after_training=False"):
        score_files(model, without, tmp_path / "third", after_training=False)
    stranger = later.with_columns(meter=polars.col("meter") + "x")
    scored = score_files(model, written(stranger, tmp_path / "strange", 6), tmp_path / "fourth", workers=1)
    assert len(scored.failures) == 6 and all("was not trained on" in one for one in scored.failures.values())


def test_a_series_without_a_label_is_predicted_beside_others(
    model: VARNNRegressor, frame: polars.DataFrame, tmp_path: Path
) -> None:
    silent = frame.with_columns(
        load=polars.when(polars.col("meter") == "m003").then(None).otherwise(polars.col("load"))
    )
    score_files(model, written(silent, tmp_path / "in", 12), tmp_path / "out", interval=0.9, workers=1)
    same(together(tmp_path / "out"), expected(model, silent))


def test_what_cannot_be_is_said(model: VARNNRegressor, frame: polars.DataFrame, tmp_path: Path) -> None:
    where = written(frame, tmp_path / "in")
    with pytest.raises(ConfigError, match="among the rows they are of"):
        score_files(model, where, where / "out")
    with pytest.raises(ConfigError, match="among the rows they are of"):
        score_files(model, where, where)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no Parquet files"):
        score_files(model, tmp_path / "empty", tmp_path / "out")
    with pytest.raises(DataError, match="there is no file or folder"):
        score_files(model, tmp_path / "nowhere", tmp_path / "out")
    with pytest.raises(ConfigError, match="must be a fitted VARNNRegressor"):
        score_files(VARNNRegressor(), where, tmp_path / "out")
    with pytest.raises(ConfigError, match=r"Panel\.read"):
        score_files(model, where, tmp_path / "out", speling=1)
    with pytest.raises(DataError, match="must have names"):
        score_files(model, where, tmp_path / "out", series="none")
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="must be a folder"):
        score_files(model, where, tmp_path / "file")
    scored = score_files(model, where, tmp_path / "out", series="metre", workers=1)
    assert (
        "series column 'metre' is not in the file. Did you mean 'meter'?" in scored.failures["part-0.parquet"]
    )


def test_linked_series_are_refused(frame: polars.DataFrame, tmp_path: Path) -> None:
    linked = fitted(frame.filter(polars.col("meter") < "m003"), peers=True)
    with pytest.raises(ConfigError, match="peers=True"):
        score_files(linked, written(frame, tmp_path / "in"), tmp_path / "out")


def test_each_series_may_have_a_model_of_its_own(frame: polars.DataFrame, tmp_path: Path) -> None:
    some = frame.filter(polars.col("meter") < "m004")
    fit_many(panel_of(some), VARNNRegressor(**TINY), path=tmp_path / "m.varnns", workers=1)
    where, out = written(frame.filter(polars.col("meter") < "m006"), tmp_path / "in", 2), tmp_path / "out"
    scored = score_files(tmp_path / "m.varnns", where, out, interval=0.9, workers=2)
    assert not scored.failures
    assert [(one.series, one.without_model) for one in scored.files] == [(3, 1), (3, 1)]
    models, found = Models.open(tmp_path / "m.varnns"), together(out)
    same(
        found.filter(polars.col("meter") < "m004").select("prediction", "lower_90", "upper_90"),
        polars.DataFrame(
            dict(
                zip(
                    ("prediction", "lower_90", "upper_90"),
                    models.predict(panel_of(some), interval=0.9),
                    strict=True,
                )
            )
        ),
    )
    assert found.filter(polars.col("meter") >= "m004")["prediction"].is_null().all()
    again = score_files(tmp_path / "m.varnns", where, out, interval=0.9, workers=1)
    assert all(one.is_kept and one.without_model == 1 for one in again.files)
    assert not any(one.is_kept for one in score_files(models, where, out, interval=0.9, workers=1).files)


def test_a_model_that_was_written_over_scores_anew(frame: polars.DataFrame, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    for name in ("m000", "m001"):
        fitted(frame.filter(polars.col("meter") == name)).save(tmp_path / "models" / f"{name}.varnn")
    where = written(frame.filter(polars.col("meter") < "m002"), tmp_path / "in", 1)
    for kept in (False, True):
        (one,) = score_files(tmp_path / "models", where, tmp_path / "out", workers=1).files
        assert one.is_kept == kept
    fitted(frame.filter(polars.col("meter") == "m001"), hidden_size=5).save(tmp_path / "new.varnn")
    # In its place, as cp does: nothing of the folder itself has changed.
    (tmp_path / "models" / "m001.varnn").write_bytes((tmp_path / "new.varnn").read_bytes())
    (one,) = score_files(tmp_path / "models", where, tmp_path / "out", workers=1).files
    assert not one.is_kept


@pytest.mark.usefixtures("local_ray")
def test_a_cluster_gives_the_same_to_the_last_bit_also_where_a_worker_is_killed(
    model: VARNNRegressor, frame: polars.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = written(frame, tmp_path / "in")
    score_files(model, where, tmp_path / "here", interval=0.9, workers=1)
    monkeypatch.setattr("varnn.scale.scoring.score_file", killed_once)
    scored = score_files(model, where, tmp_path / "there", interval=0.9, cluster="auto")
    assert not scored.failures
    assert (tmp_path / "killed").exists()
    assert together(tmp_path / "there").equals(together(tmp_path / "here"))


def test_tables_of_other_kinds(tmp_path: Path) -> None:
    """Whole numbers as names, single precision, folders below folders, rows in disorder, times twice."""
    frame = meters(6, 450).with_columns(
        meter=polars.col("meter").str.slice(1).cast(polars.Int64),
        heat=polars.col("heat").cast(polars.Float32),
    )
    model = fitted(frame.filter(polars.col("meter") < 4))
    doubled = polars.concat([frame, frame.gather_every(50).with_columns(load=polars.lit(9.0))])
    upset = doubled.sample(fraction=1.0, shuffle=True, seed=1).sort("meter", maintain_order=True)
    (tmp_path / "in" / "a=1").mkdir(parents=True)
    upset.filter(polars.col("meter") < 3).write_parquet(tmp_path / "in" / "a=1" / "x.parquet")
    upset.filter(polars.col("meter") >= 3).write_parquet(tmp_path / "in" / "y.pq")
    options: dict[str, Any] = {"sort": True, "duplicates": "first"}
    scored = score_files(model, tmp_path / "in", tmp_path / "out", workers=1, **options)
    assert scored.failures == {} and scored.rows == len(frame)
    for name, low, high in (("a=1/x.parquet", 0, 3), ("y.pq", 3, 6)):
        part = upset.filter(polars.col("meter").is_between(low, high, closed="left"))
        panel = Panel.from_frame(part.drop("unknown"), **ROLES, **options)
        found = polars.read_parquet(tmp_path / "out" / name, hive_partitioning=False)
        np.testing.assert_allclose(
            found["prediction"], panel.in_caller_order(model.predict(panel)), rtol=1e-6, atol=1e-6
        )
        assert found["meter"].dtype == polars.Int64


def test_a_file_without_rows_gives_one_without_rows(
    model: VARNNRegressor, frame: polars.DataFrame, tmp_path: Path
) -> None:
    where = written(frame, tmp_path / "in", 2)
    frame.head(0).write_parquet(where / "empty.parquet")
    scored = score_files(model, where, tmp_path / "out", interval=0.9, workers=1)
    assert scored.failures == {} and scored.files[0][:3] == ("empty.parquet", 0, 0)
    same(together(tmp_path / "out"), expected(model, frame))
    empty, full = (
        polars.read_parquet(tmp_path / "out" / name) for name in ("empty.parquet", "part-0.parquet")
    )
    assert empty.schema == full.schema


def test_one_series_without_a_name(tmp_path: Path) -> None:
    frame = meters(1, 3000).drop("meter", "unknown")
    model = VARNNRegressor(**TINY).fit(Panel.from_frame(frame.head(400), target="load", time="when"))
    later = frame.slice(400)
    later.write_parquet(tmp_path / "one.parquet")
    score_files(model, tmp_path / "one.parquet", tmp_path / "out", workers=1)
    found = polars.read_parquet(tmp_path / "out" / "one.parquet")
    panel = Panel.from_frame(later, target="load", time="when")
    np.testing.assert_allclose(found["prediction"], model.predict(panel), rtol=1e-11, atol=1e-11)
    assert found.columns == ["when", "load", "prediction"]
    cold = model.predict(panel, resume=False)
    assert abs(found["prediction"][0] - cold[0]) > 1e-6  # it went on after the training rows
