"""The ONNX step gives what a stream gives, row by row, in onnxruntime."""

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import varnn
from tests.cases import CASES, Case, random_panel, with_a_field
from tests.model.test_outliers import made, wild_rows
from tests.streaming.test_stream import fitted
from varnn import Details, Panel, Stream, VARNNRegressor
from varnn._types import DoubleArray
from varnn.errors import ConfigError, MissingExtraError, OutputError
from varnn.model import aggregation
from varnn.model.calendar import calendar_inputs
from varnn.model.fitted import Fitted
from varnn.model.prediction import predict
from varnn.persistence.onnx import _aggregation, step
from varnn.persistence.onnx._calendar import calendar
from varnn.persistence.onnx._graph import Graph

VARIANTS = ["RM", "RM+AM", "ARM", "ARM+AM"]
_TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64}


class Session:
    """What a user writes around the graph: it keeps the states and the last labels."""

    def __init__(self, model: Any, n_series: int = 1) -> None:
        onnx.checker.check_model(model, full_check=True)
        self.session = onnxruntime.InferenceSession(model.SerializeToString())
        self.declared = {one.name: one for one in self.session.get_inputs()}
        given = ("x", "y_previous", "time")
        self.states = {
            name: np.zeros([n_series, *one.shape[1:]], _TYPES[one.type])
            for name, one in self.declared.items()
            if name not in given
        }
        self.labels: DoubleArray = np.full(n_series, np.nan)

    def predict(self, x: Any, time: Any = None) -> DoubleArray:
        fed: dict[str, Any] = {**self.states, "y_previous": self.labels}
        if "x" in self.declared:
            fed["x"] = np.reshape(np.asarray(x, np.float64), (len(self.labels), -1))
        if "time" in self.declared:
            fed["time"] = np.full(len(self.labels), np.datetime64(time, "s").astype(np.int64))
        prediction, *states = self.session.run(None, fed)
        self.states = dict(zip(self.states, states, strict=True))
        return np.asarray(prediction)


def assert_equal_to_a_stream(model: Fitted, panel: Panel) -> list[float]:
    """Compare to 1e-5 of the error scale of the predictions, however far from zero they are."""
    live, exported = Stream(model), Session(step.step(model))
    times: Any = [None] * len(panel) if panel.time is None else panel.time
    wanted, got = [], []
    for x, label, time in zip(panel.inputs, panel.target, times, strict=True):
        wanted.append(live.predict(x, time=time))
        got.append(exported.predict(x, time).item())
        live.observe(label)
        exported.labels = np.array([label])
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-5 * float(np.std(wanted)))
    return got


def hours(first: str, rows: int) -> Any:
    return np.datetime64(first, "s") + np.arange(rows) * np.timedelta64(3600, "s")


def quick(model: Fitted) -> Fitted:
    """Let all that learns on learn much from each row, so that it counts in a few hundred rows."""
    experts = model.experts
    assert experts is not None
    readout = dataclasses.replace(experts.readout, forgetting=(0.97, 0.9))
    linear = None if experts.linear is None else dataclasses.replace(experts.linear, forgetting=(0.95,))
    return dataclasses.replace(model, experts=dataclasses.replace(experts, readout=readout, linear=linear))


def believing(model: Fitted, expert: int) -> Fitted:
    """Believe one expert at the start, and the others hardly."""
    assert model.experts is not None
    prior = np.full(len(model.experts.names), 0.01)
    prior[expert] += 1 - prior.sum()
    return dataclasses.replace(model, experts=dataclasses.replace(model.experts, prior=prior))


@pytest.fixture(scope="module")
def panel() -> Panel:
    """Give three hundred hours over two weekends, far from zero, with lost labels and wild inputs."""
    rows = random_panel([300], missing=0.1, seed=1)
    pressure = 101_325 + 500 * rows.inputs[:, 1]
    inputs = np.column_stack([rows.inputs, pressure])
    inputs[270:275] *= 50  # beyond what was trained on, and beyond the limit of scaled inputs
    return Panel.from_arrays(inputs, 1e4 + 20 * rows.target, time=hours("2026-01-01T00:30", 300))


@pytest.fixture(scope="module")
def model(panel: Panel) -> VARNNRegressor:
    return VARNNRegressor(epochs=2, calendar=["day", "week"]).fit(panel)


@pytest.fixture(scope="module")
def seasonal_panel() -> Panel:
    """Give sixty days by the hour whose weeks are alike; an input counts an hour later; labels are lost."""
    generator, rows = np.random.default_rng(7), np.arange(24 * 60)
    inputs = generator.normal(size=(len(rows), 2))
    working = np.where(rows // 24 % 7 < 5, 10.0, 3.0)
    target = 50 + working * generator.normal(size=24).cumsum()[rows % 24]
    target += np.concatenate([[0], 3 * inputs[:-1, 0]]) + 0.3 * generator.normal(size=len(rows)).cumsum()
    target[generator.random(len(rows)) < 0.1] = np.nan
    return Panel.from_arrays(inputs, target, time=hours("2026-01-01", len(rows)))


@pytest.fixture(scope="module")
def seasonal(seasonal_panel: Panel) -> Fitted:
    """Give a model of it, with seasons, changes, past inputs, calendar and label filter."""
    settings: dict[str, Any] = {"epochs": 1, "hidden_size": 6, "ensemble": 2, "window": 4}
    model = VARNNRegressor(**settings, calendar=["day"], random_state=0).fit(seasonal_panel).fitted_
    part = model.pipeline.linear
    assert part is not None and part.periods.tolist() == [168]
    assert part.form.changes > 1 and part.form.input_lags > 0 and model.pipeline.label_filter is not None
    return quick(model)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_default_equals_its_stream(variant: Any, panel: Panel) -> None:
    model = (
        VARNNRegressor(variant, epochs=2, calendar=["day", "week"], details=Details(batch_size=8))
        .fit(panel)
        .fitted_
    )
    assert model.window == 24 and model.n_members == 4
    model = quick(model)
    assert_equal_to_a_stream(model, panel)
    trained = dataclasses.replace(model, experts=None, shrinkage=0.7)
    assert_equal_to_a_stream(trained, panel)
    learnt = predict(model, panel) - predict(trained, panel)
    assert np.abs(learnt).max() > 0.01 * np.std(predict(model, panel))


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_model_of_the_paper_equals_its_stream(variant: Any, panel: Panel) -> None:
    assert_equal_to_a_stream(VARNNRegressor.paper(variant, epochs=3).fit(panel).fitted_, panel)


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("window", [1, 2, 6])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_cell_equals_its_stream(case: Case, window: int, members: int) -> None:
    assert_equal_to_a_stream(fitted(case, window, members), random_panel([30], missing=0.3, seed=2))


@pytest.mark.parametrize("limit", [np.inf, 0.7])
@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_carried_state_equals_its_stream(case: Case, members: int, limit: float) -> None:
    free = dataclasses.replace(fitted(case, 3, members), context="series")
    model = dataclasses.replace(free, state_limit=limit)
    panel = random_panel([60], missing=0.3, seed=2)
    got = assert_equal_to_a_stream(model, panel)
    np.testing.assert_allclose(got, predict(model, panel), rtol=1e-4, atol=1e-4)
    begins_anew = not np.array_equal(predict(free, panel), predict(model, panel))
    assert begins_anew == (limit < np.inf and case != Case("RM", "none"))


@pytest.mark.parametrize("case", [Case("RM"), Case("ARM+AM", activation="tanh")], ids=str)
def test_a_state_that_is_no_number_begins_anew_by_itself(case: Case) -> None:
    model = dataclasses.replace(fitted(case, 3, members=2), context="series", state_limit=1e19)
    exported, untouched = Session(step.step(model), 2), Session(step.step(model), 2)
    X, y = random_panel([12], seed=5).inputs.reshape(6, 2, 3), np.linspace(0, 1, 12).reshape(6, 2)
    for x, labels in zip(X[:5], y[:5], strict=True):
        np.testing.assert_array_equal(exported.predict(x), untouched.predict(x))
        exported.labels = untouched.labels = labels
    for name in exported.states:
        exported.states[name][1] = np.nan  # of the second series
        untouched.states[name][1] = 0  # as of a series that begins, which
    untouched.labels = np.array([y[4, 0], np.nan])  # has no label yet
    np.testing.assert_array_equal(exported.predict(X[5]), untouched.predict(X[5]))


@pytest.mark.parametrize("variant", ["RM", "ARM+AM"])
@pytest.mark.parametrize("context", ["series", "window"])
def test_the_default_by_what_rows_are_predicted_from(context: Any, variant: Any, panel: Panel) -> None:
    small: dict[str, Any] = {"epochs": 1, "hidden_size": 8, "ensemble": 3}
    fit = VARNNRegressor(variant, **small, details=Details(context=context)).fit
    model = quick(fit(panel).fitted_)
    assert model.carried == (context == "series")
    assert_equal_to_a_stream(model, panel)
    windows = [
        one.type.tensor_type.shape.dim[2].dim_value
        for one in step.step(model).graph.input
        if one.name in ("memory", "expected", "activation")
    ]
    assert windows == [1 if model.carried else 23] * len(windows) and len(windows) >= 2


@pytest.mark.parametrize("n_inputs", [0, 1])
def test_models_that_hardly_see_inputs(n_inputs: int) -> None:
    panel = random_panel([120], n_inputs, missing=0.1, seed=3)
    small: dict[str, Any] = {"epochs": 1, "hidden_size": 8, "ensemble": 1}
    model = VARNNRegressor(window=4, **small).fit(panel).fitted_
    assert_equal_to_a_stream(model, panel)
    without_inputs = dataclasses.replace(model.pipeline, use_inputs=False)
    if not n_inputs:
        assert_equal_to_a_stream(dataclasses.replace(model, pipeline=without_inputs), panel)
        assert_equal_to_a_stream(
            VARNNRegressor.paper("ARM", memory_size=8, **small).fit(panel).fitted_, panel
        )


def test_a_linear_part_that_looks_back_on_inputs() -> None:
    generator = np.random.default_rng(4)
    X = generator.normal(size=(400, 2))
    y = np.convolve(X[:, 0], [0, 1, 2, 0, 3])[:400]  # what an input was one, two and four rows ago
    panel = Panel.from_arrays(X, y + 0.1 * generator.normal(size=400))
    model = VARNNRegressor(epochs=1, hidden_size=8, ensemble=1).fit(panel).fitted_
    assert model.pipeline.linear is not None and len(model.pipeline.linear.of_inputs) == 5
    assert_equal_to_a_stream(model, Panel.from_arrays(X[50:150], panel.target[50:150]))


@pytest.mark.parametrize("expert", range(7))
def test_each_expert_says_what_it_says_in_a_stream(
    expert: int, seasonal: Fitted, seasonal_panel: Panel
) -> None:
    # Two hundred rows: of the first 170 the season is not known yet.
    assert_equal_to_a_stream(believing(seasonal, expert), seasonal_panel.between(500, 700))


def test_seasons_without_experts(seasonal: Fitted, seasonal_panel: Panel) -> None:
    without = dataclasses.replace(seasonal, experts=None)
    assert_equal_to_a_stream(without, seasonal_panel.between(500, 700))
    assert seasonal.pipeline.linear is not None
    of_seasons = np.random.default_rng(8).normal(size=(3, 4)) / 10
    part = dataclasses.replace(  # labels range so little that changes of a season are cut
        seasonal.pipeline.linear,
        periods=np.array([4.0, 9.0, 30.0]),
        of_seasons=of_seasons,
        low=45.0,
        high=55.0,
    )
    several = dataclasses.replace(without, pipeline=dataclasses.replace(without.pipeline, linear=part))
    assert_equal_to_a_stream(several, seasonal_panel.between(500, 600))


def test_a_readout_that_sees_the_hidden_layer_alone(seasonal: Fitted, seasonal_panel: Panel) -> None:
    experts = seasonal.experts
    assert experts is not None and experts.unit > 0
    features = [*range(seasonal.architecture.hidden_size), -1]
    gain = experts.readout.gain[:, features][:, :, features]
    readout = dataclasses.replace(experts.readout, gain=gain)
    alone = dataclasses.replace(seasonal, experts=dataclasses.replace(experts, unit=0.0, readout=readout))
    assert_equal_to_a_stream(alone, seasonal_panel.between(500, 600))


def test_experts_without_a_linear_part(panel: Panel) -> None:
    model = VARNNRegressor(epochs=1, hidden_size=6, ensemble=2, window=4, linear=False).fit(panel).fitted_
    assert model.experts is not None and model.experts.linear is None
    assert_equal_to_a_stream(quick(model), panel)


def test_a_fleet_is_the_same_graph_and_a_series_starts_afresh_from_zeros(
    seasonal: Fitted, seasonal_panel: Panel
) -> None:
    exported, live, alone = Session(step.step(seasonal), 3), Stream(seasonal, 3), Stream(seasonal)
    X = seasonal_panel.inputs[:900].reshape(3, 300, 2).swapaxes(0, 1)
    y = seasonal_panel.target[:900].reshape(3, 300).T
    wanted, got = np.empty((300, 3)), np.empty((300, 3))
    for row, (x, labels, time) in enumerate(zip(X, y, hours("2026-03-01", 300), strict=True)):
        if row == 100:  # the others then come to know their season while this one does not
            for state in exported.states.values():
                state[1] = 0
            exported.labels[1] = np.nan
        got[row] = exported.predict(x, time)
        wanted[row] = live.predict(x, time=time)
        live.observe(labels)
        if row >= 100:
            wanted[row, 1] = alone.predict(x[1], time=time)
            alone.observe(labels[1])
        exported.labels = labels.astype(np.float64)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-5 * float(np.std(wanted)))


def test_weights_hold_at_extremes() -> None:
    generator, noise = np.random.default_rng(9), 1e-3
    prior = np.array([0.5, 0.3, 0.2])
    graph = Graph()
    aggregator = _aggregation.Aggregator(graph, prior, noise)
    label = graph.input("label")
    aggregator.learn(label, label.is_missing())
    graph.output("prediction", aggregator.combine(graph.input("said", [3])))
    made = graph.model(producer_version="0", description="", metadata={})
    session = onnxruntime.InferenceSession(made.SerializeToString())
    sizes = 10.0 ** np.array([-9, 0, 3, 100, 200])
    states = {
        "scores": generator.normal(size=(5, 3, len(aggregation.RATES))) * 100,
        "scale": noise * np.array([aggregation.LEAST, 1, 1, 1, aggregation.LEAST]),
        "experts": generator.normal(size=(5, 3)) * sizes[:, None],
        "combined": generator.normal(size=5) * sizes,
    }
    labels = states["combined"] + sizes * generator.normal(size=5) * [0, 1, 1, 1, 1]
    said = generator.normal(size=(5, 3))
    got, scores, scale, *_ = session.run(None, {**states, "label": labels, "said": said})

    wanted = aggregation.Aggregator(prior, noise, 5)
    wanted.restore(np.column_stack([states["scores"].reshape(5, -1), states["scale"]]))
    wanted._experts, wanted._combined = states["experts"], states["combined"]
    wanted.learn(labels)
    np.testing.assert_allclose(scores, wanted.scores, rtol=1e-12)
    np.testing.assert_allclose(scale, wanted.scale, rtol=1e-12)
    np.testing.assert_allclose(got, wanted.combine(said), rtol=1e-12)


def test_the_clock_is_read_from_seconds() -> None:
    graph = Graph()
    graph.output("prediction", calendar(graph, ("day", "week")))
    made = graph.model(producer_version="0", description="", metadata={})
    made.graph.output[0].type.tensor_type.shape.dim.add().dim_value = 7
    days = np.datetime64("2026-11-09T00") + 6 * np.arange(60)  # two weeks, with each midnight
    time = np.concatenate([days, [np.datetime64("1969-12-27T00"), np.datetime64("1901-01-01T13")]])
    seconds = time.astype("datetime64[s]").astype(np.int64)
    (got,) = onnxruntime.InferenceSession(made.SerializeToString()).run(None, {"time": seconds})
    np.testing.assert_allclose(got, calendar_inputs(time, ("day", "week")), atol=1e-12)


def test_the_file_says_what_it_is(model: VARNNRegressor, tmp_path: Path) -> None:
    path = tmp_path / "step.onnx"
    given = model.to_onnx(path)
    read = onnx.load(path)
    assert read.SerializeToString() == given.SerializeToString()
    onnx.checker.check_model(str(path))
    facts = {one.key: one.value for one in read.metadata_props}
    assert json.loads(facts["inputs"]) == ["x0", "x1", "x2", "x3"]
    assert facts["target"] == "y"
    assert facts["library"] == f"varnn {varnn.__version__}"
    assert facts["initial_state"] == "zeros"
    states = json.loads(facts["states"])
    assert [one.name for one in read.graph.input] == ["x", "y_previous", "time", *states]
    assert [one.name for one in read.graph.output] == ["prediction", *(f"next_{one}" for one in states)]
    assert read.doc_string.startswith("Predicts 'y' one row ahead")


def test_a_loaded_model_is_exported_alike(model: VARNNRegressor, tmp_path: Path) -> None:
    model.save(tmp_path / "m.varnn")
    again = varnn.load(tmp_path / "m.varnn").to_onnx()
    assert again.graph.SerializeToString() == model.to_onnx().graph.SerializeToString()


def test_what_cannot_be_exported_is_refused(
    model: VARNNRegressor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = VARNNRegressor(epochs=1, hidden_size=4, ensemble=1, peers=True).fit(random_panel([60, 60]))
    with pytest.raises(ConfigError, match="peers=True"):
        together.to_onnx()
    with pytest.raises(ConfigError, match="predicts a constant"):
        step.step(fitted(CASES[0], window=1, n_inputs=0))
    with pytest.raises(OutputError, match="cannot be written"):
        model.to_onnx(tmp_path / "absent" / "step.onnx")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"\[onnx\]"):
        model.to_onnx()


def test_wild_values_are_left_out_as_a_stream_does() -> None:
    inputs, labels = wild_rows()
    model = VARNNRegressor(hidden_size=6, epochs=2, ensemble=2, window=4, random_state=0).fit(*made(1200))
    assert model.fitted_.pipeline.label_filter is not None
    assert_equal_to_a_stream(model.fitted_, Panel.from_arrays(inputs[:, 0], labels[:, 0]))


@pytest.mark.parametrize("lifted", [False, True])
def test_a_floor_at_zero_holds_until_a_label_is_below_it(
    lifted: bool, seasonal: Fitted, seasonal_panel: Panel
) -> None:
    rows = seasonal_panel.between(500, 580)
    low = dataclasses.replace(seasonal, positive=True, experts=None, shrinkage=-20.0)  # now and then below 0
    target = np.maximum(rows.target, 0)
    if lifted:
        target[40] = -1.0
    rows = dataclasses.replace(rows, target=target)
    predictions = predict(low, rows)
    assert (predictions[:41] == 0).any() and (predictions < 0).any() == lifted
    assert_equal_to_a_stream(low, rows)


def test_a_shift_and_glitches_leave_the_same_doubt(seasonal: Fitted, seasonal_panel: Panel) -> None:
    rows, rule = seasonal_panel.between(500, 640), seasonal.pipeline.label_filter
    assert rule is not None
    target = np.where(np.isnan(rows.target), 50, rows.target).astype(np.float64)
    target[95:] += 3 * rule.change
    far = {20: 3, 45: -4, 70: 40, 120: 8, 121: -8, 122: 8}  # the third of these is taken
    for row, times in far.items():
        target[row] = target[row - 1 if row < 120 else 119] + times * rule.change
    target[46] = np.nan  # the doubt waits
    rows = dataclasses.replace(rows, target=target)
    judged = rule.judged(rows)
    assert {20, 45, 70, 95, 120, 121} <= set(judged.left_out) and not {96, 122} & set(judged.left_out)
    assert {21, 46, 47, 96, 121, 122} <= judged.offsets.keys() and 71 not in judged.offsets
    assert_equal_to_a_stream(seasonal, rows)
    assert_equal_to_a_stream(dataclasses.replace(seasonal, experts=None), rows)


def test_a_cell_that_the_graph_does_not_know_is_refused() -> None:
    model = fitted(Case("RM"), window=3)
    longer = dataclasses.replace(model, architecture=with_a_field(model.architecture, "flavour", "as ever"))
    with pytest.raises(ConfigError, match=r"an ONNX step does not handle flavour='as ever'"):
        step.step(longer)
