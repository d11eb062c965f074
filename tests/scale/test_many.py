"""fit_many: each model is what a fit alone gives, a failure is alone, and nothing is done twice."""

import logging
import sys
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pandas as pd
import pytest

import varnn
from varnn import Details, Panel, VARNNRegressor
from varnn.errors import ConfigError, DataError, MissingExtraError, OutputError
from varnn.scale import Models, SeriesDone, fit_many

SMALL: dict[str, Any] = {"epochs": 2, "ensemble": 2, "hidden_size": 6, "random_state": 7}
ROWS = 80


def panel_of(names: list[str], seed: int = 0, rows: int = ROWS) -> Panel:
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(rows * len(names), 2))
    y = X[:, 0] + np.tile(np.sin(np.arange(rows) / 3), len(names)) + generator.normal(size=len(X)) / 5
    return Panel.from_arrays(X, y, series=np.repeat(np.array(names, dtype=object), rows))


def of_series(panel: Panel, name: str) -> Panel:
    place = panel.ids.index(name)
    return panel.between(int(panel.starts[place]), int(panel.starts[place + 1]))


def with_labels(panel: Panel, name: str, value: float) -> Panel:
    place = panel.ids.index(name)
    target = panel.target.copy()
    target[panel.starts[place] : panel.starts[place + 1]] = value
    return Panel.from_arrays(panel.inputs, target, series=np.repeat(np.array(panel.ids), panel.lengths))


def same_model(one: VARNNRegressor, other: VARNNRegressor, rows: Panel) -> None:
    for name, matrix in one.fitted_.weights.as_dict().items():
        np.testing.assert_array_equal(matrix, other.fitted_.weights.as_dict()[name])
    found, wanted = (each.predict(rows, interval=0.9) for each in (one, other))
    for values, expected in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("workers", [1, 2])
def test_each_model_is_what_a_fit_of_its_series_alone_gives(workers: int, tmp_path: Path) -> None:
    panel = panel_of(["north", "south", "west"])
    models = fit_many(panel, VARNNRegressor(**SMALL), path=tmp_path / "all.varnns", workers=workers)
    assert list(models) == ["north", "south", "west"] and models.failures == {} and models.waiting == 0
    for name in models:
        alone = of_series(panel, name)
        same_model(models[name], VARNNRegressor(**SMALL).fit(alone), alone)


def test_on_a_cluster_the_same_comes_out(local_ray: None, tmp_path: Path) -> None:
    panel = with_labels(panel_of(["a", "b", "bad"]), "bad", np.nan)
    path = tmp_path / "m.varnns"
    models = fit_many(panel, VARNNRegressor(**SMALL), path=path, cluster="auto")
    assert list(models) == ["a", "b"] and list(models.failures) == ["bad"]
    same_model(models["b"], VARNNRegressor(**SMALL).fit(of_series(panel, "b")), of_series(panel, "b"))


def test_settings_that_go_beyond_the_default(tmp_path: Path) -> None:
    panel = panel_of(["a", "b"])
    model = VARNNRegressor(**SMALL, horizon=2, details=Details(context="window"))
    models = fit_many(panel, model, path=tmp_path / "m.varnns", workers=1)
    assert models["b"].forecast().prediction.shape == (1, 2)
    assert models["b"].get_params() == model.get_params()
    ((settings, count),) = models.settings
    assert count == 2 and settings["details"]["context"] == "window" and settings["horizon"] == 2


def test_a_model_for_each_of_several_settings() -> None:
    panel = panel_of(["a", "b"])
    regressors = {f"{size} units": VARNNRegressor(**{**SMALL, "hidden_size": size}) for size in (3, 5)}
    models = fit_many({name: (panel, one) for name, one in regressors.items()}, workers=1)
    assert list(models) == ["3 units", "5 units"] and len(models.settings) == 2
    for name, one in regressors.items():
        same_model(models[name], one.fit(panel), panel)


def test_bad_series_fail_alone(tmp_path: Path) -> None:
    good = panel_of(["a", "empty", "b"])
    broken = with_labels(good, "empty", np.nan)
    series = np.repeat(np.array(broken.ids), broken.lengths)
    short = Panel.from_arrays(
        np.vstack([broken.inputs, broken.inputs[:1]]),
        np.append(broken.target, 1.0),
        series=[*series, "one row"],
    )
    heard: list[SeriesDone] = []
    path = tmp_path / "m.varnns"
    models = fit_many(short, VARNNRegressor(**SMALL), path=path, workers=1, on_model=heard.append)
    assert list(models) == ["a", "b"] and set(models.failures) == {"empty", "one row"}
    assert "no value in the training rows" in models.failures["empty"]
    assert [one.done for one in heard] == [1, 2, 3, 4] and {one.total for one in heard} == {4}
    assert {one.name for one in heard if one.reason} == {"empty", "one row"}
    with pytest.raises(KeyError, match=r"series 'empty' has no model .* as it failed: the target"):
        models["empty"]
    same_model(models["b"], VARNNRegressor(**SMALL).fit(of_series(good, "b")), of_series(good, "b"))


def test_a_series_that_fails_is_tried_again_and_its_model_of_before_stays(tmp_path: Path) -> None:
    panel, path = panel_of(["a", "b"]), tmp_path / "m.varnns"
    before = fit_many(panel, VARNNRegressor(**SMALL), path=path, workers=1)["a"].predict(
        of_series(panel, "a")
    )
    broken = with_labels(panel, "a", np.nan)
    models = fit_many(broken, VARNNRegressor(**SMALL), path=path, workers=1)
    assert list(models.failures) == ["a"] and list(models) == ["a", "b"]
    np.testing.assert_array_equal(models["a"].predict(of_series(panel, "a")), before)
    assert fit_many(panel, VARNNRegressor(**SMALL), path=path, workers=1).failures == {}


def test_the_same_call_again_fits_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    panel, path = panel_of(["a", "b"]), tmp_path / "m.varnns"
    fit_many(panel, VARNNRegressor(**SMALL), path=path, workers=1)
    written = path.read_bytes()
    heard: list[SeriesDone] = []
    again = fit_many(
        panel, VARNNRegressor(**SMALL, device="cpu"), path=path, workers=1, on_model=heard.append
    )
    assert heard == [] and len(again) == 2 and path.read_bytes() == written
    more = panel_of(["a", "b", "c"])
    fit_many(more, VARNNRegressor(**SMALL), path=path, workers=1, on_model=heard.append)
    assert [one.name for one in heard if one.done] == ["a", "b", "c"]  # of another draw: all rows changed


@pytest.mark.parametrize("changed", ["rows", "settings"])
def test_what_changed_is_fitted_anew_and_said(
    changed: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    panel, path, settings = panel_of(["a", "b"]), tmp_path / "m.varnns", dict(SMALL)
    fit_many(panel, VARNNRegressor(**settings), path=path, workers=1)
    if changed == "rows":
        target = panel.target.copy()
        target[-1] += 1e-9
        panel = Panel.from_arrays(panel.inputs, target, series=np.repeat(["a", "b"], ROWS))
    else:
        settings["random_state"] = 8
    heard: list[SeriesDone] = []
    with caplog.at_level(logging.WARNING, "varnn.scale"):
        fit_many(panel, VARNNRegressor(**settings), path=path, workers=1, on_model=heard.append)
    anew = ["b"] if changed == "rows" else ["a", "b"]
    assert [one.name for one in heard] == anew
    assert f"{len(anew)} of 2 models are of other rows or settings, and are fitted anew: " in caplog.text


def test_rows_that_are_cut_into_other_series_are_other_rows(tmp_path: Path) -> None:
    labels, model = np.sin(np.arange(120) / 3), VARNNRegressor(**SMALL)
    for names in (60 * ["a"] + 60 * ["b"], 40 * ["a"] + 80 * ["b"], 40 * ["x"] + 80 * ["y"]):
        panel, seen = Panel.from_arrays(None, labels, series=names), list[SeriesDone]()
        models = fit_many(
            {"all": (panel, model)}, path=tmp_path / "m.varnns", workers=1, on_model=seen.append
        )
        assert len(seen) == 1
        assert set(models["all"].fitted_.last_rows) == set(names)


def test_without_resume_all_is_fitted_again_and_nothing_deleted(tmp_path: Path) -> None:
    path = tmp_path / "m.varnns"
    fit_many(panel_of(["a", "b"]), VARNNRegressor(**SMALL), path=path, workers=1)
    heard: list[SeriesDone] = []
    again = panel_of(["a"], seed=1)
    models = fit_many(
        again, VARNNRegressor(**SMALL), path=path, workers=1, resume=False, on_model=heard.append
    )
    assert [one.name for one in heard] == ["a"] and list(models) == ["a", "b"]


def test_stop_keeps_what_is_finished_and_the_same_call_goes_on(tmp_path: Path) -> None:
    panel, path, stop = panel_of(["a", "b", "c"]), tmp_path / "m.varnns", Event()
    models = fit_many(
        panel, VARNNRegressor(**SMALL), path=path, workers=1, stop=stop, on_model=lambda _: stop.set()
    )
    assert list(models) == ["a"] and models.waiting == 2
    heard: list[SeriesDone] = []
    models = fit_many(panel, VARNNRegressor(**SMALL), path=path, workers=1, on_model=heard.append)
    assert [one.name for one in heard] == ["b", "c"] and heard[-1].done == 3 and models.waiting == 0


def test_ctrl_c_keeps_what_is_finished(tmp_path: Path) -> None:
    path = tmp_path / "m.varnns"

    def interrupt(_: SeriesDone) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_many(panel_of(["a", "b"]), VARNNRegressor(**SMALL), path=path, workers=1, on_model=interrupt)
    assert list(varnn.load(path)) == ["a"]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["m.varnns"]


def test_predictions_of_all_series_in_one_pass(caplog: pytest.LogCaptureFixture) -> None:
    panel = panel_of(["a", "b"])
    models = fit_many(panel, VARNNRegressor(**SMALL), workers=1)
    for interval in (None, 0.9, [0.5, 0.9]):
        found = models.predict(panel, interval=interval)
        wanted = [models[name].predict(of_series(panel, name), interval=interval) for name in ("a", "b")]
        if interval is None:
            np.testing.assert_array_equal(found, np.concatenate(wanted))
        else:
            for values, expected in zip(found, zip(*wanted, strict=True), strict=True):
                np.testing.assert_array_equal(values, np.concatenate(expected))
    more = panel_of(["a", "z"])
    with caplog.at_level(logging.WARNING, "varnn.scale"):
        found = models.predict(more)
    assert np.isnan(found[ROWS:]).all() and not np.isnan(found[:ROWS]).any()
    assert "1 of 2 series have no model, and NaN for predictions: 'z'." in caplog.text
    with pytest.raises(DataError, match="none of the 1 series has a model in memory: 'z'"):
        models.predict(panel_of(["z"]))


def test_what_a_fit_warns_of_is_kept_and_not_said_a_thousand_times(caplog: pytest.LogCaptureFixture) -> None:
    panel = with_labels(panel_of(["a", "flat"]), "flat", 3.0)
    with caplog.at_level(logging.WARNING):
        models = fit_many(panel, VARNNRegressor(**SMALL), workers=1)
    assert caplog.text == ""
    assert any("nothing to learn" in one for one in models.facts("flat")["warnings"])
    assert models.facts("a")["rows"] == ROWS and models.facts("a")["seconds"] > 0
    with pytest.raises(KeyError, match="no model of series 'x'"):
        models.facts("x")
    assert logging.getLogger("varnn").propagate


def test_categories_of_each_series_are_its_own(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    sky = ["sun", "rain"] * 40 + ["fog", "rain"] * 40
    frame = polars.DataFrame(
        {"meter": ["a"] * 80 + ["b"] * 80, "sky": sky, "y": [float(len(one)) for one in sky]}
    )
    panel = Panel.from_frame(frame, target="y", series="meter")
    models = fit_many(panel, VARNNRegressor(**SMALL), workers=1)
    assert set(models["a"].fitted_.categories["sky"]) == {"sun", "rain"}
    assert set(models["b"].fitted_.categories["sky"]) == {"fog", "rain"}
    assert not np.isnan(models.predict(panel)).any()


def test_bad_use_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    panel, path = panel_of(["a"]), tmp_path / "m.varnns"
    wrong: list[tuple[Any, Any, str]] = [
        ([1, 2], VARNNRegressor(), "takes a Panel and a VARNNRegressor, or a mapping"),
        (panel, 3, "regressor must be a VARNNRegressor; got 3"),
        (panel, VARNNRegressor(ensemble=0), "ensemble must be a whole number"),
        ({"a": panel}, None, "'a' must come with"),
        ({1: (panel, VARNNRegressor())}, None, "names of models must be texts; got 1"),
        ({"a": (panel, VARNNRegressor())}, VARNNRegressor(), "leave out `regressor`"),
        ({}, None, "the mapping is empty"),
    ]
    for rows, regressor, said in wrong:
        with pytest.raises((ConfigError, DataError), match=said):
            fit_many(rows, regressor, path=path)
    with pytest.raises(ConfigError, match="on_model must be a function"):
        fit_many(panel, VARNNRegressor(), path=path, on_model=3)  # type: ignore[arg-type]
    with pytest.raises(OutputError, match=r"the folder .* does not exist"):
        fit_many(panel, VARNNRegressor(), path=tmp_path / "no" / "m.varnns")
    assert not list(tmp_path.iterdir())


def test_in_a_folder_each_model_is_a_file(tmp_path: Path) -> None:
    panel, path = panel_of(["a", "b/c"]), tmp_path / "models"
    models = fit_many(panel, VARNNRegressor(**SMALL), path=path, workers=1)
    assert sorted(one.name for one in path.iterdir()) == ["a.varnn", "b%2Fc.varnn", "models.varnns"]
    rows = of_series(panel, "b/c")
    same_model(varnn.load(path / "b%2Fc.varnn"), models["b/c"], rows)
    same_model(varnn.load(path)["b/c"], models["b/c"], rows)
    models.export("a", tmp_path / "a.varnn")
    assert (tmp_path / "a.varnn").read_bytes() == (path / "a.varnn").read_bytes()
    heard: list[SeriesDone] = []
    fit_many(panel, VARNNRegressor(**SMALL), path=path, workers=1, on_model=heard.append)
    assert heard == []
    (path / "models.varnns").unlink()  # put together by hand, or what is left of one
    assert sorted(Models.open(path)) == ["a", "b/c"] and Models.open(path).settings == []
    same_model(Models.open(path)["b/c"], models_of_file(path / "b%2Fc.varnn"), rows)


def models_of_file(path: Path) -> VARNNRegressor:
    model: VARNNRegressor = varnn.load(path)
    return model


@pytest.mark.parametrize(("package", "where"), [("torch", {}), ("ray", {"cluster": "auto"})])
def test_a_package_that_is_missing_is_no_failure_of_each_series(
    package: str, where: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=package):
        fit_many(panel_of(["a", "b"]), VARNNRegressor(**SMALL), path=tmp_path / "two.varnns", **where)
    assert list(tmp_path.iterdir()) == []


def test_a_long_frame_is_fitted_by_the_default_and_predicted_in_its_own_order() -> None:
    hours = pd.date_range("2026-01-01", periods=60, freq="h")
    parts = [
        pd.DataFrame({"unique_id": name, "ds": hours, "y": np.sin(np.arange(60) / size)})
        for name, size in (("a", 3), ("b", 5))
    ]
    frame: Any = pd.concat(parts).sort_values("ds", kind="stable")
    models = fit_many(frame, VARNNRegressor(ensemble=1, epochs=1, hidden_size=4), workers=1)
    found, panel = models.predict(frame), Panel.from_frame(frame)
    np.testing.assert_array_equal(found, panel.in_caller_order(models.predict(panel)))
    within = models.predict(frame, interval=0.9)
    assert (within.lower <= within.prediction).all() and within.upper.shape == (120,)
    labels = np.sin(np.arange(60))
    assert list(fit_many(Panel.from_arrays(None, labels, series=60 * ["one"]), workers=1)) == ["one"]
