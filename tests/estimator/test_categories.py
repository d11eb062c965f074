"""A model of texts: learnt on training rows, kept in its file, and the same wherever rows come from."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from typer.testing import CliRunner

from varnn import Panel, VARNNRegressor, evaluation, load
from varnn.cli.app import app
from varnn.errors import DataError, ModelFileError
from varnn.persistence import model_file
from varnn.streaming.store import Store

KNOWN = {"sky": ("sun", "rain", "föhn")}


def weather(rows: int = 400, seed: int = 0) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    sky = generator.choice(["sun", "rain", "föhn"], rows, p=[0.5, 0.3, 0.2])
    heat = generator.normal(size=rows)
    load_ = heat + np.select([sky == "sun", sky == "rain"], [3, -2], 0) + 0.1 * generator.normal(size=rows)
    hours = pd.date_range("2026-01-01", periods=rows, freq="h")
    frame = pd.DataFrame({"time": hours, "heat": heat, "sky": sky.astype(object), "load": load_})
    frame.loc[5:9, "sky"] = None
    frame.loc[rows - 30 : rows - 20, "sky"] = "hail"
    return frame


def later() -> pd.DataFrame:
    """Rows with a text that was never seen, and one that is missing."""
    frame = weather(60, seed=1)
    frame["time"] += pd.Timedelta(days=60)
    frame.loc[3, "sky"] = "plague of frogs"
    return frame


def panel_of(frame: pd.DataFrame) -> Panel:
    return Panel.from_frame(frame, target="load", time="time")


@pytest.fixture(scope="module")
def model() -> VARNNRegressor:
    return VARNNRegressor(epochs=3, hidden_size=8, ensemble=1).fit(panel_of(weather()))


def test_the_training_rows_decide_and_the_texts_help(model: VARNNRegressor) -> None:
    assert dict(model.fitted_.categories) == KNOWN  # hail is in the rows held out alone
    assert model.fitted_.input_names == ("heat", "sky=sun", "sky=rain", "sky=föhn")
    assert list(model.feature_names_in_) == list(model.fitted_.input_names)
    without = panel_of(weather().drop(columns="sky"))
    blind = VARNNRegressor(epochs=3, hidden_size=8, ensemble=1).fit(without)
    known = later()[10:30]  # where the sky is known
    assert model.score(panel_of(known)) > 0.9 > blind.score(panel_of(known.drop(columns="sky")))


def test_an_unknown_text_and_none_are_all_zero(model: VARNNRegressor) -> None:
    frame = later()
    as_none = frame.assign(sky=frame["sky"].where(frame["sky"] != "plague of frogs", None))
    np.testing.assert_array_equal(model.predict(panel_of(frame)), model.predict(panel_of(as_none)))


def test_file_frame_panel_and_stream_agree(model: VARNNRegressor, tmp_path: Path) -> None:
    frame = later()
    wanted = model.predict(panel_of(frame))
    model.save(tmp_path / "m.varnn")
    again = load(tmp_path / "m.varnn")
    assert dict(again.fitted_.categories) == KNOWN
    assert again.fitted_.fingerprint == model.fitted_.fingerprint
    np.testing.assert_array_equal(again.predict(panel_of(frame)), wanted)
    np.testing.assert_array_equal(again.predict_frame(frame)["prediction"], wanted)
    np.testing.assert_array_equal(again.predict_frame(pl.from_pandas(frame))["prediction"], wanted)
    for rows in (1, 3):  # so few that every text is another one
        np.testing.assert_allclose(again.predict(panel_of(frame[:rows])), wanted[:rows], rtol=1e-5, atol=1e-6)
    live, streamed = again.stream(), []
    for _, row in frame.iterrows():
        streamed.append(live.predict(row, time=row["time"]))
        live.observe(row["load"])
    np.testing.assert_allclose(streamed, wanted, atol=1e-5)


def test_lines_with_texts_equal_the_batch_and_survive_a_restart(
    model: VARNNRegressor, tmp_path: Path
) -> None:
    frame, answers = later(), []
    for half in (frame[:30], frame[30:]):
        with Store(model, tmp_path / "state") as store:
            for row in half.itertuples():
                x = {"heat": row.heat, "sky": row.sky if isinstance(row.sky, str) else None}
                answers.append(store.answer({"x": x, "y": row.load, "time": str(row.time)}))
                store.commit()
    np.testing.assert_allclose(
        [one["prediction"] for one in answers], model.predict(panel_of(frame)), atol=1e-5
    )


@pytest.mark.parametrize(
    ("x", "said"),
    [
        ({"heat": 1.0, "sky": 3}, "x must hold a text, or null, as 'sky'; got 3"),
        ({"heat": "warm", "sky": "sun"}, "x must hold numbers only"),
        ({"heat": 1.0}, r"it lacks \['sky'\], a text"),
        ([1.0, "sun"], "x must hold numbers only"),
    ],
)
def test_lines_that_cannot_be_used_say_why(model: VARNNRegressor, x: Any, said: str) -> None:
    with Store(model) as store:
        answer = store.answer({"x": x, "time": "2026-11-15T07:30"})
        assert re.search(said, answer["error"])
        good = store.answer({"x": {"heat": 1.0, "sky": None}, "time": "2026-11-15T07:30"})
        assert "prediction" in good


def test_inputs_may_be_given_themselves(model: VARNNRegressor) -> None:
    by_text, by_number = model.stream(), model.stream()
    time = "2026-11-15T07:30"
    expected = by_text.predict({"heat": 0.5, "sky": "rain"}, time=time)
    assert by_number.predict([0.5, 0, 1, 0], time=time) == expected
    assert by_number.predict({"heat": 0.5, "sky=sun": 0, "sky=rain": 1, "sky=föhn": 0}, time=time) == expected


def test_kinds_of_columns_that_changed_are_named(model: VARNNRegressor) -> None:
    frame = later()
    with pytest.raises(DataError, match="column 'sky' must hold texts, such as 'sun', as it did when"):
        model.predict_frame(frame.assign(sky=1.5))
    with pytest.raises(DataError, match="column 'heat' must hold numbers; row 0 holds 'warm'"):
        model.predict_frame(frame.assign(heat="warm"))
    with pytest.raises(DataError, match="input column 'sky' is not in the table"):
        model.predict_frame(frame.drop(columns="sky"))
    nothing = frame.assign(sky=None)
    assert np.isfinite(model.predict_frame(nothing)["prediction"]).all()


def test_forecasts_know_texts_of_the_future() -> None:
    frame = weather()
    model = VARNNRegressor(epochs=2, hidden_size=8, ensemble=1, horizon=3, known_inputs=["sky"])
    model.fit(panel_of(frame))
    assert model.forecaster_ is not None
    assert model.forecaster_.known == ("sky=sun", "sky=rain", "sky=föhn")
    coming = Panel.from_frame(pd.DataFrame({"sky": ["rain", "frogs", "sun"]}), target=None)
    found = model.forecast(inputs=coming).prediction
    spelt = model.forecast(inputs=[[0, 1, 0], [0, 0, 0], [1, 0, 0]]).prediction
    np.testing.assert_array_equal(found, spelt)
    assert found[0, 2] - found[0, 0] > 2


def test_comparisons_learn_categories_at_each_origin() -> None:
    rows = weather(300)
    rows.loc[:, "sky"] = np.where(np.arange(300) < 200, rows["sky"], "new")
    result = evaluation.compare(panel_of(rows), ["persistence", "arx-lr"], seeds=1, origins=2)
    assert [one.train.input_names for one in result.cuts] == [("heat", "sky=sun", "sky=rain", "sky=föhn")] * 2
    assert all(one.test.input_names == one.train.input_names for one in result.cuts)
    backtest = evaluation.backtest(
        panel_of(weather(300)),
        horizon=2,
        known_inputs=["sky"],
        model=lambda seed: VARNNRegressor(epochs=1, hidden_size=4, ensemble=1, random_state=seed),
    )
    assert np.isfinite(backtest.mse["VARNN"]).all()


def test_commands_read_texts(tmp_path: Path) -> None:
    weather().to_csv(tmp_path / "weather.csv", index=False)
    later().to_csv(tmp_path / "later.csv", index=False)
    place, run = tmp_path / "m.varnn", CliRunner()

    def said(*words: object) -> Any:
        done = run.invoke(app, [*map(str, words)])
        assert done.exit_code == 0, done.output
        return done

    small = ("--epochs", 1, "--hidden-size", 4, "--ensemble", 1)
    fitted = said(
        "fit",
        tmp_path / "weather.csv",
        "--target",
        "load",
        "-o",
        place,
        *small,
        "--horizon",
        2,
        "--known",
        "sky",
    )
    assert "note:    text is read as categories: 'sky' (4 values)" in fitted.stderr
    facts = json.loads(said("inspect", place, "--json").stdout)
    assert facts["categories"] == {"sky": list(KNOWN["sky"])}
    assert "Categories known of 'sky': 'sun', 'rain', 'föhn'; all other texts" in facts["card"]
    said("predict", place, tmp_path / "later.csv", "-o", tmp_path / "out.csv")
    model = load(place)
    expected = model.predict(panel_of(later()))
    np.testing.assert_allclose(pd.read_csv(tmp_path / "out.csv")["prediction"], expected, atol=1e-5)
    pd.DataFrame({"time": ["2026-03-05 00:00", "2026-03-05 01:00"], "sky": ["rain", "sun"]}).to_csv(
        tmp_path / "future.csv", index=False
    )
    said(
        *("forecast", tmp_path / "later.csv", "--target", "load", "--model", place),
        *("--future", tmp_path / "future.csv", "-o", tmp_path / "ahead.csv"),
    )
    coming = Panel.from_frame(pd.DataFrame({"sky": ["rain", "sun"]}), target=None, inputs=["sky"])
    ahead = model.forecast(panel_of(later()), inputs=coming).prediction[0]
    np.testing.assert_allclose(pd.read_csv(tmp_path / "ahead.csv")["prediction"], ahead, atol=1e-5)


def test_a_file_whose_categories_are_none_of_its_inputs_is_refused(
    model: VARNNRegressor, tmp_path: Path
) -> None:
    place = tmp_path / "m.varnn"
    model.save(place)
    tensors, header = model_file.from_bytes(place.read_bytes(), "it")
    lies: list[Any] = [{"sky": ["snow"]}, {"sky": []}, {"sky": "sun"}, ["sky"], {"sky": [1]}]
    for wrong in lies:
        place.write_bytes(model_file.to_bytes(tensors, {**header, "categories": wrong}))
        with pytest.raises(ModelFileError, match="categor"):
            load(place)


def test_peers_and_series_have_texts_too() -> None:
    frames = [weather(150, seed).assign(site=f"site {seed}") for seed in range(2)]
    frame = pd.concat(frames, ignore_index=True)
    panel = Panel.from_frame(frame, target="load", time="time", series="site")
    model = VARNNRegressor(epochs=1, hidden_size=4, ensemble=1, peers=True).fit(panel)
    predictions = model.predict(panel)
    with Store(model) as store:
        for row in range(20):
            asked = [
                {
                    "series": one.site[row],
                    "x": {
                        "heat": float(one.heat[row]),
                        "sky": one.sky[row] if isinstance(one.sky[row], str) else None,
                    },
                    "y": float(one.load[row]),
                    "time": str(one.time[row]),
                }
                for one in frames
            ]
            found: Any = store.answer_all(asked)
            wanted = [predictions[row], predictions[150 + row]]
            np.testing.assert_allclose([one["prediction"] for one in found], wanted, atol=1e-5)


def test_frames_of_scikit_learn_may_hold_texts() -> None:
    frame = weather()
    X, y = frame[["heat", "sky"]], frame["load"]
    model = VARNNRegressor(epochs=1, hidden_size=4, ensemble=1).fit(X, y)
    assert dict(model.fitted_.categories) == KNOWN
    panel = Panel.from_frame(frame.drop(columns="time"), target="load")
    wanted = model.predict(panel)
    np.testing.assert_array_equal(model.predict(X, y), wanted)
    np.testing.assert_array_equal(model.predict(pl.from_pandas(X[["sky", "heat"]]), y), wanted)
    assert model.score(X, y) == model.score(panel)
    assert np.isfinite(model.predict(later()[["heat", "sky"]])).all()
    series = ["a", "b"] * 200
    both = VARNNRegressor(epochs=1, hidden_size=4, ensemble=1).fit(X, y, series=series)
    together = Panel.from_frame(frame.assign(site=series).drop(columns="time"), target="load", series="site")
    found = both.predict(X, y, series=series)
    np.testing.assert_array_equal(found, together.in_caller_order(both.predict(together)))
    with pytest.raises(DataError, match="column 'sky' must hold texts"):
        model.predict(X.assign(sky=1.0), y)
    with pytest.raises(DataError, match="input column 'sky' is not in the table"):
        model.predict(X[["heat"]], y)
