"""Rows that follow the training rows start from the last of those, in a batch and a stream alike."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from varnn import Panel, Stream, VARNNRegressor, load
from varnn._types import DoubleArray
from varnn.errors import ConfigError, DataError
from varnn.model.fitted import LastRows
from varnn.model.warm_start import begun, rows_before
from varnn.monitoring.trace import PredictionTrace
from varnn.streaming.linked import LinkedStreams
from varnn.streaming.store import Store

SMALL: Any = {"hidden_size": 6, "epochs": 2, "ensemble": 2, "window": 6, "device": "cpu", "random_state": 0}
TRAINING, ROWS = 300, 380
HOURS = np.datetime64("2026-01-01T00") + np.arange(ROWS)


def made(seed: int = 0) -> tuple[DoubleArray, DoubleArray]:
    """Make inputs and labels of an ARX process."""
    generator = np.random.default_rng(seed)
    inputs, noise = generator.normal(size=(ROWS, 2)), generator.normal(size=ROWS)
    labels = np.zeros(ROWS)
    for row in range(1, ROWS):
        labels[row] = 0.8 * labels[row - 1] + inputs[row, 0] + 0.3 * inputs[row - 1, 1] + 0.5 * noise[row]
    return inputs, labels


def part(
    first: int, last: int, names: str = "", *, time: bool = False, labels: DoubleArray | None = None
) -> Panel:
    """Take rows of one series without a name, or of several by theirs."""
    parts = [made(ord(name)) for name in names or "a"]
    return Panel.from_arrays(
        np.concatenate([inputs[first:last] for inputs, _ in parts]),
        np.concatenate([(own if labels is None else labels)[first:last] for _, own in parts]),
        series=np.repeat(list(names), last - first) if names else None,
        time=np.tile(HOURS[first:last], len(parts)) if time else None,
    )


def fit(names: str = "", *, time: bool = False, labels: DoubleArray | None = None, **how: Any) -> Any:
    training = part(0, TRAINING, names, time=time, labels=labels)
    return VARNNRegressor(**(SMALL | how)).fit(training)


def missing_at_the_end() -> DoubleArray:
    """More missing labels than a prediction reaches back."""
    labels = made(ord("a"))[1]
    labels[TRAINING - 50 : TRAINING] = np.nan
    return labels


MODELS: dict[str, dict[str, Any]] = {
    "default": {},
    "no linear part": {"linear": False},
    "nothing learns on": {"adapt": None},
    "calendar": {"calendar": ["day"], "time": True},
    "horizon": {"horizon": 3},
    "several": {"names": "abc"},
    "peers": {"names": "abc", "peers": True},
    "labels missing at the end": {"labels": missing_at_the_end()},
}


def streamed(live: Stream, rows: Panel, *, interval: float = 0.9) -> list[DoubleArray]:
    """Stream a panel whose series are in step; give prediction and bounds in its order."""
    n_series, found = rows.n_series, []
    inputs = rows.inputs.reshape(n_series, -1, rows.n_inputs)
    labels = rows.target.reshape(n_series, -1)
    for row in range(inputs.shape[1]):
        alone = live.n_series is None
        time = None if rows.time is None else rows.time[row]
        x, label = (inputs[0, row], labels[0, row]) if alone else (inputs[:, row], labels[:, row])
        found.append([np.atleast_1d(one) for one in live.predict(x, time=time, interval=interval)])
        live.observe(label)
    return [np.array(one).T.ravel() for one in zip(*found, strict=True)]


@pytest.mark.parametrize("kind", MODELS)
def test_a_stream_starts_where_a_batch_does(kind: str, tmp_path: Path) -> None:
    settings = dict(MODELS[kind])
    names, time, labels = settings.pop("names", ""), settings.pop("time", False), settings.get("labels")
    model = fit(names, time=time, **settings)
    model.save(tmp_path / "kept.varnn")
    kept = load(tmp_path / "kept.varnn")
    rows = part(TRAINING, ROWS, names[::-1], time=time, labels=labels)
    batch = kept.predict(rows, interval=0.9, resume=True)
    named = True if not names else list(rows.ids)
    live = kept.stream(len(names) or None, resume=named)
    for one, other in zip(batch, streamed(live, rows), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-5)
    cold = kept.predict(rows, interval=0.9, resume=False)
    assert np.abs(batch.prediction - cold.prediction).max() > 0.05
    assert np.abs(batch.upper - cold.upper).max() > 0.05
    # Nothing of the training rows is learnt twice: what a later row sees is the same all the same.
    np.testing.assert_array_equal(batch.prediction, model.predict(rows, resume=True))


def test_the_first_rows_are_predicted_as_if_the_series_had_not_been_cut() -> None:
    """But for what learns on, and has not learnt from rows that it was trained on."""
    model = fit(adapt=None)
    whole = model.predict(part(0, ROWS))
    np.testing.assert_allclose(model.predict(part(TRAINING, ROWS), resume=True), whole[TRAINING:], atol=1e-6)


def test_a_snapshot_holds_what_a_stream_started_from() -> None:
    model, rows = fit(), part(TRAINING, ROWS)
    live = Stream.restore(model, model.stream(resume=True).snapshot())
    expected = model.predict(rows, interval=0.9, resume=True)
    np.testing.assert_allclose(streamed(live, rows)[0], expected.prediction, rtol=1e-5, atol=1e-5)
    assert live.steps == len(rows)  # rows looked back on do not count


def test_rows_that_follow_in_time_need_no_word() -> None:
    model, rows = fit(time=True), part(TRAINING, ROWS, time=True)
    warm = model.predict(rows, resume=True)
    assert np.array_equal(model.predict(rows), warm)
    assert rows_before(model.fitted_, rows, None).tolist() == [len(model.fitted_.last_rows["0"].target)]
    assert not np.array_equal(model.predict(rows, resume=False), warm)
    frame = pd.DataFrame(rows.inputs, columns=rows.input_names).assign(y=rows.target, t=rows.time)
    by_name = [model.predict_frame(frame, time="t", resume=one)["prediction"] for one in (None, False)]
    np.testing.assert_allclose(by_name[0], warm, rtol=1e-6)
    np.testing.assert_allclose(by_name[1], model.predict(rows, resume=False), rtol=1e-6)


def test_all_that_predicts_starts_alike() -> None:
    model, rows = fit(time=True), part(TRAINING, ROWS, time=True)
    warm, cold = (rows.target - model.predict(rows, resume=one) for one in (True, False))
    for resume, errors in ((None, warm), (True, warm), (False, cold)):
        np.testing.assert_array_equal(model.innovations(rows, resume=resume), errors)
        spread = np.sum((rows.target - rows.target.mean()) ** 2)
        assert model.score(rows, resume=resume) == pytest.approx(1 - np.sum(errors**2) / spread)
        assert model.diagnose(rows, resume=resume).deviation == pytest.approx(errors.std())
    trace = PredictionTrace.of(model.fitted_, rows)
    assert trace.memory is not None
    np.testing.assert_array_equal(trace.innovations, warm)
    np.testing.assert_array_equal(trace.memory, model.memory(rows))
    whole = model.memory(part(0, ROWS, time=True))
    np.testing.assert_allclose(model.memory(rows), whole[TRAINING:], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "why", ["a gap", "overlap", "the training rows again", "numbers", "no times", "another name"]
)
def test_rows_that_do_not_follow_start_from_nothing(why: str) -> None:
    model = fit("a", time=True)
    first = {"a gap": TRAINING + 2, "overlap": TRAINING - 3, "the training rows again": 0}.get(why, TRAINING)
    rows = part(first, ROWS, "b" if why == "another name" else "a", time=why != "no times")
    if why == "numbers":
        rows = replace(rows, time=np.arange(first, ROWS))
    assert rows_before(model.fitted_, rows, None).tolist() == [0]
    assert np.array_equal(model.predict(rows), model.predict(rows, resume=False))


def test_each_of_several_series_goes_by_its_own_name() -> None:
    model = fit("ab", time=True)
    rows = part(TRAINING, ROWS, "cba", time=True)
    kept = len(model.fitted_.last_rows["a"].target)
    assert dict(zip(rows.ids, rows_before(model.fitted_, rows, None).tolist(), strict=True)) == {
        "a": kept,
        "b": kept,
        "c": 0,
    }
    found = dict(zip(rows.ids, np.split(model.predict(rows), 3), strict=True))
    for name in "ab":
        alone = model.predict(part(TRAINING, ROWS, name, time=True), resume=True)
        np.testing.assert_allclose(found[name], alone, rtol=1e-6, atol=1e-6)
    unknown = model.predict(part(TRAINING, ROWS, "c"), resume=False)
    np.testing.assert_allclose(found["c"], unknown, rtol=1e-6, atol=1e-6)


def test_peers_that_follow_see_each_other_in_step_whichever_are_there() -> None:
    model = fit("abc", time=True, peers=True)
    rows = part(TRAINING, ROWS, "abc", time=True)
    np.testing.assert_allclose(model.predict(rows), streamed_peers(model, rows), rtol=1e-5, atol=1e-5)
    without_times = replace(rows, time=None)
    np.testing.assert_allclose(
        model.predict(without_times, resume=True), model.predict(rows), rtol=1e-5, atol=1e-5
    )
    stranger = part(TRAINING, ROWS, "abd")
    with pytest.raises(DataError, match=r"start together, or have times; .'d'. were not trained on"):
        model.predict(stranger, resume=True)


def streamed_peers(model: Any, rows: Panel) -> DoubleArray:
    return streamed(model.stream(3, resume=list(rows.ids)), rows)[0]


def test_series_of_which_fewer_rows_are_kept_start_from_as_many() -> None:
    model = fit("ab")
    short = model.fitted_.last_rows["b"]
    cut = LastRows(inputs=short.inputs[-8:], target=short.target[-8:])
    fitted = replace(model.fitted_, last_rows={**model.fitted_.last_rows, "b": cut})
    rows = part(TRAINING, ROWS, "ab")
    assert rows_before(fitted, rows, True).tolist() == [len(short.target), 8]
    found = streamed(Stream(fitted, 2, resume=["a", "b"]), rows)[0]
    alone = streamed(Stream(fitted, resume="b"), part(TRAINING, ROWS, "b"))[0]
    np.testing.assert_allclose(np.split(found, 2)[1], alone, rtol=1e-6, atol=1e-6)


def test_numbers_as_times_are_no_hindrance() -> None:
    training, rows = (replace(one, time=one.rows) for one in (part(0, TRAINING), part(TRAINING, ROWS)))
    model = VARNNRegressor(**SMALL).fit(training)
    expected = model.predict(part(TRAINING, ROWS), resume=True)
    assert np.array_equal(model.predict(rows, resume=True), expected)


@pytest.mark.parametrize(
    ("how", "error", "message"),
    [
        ({"resume": "a"}, ConfigError, "resume must be True, False or None; got 'a'"),
        ({"resume": 1}, ConfigError, "resume must be True, False or None; got 1"),
    ],
)
def test_a_batch_refuses_another_resume(how: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        fit().predict(part(TRAINING, ROWS), **how)


def test_wrong_uses_are_refused_in_words() -> None:
    model, several = fit(time=True), fit("ab")
    with pytest.raises(
        DataError, match=r"rows come after the training rows; .* end at 2026-01-13T11, and these"
    ):
        model.predict(part(TRAINING - 1, ROWS, time=True), resume=True)
    with pytest.raises(DataError, match=r"the same series, .'a', 'b'.; the rows are of .'c', 'd'."):
        several.predict(part(TRAINING, ROWS, "cd"), resume=True)
    with pytest.raises(ConfigError, match=r"as many series as the stream has, 1; it keeps 2.*resume='a'"):
        several.stream(resume=True)
    with pytest.raises(ConfigError, match=r"name each series of the stream, 2 of them; got 1"):
        several.stream(2, resume=["a"])
    with pytest.raises(ConfigError, match=r"name each series of the stream once"):
        several.stream(2, resume=["a", "a"])
    with pytest.raises(ConfigError, match=r"name each series of the stream, 1 of them; got 0"):
        several.stream(resume=[])
    with pytest.raises(DataError, match=r".'c'. were not trained on. The model keeps .'a', 'b'."):
        several.stream(resume="c")
    for wrong in (3, [1, 2], None, 1.5):
        with pytest.raises(ConfigError, match=r"resume must be true, false, or the name of each series"):
            several.stream(2, resume=wrong)
    forgetful = replace(model.fitted_, last_rows={})
    with pytest.raises(DataError, match=r"keeps no training rows to go on from"):
        begun(forgetful, part(TRAINING, ROWS), True)
    with pytest.raises(ConfigError, match=r"it keeps 0"):
        Stream(forgetful, resume=True)


def test_a_stream_refuses_a_time_before_the_end_of_the_training_rows() -> None:
    live = fit(time=True).stream(resume=True)
    x = np.zeros(2)
    for early in (HOURS[TRAINING - 1], HOURS[0]):
        with pytest.raises(DataError, match=r"must be after that of the row observed before it"):
            live.predict(x, time=early)
    assert np.isfinite(live.predict(x, time=HOURS[TRAINING]))


def test_a_fleet_needs_rows_at_the_same_times() -> None:
    inputs, labels = made()
    model = VARNNRegressor(**SMALL).fit(
        Panel.from_arrays(
            np.tile(inputs[:100], (2, 1)),
            np.tile(labels[:100], 2),
            series=np.repeat(["a", "b"], 100),
            time=np.concatenate([HOURS[:100], HOURS[5:105]]),
        )
    )
    with pytest.raises(DataError, match=r"series in step have their rows at the same times"):
        model.stream(2, resume=True)
    assert np.isfinite(model.stream(resume="b").predict(inputs[100], time=HOURS[105]))


def test_texts_among_the_inputs_are_known_to_the_rows_kept() -> None:
    generator = np.random.default_rng(0)
    frame = pd.DataFrame({"sky": generator.choice(["rain", "sun"], ROWS), "t": HOURS})
    frame["load"] = (frame["sky"] == "rain") * 2.0 + np.cumsum(generator.normal(size=ROWS)) / 5
    training = Panel.from_frame(frame[:TRAINING], target="load", time="t")
    model = VARNNRegressor(**SMALL).fit(training)
    warm = model.predict_frame(frame[TRAINING:])["prediction"]
    live, found = model.stream(resume=True), []
    for _, row in frame[TRAINING:].iterrows():
        found.append(live.predict({"sky": row["sky"]}, time=row["t"]))
        live.observe(row["load"])
    np.testing.assert_allclose(found, warm, rtol=1e-5, atol=1e-5)


def test_a_forecast_of_a_stream_starts_from_the_training_rows() -> None:
    model = fit(horizon=3)
    live = model.stream(resume=True)
    np.testing.assert_allclose(live.forecast().prediction, model.forecast().prediction, rtol=1e-6)


def answered(store: Store, rows: Panel, row: int, *, together: bool) -> list[dict[str, Any]]:
    """Send a row of each series of a panel in step, its label with it."""
    length = int(rows.lengths[0])
    messages = []
    for index, name in enumerate(rows.ids):
        place = index * length + row
        message = {"series": name, "x": rows.inputs[place].tolist(), "y": float(rows.target[place])}
        if rows.time is not None:
            message["time"] = str(rows.time[place])
        messages.append(message | {"interval": 0.9})
    if together:
        found = store.answer_all(messages)
        assert isinstance(found, list)
        return found
    return [store.answer(one) for one in messages]


@pytest.mark.parametrize("peers", [False, True])
@pytest.mark.parametrize("time", [False, True])
def test_series_of_a_store_start_from_the_rows_kept_of_their_name(
    peers: bool, time: bool, tmp_path: Path
) -> None:
    """Also after it was closed, and opened again without being told."""
    model = fit("abc", time=time, peers=peers)
    rows = part(TRAINING, ROWS, "cab" if peers else "cabd", time=time)
    expected = model.predict(rows, interval=0.9, resume=True)
    store, found = Store(model, tmp_path / "live.state", resume=True), []
    for row in range(ROWS - TRAINING):
        answers = answered(store, rows, row, together=peers)
        found.append([[one["prediction"], one["lower"], one["upper"]] for one in answers])
        store.commit()
        if row in (0, 3, 40):
            if row == 40:
                store.close()
            else:  # as if it was killed: what is on disk must do
                store._journal.close()  # type: ignore[union-attr]  # a store with a file has one
            store = Store(model, tmp_path / "live.state", resume=row == 3)
    store.close()
    for place, bounds in enumerate(expected):
        np.testing.assert_allclose(np.array(found)[:, :, place].T.ravel(), bounds, rtol=1e-4, atol=1e-4)


def test_a_store_finds_the_rows_kept_by_name_as_json_has_it() -> None:
    alone, numbered = fit(), VARNNRegressor(**SMALL).fit(replace(part(0, TRAINING, "ab"), ids=("1", "2")))
    rows = part(TRAINING, ROWS)
    message = {"x": rows.inputs[0].tolist()}
    warm = alone.stream(resume=True).predict(rows.inputs[0])
    assert Store(alone, resume=True).answer(message)["prediction"] == warm
    assert Store(alone).answer(message)["prediction"] != warm
    cold = alone.stream().predict(rows.inputs[0])
    assert Store(alone, resume=True).answer(message | {"series": "another"})["prediction"] == cold
    for series in (2, "2"):
        answer = Store(numbered, resume=True).answer(message | {"series": series})
        assert answer["prediction"] == numbered.stream(resume="2").predict(rows.inputs[0])
    assert Store(numbered, resume=True).answer(message)["prediction"] == numbered.stream().predict(
        rows.inputs[0]
    )


def test_a_store_refuses_a_line_before_the_end_of_the_training_rows() -> None:
    rows = part(TRAINING, ROWS, "abc", time=True)
    for peers in (False, True):
        store = Store(fit("abc", time=True, peers=peers), resume=True)
        message = {"series": "a", "x": [0.1, 0.2], "time": str(HOURS[TRAINING - 5])}
        assert "before" in store.answer(message)["error"]
        assert all("error" not in one for one in answered(store, rows, 0, together=peers))


def test_series_that_see_each_other_do_not_start_warm_one_by_one() -> None:
    with pytest.raises(ConfigError, match="start from the training rows together"):
        LinkedStreams(fit("ab", peers=True)).begin(resume="a")


def test_linked_series_that_end_at_other_times_start_as_a_batch_does() -> None:
    inputs, labels = made()
    names, times = np.repeat(["a", "b"], 200), np.concatenate([HOURS[:200], HOURS[3:203]])
    model = VARNNRegressor(peers=True, **SMALL).fit(
        Panel.from_arrays(np.tile(inputs[:200], (2, 1)), np.tile(labels[:200], 2), series=names, time=times)
    )
    length = 40
    rows = Panel.from_arrays(
        np.tile(inputs[200 : 200 + length], (2, 1)),
        np.tile(labels[200 : 200 + length], 2),
        series=np.repeat(["a", "b"], length),
        time=np.concatenate([HOURS[203 : 203 + length]] * 2),
    )
    expected = model.predict(rows, resume=True).reshape(2, -1)
    store = Store(model, resume=True)
    for row in range(length):
        answers = answered(store, rows, row, together=True)
        np.testing.assert_allclose(
            [one["prediction"] for one in answers], expected[:, row], rtol=1e-4, atol=1e-4
        )
