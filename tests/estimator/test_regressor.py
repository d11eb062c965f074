"""VARNNRegressor: scikit-learn's contract, and ours: one prediction per row, from the past alone."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import lfilter
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.cases import random_panel
from varnn import Details, Panel, VARNNRegressor
from varnn.errors import ConfigError, DataError, VarnnError
from varnn.model.fitted import Fitted

SMALL: dict[str, Any] = {"hidden_size": 8, "epochs": 2, "ensemble": 1, "adapt": None, "device": "cpu"}

EXPECTED_FAILURES = {
    "check_methods_subset_invariance": "a prediction without labels goes on from the row before it, so "
    "rows of a stream cannot be predicted apart",
    "check_methods_sample_order_invariance": "the order of rows is the order of time",
    "check_sample_weight_equivalence_on_dense_data": "a row of weight 0 still feeds the memory of those "
    "after it, and a row that comes twice is another row of its series",
}


@parametrize_with_checks(
    [
        VARNNRegressor(
            hidden_size=32, epochs=30, learning_rate=1e-2, device="cpu", details=Details(batch_size=16)
        )
    ],
    expected_failed_checks=lambda _: EXPECTED_FAILURES,
)  # type: ignore[untyped-decorator]  # scikit-learn ships no types
def test_scikit_learn_contract(estimator: Any, check: Any) -> None:
    check(estimator)


def test_predictions_use_only_labels_before_their_row() -> None:
    panel = random_panel([60, 40], missing=0.1, seed=2)
    model = VARNNRegressor("ARM+AM", window=6, **SMALL).fit(panel)
    before = model.predict(panel)
    assert before.shape == (100,)
    assert np.isfinite(before).all()
    for row in (0, 1, 17, 59, 60, 77):
        changed = panel.target.copy()
        last = 60 if row < 60 else 100
        changed[row:last] += 50.0
        after = model.predict(Panel.from_arrays(panel.inputs, changed, series=[0] * 60 + [1] * 40))
        np.testing.assert_array_equal(after[: row + 1], before[: row + 1])
        np.testing.assert_array_equal(after[last:], before[last:])
        if row + 1 < last and not np.isnan(panel.target[row]):
            assert after[row + 1] != before[row + 1]


def test_a_window_forgets_what_lies_before_it() -> None:
    panel = random_panel([50], seed=3)
    model = VARNNRegressor("ARM", window=4, linear=False, **SMALL).fit(panel)
    late = Panel.from_arrays(panel.inputs[20:], panel.target[20:])
    np.testing.assert_allclose(model.predict(late)[3:], model.predict(panel)[23:], rtol=1e-6)


def test_arrays_frames_and_panels_agree() -> None:
    panel = random_panel([80], seed=4)
    frame = pd.DataFrame(panel.inputs, columns=["a", "b", "c"])
    by_array = VARNNRegressor(**SMALL).fit(panel.inputs, panel.target)
    by_frame = VARNNRegressor(**SMALL).fit(frame, panel.target)
    by_panel = VARNNRegressor(**SMALL).fit(Panel.from_arrays(panel.inputs, panel.target))
    expected = by_array.predict(panel.inputs, panel.target)
    np.testing.assert_array_equal(by_frame.predict(frame, panel.target), expected)
    np.testing.assert_array_equal(by_panel.predict(Panel.from_arrays(panel.inputs, panel.target)), expected)
    assert by_frame.feature_names_in_.tolist() == ["a", "b", "c"]
    shuffled = Panel.from_frame(frame.assign(y=panel.target)[["c", "y", "a", "b"]], target="y")
    np.testing.assert_array_equal(by_frame.predict(shuffled), expected)


def test_interleaved_series_come_back_in_the_order_of_the_caller() -> None:
    panel = random_panel([40, 40], seed=5)
    order = np.arange(80).reshape(2, 40).T.ravel()  # row 0 of both series, row 1 of both, ...
    X, y, series = panel.inputs[order], panel.target[order], np.repeat(["u", "v"], 40)[order]
    model = VARNNRegressor(**SMALL).fit(X, y, series=series)
    np.testing.assert_array_equal(
        model.predict(X, y, series=series),
        model.predict(Panel.from_arrays(panel.inputs, panel.target, series=np.repeat(["u", "v"], 40)))[order],
    )


@pytest.mark.parametrize("linear", [True, False])
def test_without_labels_it_goes_on_after_training_from_its_own_predictions(linear: bool) -> None:
    panel = random_panel([60], seed=6)
    model = VARNNRegressor("ARM", window=5, validation_fraction=0, linear=linear, **SMALL).fit(
        panel.inputs[:50], panel.target[:50]
    )
    closed = model.predict(panel.inputs[50:])
    labels, expected = panel.target.copy(), []
    low, high = labels[:50].min(), labels[:50].max()
    for row in range(50, 60):  # each is the label of the next ones; what is beyond the range, by half
        expected.append(model.predict(panel.inputs[: row + 1], labels[: row + 1])[row])
        labels[row] = (expected[-1] + np.clip(expected[-1], low, high)) / 2
    np.testing.assert_allclose(closed, expected, rtol=1e-5, atol=1e-5)


def test_several_trained_series_need_labels_or_names() -> None:
    panel = random_panel([30, 30])
    model = VARNNRegressor(**SMALL).fit(panel)
    assert model.predict(panel.inputs[:4], series=["s1"] * 4).shape == (4,)
    with pytest.raises(DataError, match="series '0' was not trained on"):
        model.predict(panel.inputs[:4])


def test_an_ensemble_is_the_mean_of_its_members() -> None:
    panel = random_panel([80], seed=7)
    plain = {**SMALL, "linear": False, "details": Details(memory_size=8)}
    together = VARNNRegressor(**{**plain, "ensemble": 3, "random_state": 11}).fit(panel)
    apart = [
        VARNNRegressor(**{**plain, "ensemble": 1, "random_state": 11 + member}).fit(panel).predict(panel)
        for member in range(3)
    ]
    np.testing.assert_allclose(together.predict(panel), np.mean(apart, axis=0), rtol=1e-5, atol=1e-6)
    assert together.memory(panel).shape == (80, 3 * 8)
    assert {line["member"] for line in together.history_} == {0, 1, 2}


def test_innovations_are_label_minus_prediction() -> None:
    panel = random_panel([50], missing=0.2)
    model = VARNNRegressor(**SMALL).fit(panel)
    np.testing.assert_array_equal(model.innovations(panel), panel.target - model.predict(panel))


def test_whatever_looks_at_rows_takes_their_series() -> None:
    """Rows of two series in turn: what comes back is in the order they came in, as predictions are."""
    panel = random_panel([60, 60], n_inputs=2)
    order = np.arange(120).reshape(2, 60).T.ravel()
    X, y, series = panel.inputs[order], panel.target[order], np.repeat(panel.ids, 60)[order]
    model = VARNNRegressor(ensemble=2, epochs=1, hidden_size=4).fit(panel)
    np.testing.assert_array_equal(
        model.innovations(X, y, series=series), y - model.predict(X, y, series=series)
    )
    np.testing.assert_array_equal(model.memory(X, y, series=series), model.memory(panel)[order])
    found, expected = model.diagnose(X, y, series=series), model.diagnose(panel)
    assert str(found) == str(expected) != str(model.diagnose(X, y))


def test_it_works_inside_scikit_learn() -> None:
    panel = random_panel([120], seed=8)
    pipeline = make_pipeline(StandardScaler(), VARNNRegressor(**SMALL)).fit(panel.inputs, panel.target)
    assert np.isfinite(pipeline.predict(panel.inputs)).all()
    search = GridSearchCV(
        VARNNRegressor(**SMALL), {"window": [2, 5], "variant": ["RM", "ARM"]}, cv=TimeSeriesSplit(2)
    ).fit(panel.inputs, panel.target)
    assert search.best_params_["window"] in (2, 5)
    model = VARNNRegressor("RM+AM", window=9)
    assert clone(model).get_params() == model.get_params()


def test_scoring_uses_labels_as_they_arrive() -> None:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(600, 1))
    y = lfilter([1], [1, -0.98], generator.normal(size=600))  # nothing that the input shows
    model = VARNNRegressor("ARM", hidden_size=32, device="cpu", details=Details(batch_size=16)).fit(
        X[:400], y[:400]
    )
    assert model.score(X[400:], y[400:]) > 0.8


def test_a_random_state_object_and_verbose(capsys: pytest.CaptureFixture[str]) -> None:
    panel = random_panel([60])
    model = VARNNRegressor(random_state=np.random.RandomState(3), verbose=1, **SMALL).fit(panel)
    again = VARNNRegressor(random_state=np.random.RandomState(3), **SMALL).fit(panel)
    np.testing.assert_array_equal(model.predict(panel), again.predict(panel))
    assert "100%  member 1  epoch 2  loss" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"variant": "RAM"}, "variant must be one of"),
        ({"details__residual": "vector"}, "residual must be one of"),
        ({"scale": "log"}, "scale must be one of"),
        ({"fill": "mean"}, "fill must be one of"),
        (
            {"validation_fraction": 1.0},
            "validation_fraction must be a number, at least 0 and below 1; got 1.0",
        ),
        ({"ensemble": 0}, "ensemble must be a whole number, at least 1; got 0"),
        ({"hidden_size": 0}, "hidden_size must be a whole number, at least 1; got 0"),
        ({"details__memory_size": 2.5}, "memory_size must be a whole number"),
        ({"window": 0}, "window must be a whole number"),
        ({"adapt": "kalman"}, "adapt must be"),
        ({"details__forgetting": 1.5}, "forgetting must be 'auto' or a number"),
    ],
)
def test_bad_settings_are_refused(settings_: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        VARNNRegressor(**SMALL).set_params(**settings_).fit(random_panel([60]))


def test_data_that_do_not_match_the_model_are_refused() -> None:
    panel = random_panel([60])
    model = VARNNRegressor(**SMALL).fit(panel)
    with pytest.raises(DataError, match=r"lack \['x2'\]"):
        model.predict(random_panel([60], 2))
    with pytest.raises(DataError, match="give it alone"):
        model.predict(panel, panel.target)
    with pytest.raises(DataError, match="same number of rows"):
        model.predict(panel.inputs, panel.target[:-1])


numbers = st.one_of(
    st.floats(-1e9, 1e9),
    st.sampled_from([np.nan, 0.0, 1e-30, 1e90, -1e90, np.inf]),
    st.integers(-5, 5).map(float),
)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_panel_either_works_or_is_refused_in_words(data: st.DataObject) -> None:
    rows, inputs = data.draw(st.integers(1, 24)), data.draw(st.integers(0, 3))
    X = np.array(data.draw(st.lists(numbers, min_size=rows * inputs, max_size=rows * inputs))).reshape(
        rows, inputs
    )
    y = np.array(data.draw(st.lists(numbers, min_size=rows, max_size=rows)))
    series = data.draw(st.one_of(st.none(), st.lists(st.sampled_from("ab"), min_size=rows, max_size=rows)))
    model = VARNNRegressor(
        data.draw(st.sampled_from(["RM", "RM+AM", "ARM", "ARM+AM"])),
        window=data.draw(st.integers(1, 4)),
        scale=data.draw(st.sampled_from(["minmax", "standard"])),
        fill=data.draw(st.sampled_from(["forward", "interpolate", "zero", "none"])),
        validation_fraction=data.draw(st.sampled_from([0.0, 0.3])),
        **SMALL,
    )
    try:
        panel = Panel.from_arrays(X, y, series=series)
        model.fit(panel)
    except VarnnError as error:
        assert len(str(error)) > 20
        return
    assert isinstance(model.fitted_, Fitted)
    assert np.isfinite(model.predict(panel)).all()


def test_the_latest_rows_are_learnt_from_and_that_is_said(caplog: pytest.LogCaptureFixture) -> None:
    panel = random_panel([120, 200, 300])
    quick: dict[str, Any] = {"epochs": 1, "ensemble": 1, "hidden_size": 4}
    whole = VARNNRegressor(details=Details(max_rows=None), **quick).fit(panel)
    assert not caplog.records
    cut = VARNNRegressor(details=Details(max_rows=300), **quick).fit(panel)
    assert "the latest 300 of 620 rows" in caplog.text  # 100 of each series
    by_hand = VARNNRegressor(**quick).fit(panel.latest(300))
    np.testing.assert_array_equal(cut.predict(panel), by_hand.predict(panel))
    assert not np.array_equal(cut.predict(panel), whole.predict(panel))
    with pytest.raises(ConfigError, match=r"max_rows must be a whole number, at least 1, or None; got 0\."):
        VARNNRegressor(details=Details(max_rows=0)).fit(panel)
