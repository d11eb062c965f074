"""Regressions and networks against second implementations, written the long way round."""

import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import statsmodels.api as sm
import torch
from sklearn.ensemble import RandomForestRegressor

from tests.cases import random_panel
from varnn import Panel, baselines
from varnn._types import DoubleArray
from varnn.baselines import _networks
from varnn.baselines._history import Preparation
from varnn.baselines._lagged import Lags
from varnn.baselines._regression import Regression
from varnn.baselines.neural import Kind, Network
from varnn.data.preparation import split_in_time
from varnn.errors import MissingExtraError, TrainingError


def stream(rows: int = 120, *, seed: int = 0) -> Panel:
    """Two series of unequal length, that follow inputs old and new and drift."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(rows, 2))
    y = X[:, 0] + 0.5 * np.roll(X[:, 1], 2) + np.cumsum(generator.normal(size=rows)) / 3
    return Panel.from_arrays(X, y, series=["a"] * (rows // 3) + ["b"] * (rows - rows // 3))


def by_hand(panel: Panel, labels: list[int], inputs: list[int]) -> tuple[DoubleArray, DoubleArray, list[int]]:
    """Lag rows in plain loops, original units: regressors, targets and their rows."""
    rows, regressors = [], []
    for first, last in zip(panel.starts[:-1], panel.starts[1:], strict=True):
        for row in range(first, last):
            needed = [row, *(row - lag for lag in labels)]
            if row - max(labels + inputs) < first or np.isnan(panel.target[needed]).any():
                continue
            rows.append(row)
            past = [panel.target[row - lag] for lag in labels]
            regressors.append(np.concatenate([past, *(panel.inputs[row - lag] for lag in inputs)]))
    return np.array(regressors), panel.target[rows].astype(np.float64), rows


@pytest.mark.parametrize(("lags", "labels"), [("correct", [1, 2, 3, 4]), ("as-published", [2, 3, 4])])
def test_arx_is_ordinary_least_squares_on_the_lags(lags: Any, labels: list[int]) -> None:
    panel = stream()
    target = panel.target.copy()
    target[[20, 70]] = np.nan
    panel = replace(panel, target=target)
    regressors, known, rows = by_hand(panel, labels, [0, 1, 2, 3, 4])
    expected = sm.OLS(known, sm.add_constant(regressors)).fit().predict()
    predictions = baselines.make("arx-lr", lags=lags).fit(panel).predict(panel)
    np.testing.assert_allclose(predictions[rows], expected, rtol=1e-9)


def test_a_longer_window_brings_more_lags() -> None:
    panel = stream()
    regressors, known, rows = by_hand(panel, list(range(1, 8)), list(range(8)))
    expected = sm.OLS(known, sm.add_constant(regressors)).fit().predict()
    predictions = baselines.make("arx-lr", window=8).fit(panel).predict(panel)
    np.testing.assert_allclose(predictions[rows], expected, rtol=1e-9)


@pytest.mark.parametrize("lags", [Lags.of(), Lags.sequence(fair=True)])
def test_lags_stop_at_the_start_of_a_series(lags: Lags) -> None:
    panel = stream()
    history, start = Preparation.of(panel, np.float64)(panel), int(panel.starts[1])
    inputs, target = history.panel.inputs, history.panel.target
    for row, label in ((start, history.unknown), (start + 1, target[start])):
        seen = lags.regressors(history, np.array([row])).ravel()
        own = {*inputs[start : row + 1].ravel(), label}
        assert set(seen) == own  # of this series alone


def test_a_missing_label_is_the_last_one_known() -> None:
    panel = stream()
    model = baselines.make("arx-lr").fit(panel)
    gap, held = panel.target.copy(), panel.target.copy()
    gap[[20, 21]] = np.nan
    held[[20, 21]] = held[19]
    filled, repeated = (model.predict(replace(panel, target=one)) for one in (gap, held))
    assert np.array_equal(filled, repeated)


def test_static_regression_is_least_squares_on_the_inputs() -> None:
    panel = stream()
    expected = sm.OLS(panel.target, sm.add_constant(panel.inputs)).fit().predict()
    np.testing.assert_allclose(baselines.make("lr").fit(panel).predict(panel), expected, rtol=1e-9)


def test_gathering_in_stretches_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    panel = stream()
    model = baselines.make("arx-lr").fit(panel)
    whole = model.predict(panel)
    monkeypatch.setattr("varnn.baselines._regression.NUMBERS_AT_ONCE", 100)
    np.testing.assert_allclose(model.predict(panel), whole, rtol=1e-12)


def minmax(panel: Panel, like: Panel) -> Panel:
    """Scale by the range of another panel's inputs and target."""
    return replace(
        panel,
        inputs=(panel.inputs - like.inputs.min(axis=0)) / np.ptp(like.inputs, axis=0),
        target=(panel.target - like.target.min()) / np.ptp(like.target),
    )


def test_lagged_forest_is_a_forest_on_the_lags() -> None:
    panel = stream()
    regressors, known, rows = by_hand(minmax(panel, panel), [1, 2, 3, 4], [0, 1, 2, 3, 4])
    forest = RandomForestRegressor(20, random_state=7).fit(regressors, known.astype(np.float32))
    expected = forest.predict(regressors) * np.ptp(panel.target) + panel.target.min()
    predictions = baselines.make("narx-rf", trees=20, n_jobs=1, random_state=7).fit(panel).predict(panel)
    np.testing.assert_allclose(predictions[rows], expected, rtol=1e-6)


@pytest.mark.parametrize("library", ["lightgbm", "sklearn"])
def test_boosting_stops_where_validation_is_best(library: str) -> None:
    training, validation = split_in_time(stream(1500), 0.7, 0.3)

    def error(rounds: int, judge: Panel | None) -> float:
        model = baselines.make("narx-gbm", library=library, learning_rate=0.3, rounds=rounds)
        return float(
            np.mean((model.fit(training, validation=judge).predict(validation) - validation.target) ** 2)
        )

    assert error(300, validation) < min(error(rounds, None) for rounds in (1, 5, 300))


def test_the_two_boosting_libraries_agree() -> None:
    training, validation = split_in_time(stream(1500), 0.7, 0.3)
    one, other = (
        baselines.make("narx-gbm", library=library, rounds=100).fit(training).predict(validation)
        for library in ("lightgbm", "sklearn")
    )
    assert np.std(one - other) < 0.2 * np.std(validation.target)


def test_lightgbm_gives_one_result_on_any_number_of_threads() -> None:
    panel = stream(1500)
    one, two = (
        baselines.make("narx-gbm", rounds=30, n_jobs=threads).fit(panel).predict(panel) for threads in (1, 2)
    )
    assert np.array_equal(one, two)


def test_boosting_falls_back_on_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    panel = stream()
    expected = baselines.make("narx-gbm", library="sklearn", rounds=10).fit(panel).predict(panel)
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    assert np.array_equal(baselines.make("narx-gbm", rounds=10).fit(panel).predict(panel), expected)
    with pytest.raises(MissingExtraError, match="lightgbm"):
        baselines.make("narx-gbm", library="lightgbm").fit(panel)


def _numpy_network(kind: Kind, network: torch.nn.Module, regressors: npt.NDArray[Any]) -> DoubleArray:
    """Write the textbook equations in NumPy, from the network's own matrices."""
    weights = {
        name: one.detach().cpu().numpy().astype(np.float64) for name, one in network.named_parameters()
    }

    def sigmoid(z: DoubleArray) -> DoubleArray:
        return 1 / (1 + np.exp(-z))

    if kind == "mlp":
        hidden = np.maximum(regressors @ weights["0.weight"].T + weights["0.bias"], 0)
        return np.asarray(hidden @ weights["2.weight"][0] + weights["2.bias"])
    h = c = np.zeros((len(regressors), weights["head.weight"].shape[1]))
    for step in range(regressors.shape[1]):
        x = regressors[:, step] @ weights["layer.weight_ih_l0"].T + weights["layer.bias_ih_l0"]
        r = h @ weights["layer.weight_hh_l0"].T + weights["layer.bias_hh_l0"]
        if kind == "rnn":
            h = np.maximum(x + r, 0)
        elif kind == "lstm":
            enter, forget, cell, leave = np.split(x + r, 4, axis=1)
            c = sigmoid(forget) * c + sigmoid(enter) * np.tanh(cell)
            h = sigmoid(leave) * np.tanh(c)
        else:
            (x_reset, x_keep, x_new), (r_reset, r_keep, r_new) = (
                np.split(x, 3, axis=1),
                np.split(r, 3, axis=1),
            )
            keep = sigmoid(x_keep + r_keep)
            h = (1 - keep) * np.tanh(x_new + sigmoid(x_reset + r_reset) * r_new) + keep * h
    return np.asarray(h @ weights["head.weight"][0] + weights["head.bias"])


@pytest.mark.parametrize(
    ("name", "kind", "labels", "inputs"),
    [
        ("mlp", "mlp", [], [0]),
        ("narx-mlp", "mlp", [1, 2, 3, 4], [0, 1, 2, 3, 4]),
        ("rnn", "rnn", [], [4, 3, 2, 1]),
        ("lstm", "lstm", [], [4, 3, 2, 1]),
        ("gru", "gru", [], [4, 3, 2, 1]),
    ],
)
def test_networks_are_the_textbook_equations(
    name: str, kind: Kind, labels: list[int], inputs: list[int]
) -> None:
    training, panel = stream(), stream(60, seed=5)
    # Not on a GPU, which rounds the products of recurrent layers to ten bits.
    model = baselines.make(name, epochs=3, hidden_size=7, device="cpu").fit(training)
    assert isinstance(model, Regression)
    assert isinstance(model.learner, Network)
    assert model.learner.trained_ is not None
    offset, scale = training.target.min(), np.ptp(training.target)
    regressors, _, rows = by_hand(minmax(panel, training), labels, inputs)
    if kind != "mlp":
        regressors = regressors.reshape(len(rows), len(inputs), 2)
    expected = _numpy_network(kind, model.learner.trained_.network, regressors) * scale + offset
    np.testing.assert_allclose(model.predict(panel)[rows], expected, atol=2e-5)


def test_a_fair_sequence_pairs_inputs_with_the_label_before() -> None:
    panel = stream()
    history = Preparation.of(panel, np.float64)(panel)
    steps = Lags.sequence(4, fair=True).regressors(history, np.array([70]))[0]  # (T, C)
    inputs, target = history.panel.inputs, history.panel.target
    assert np.array_equal(steps[:, :2], inputs[67:71])
    assert np.array_equal(steps[:, 2], target[[67, 67, 68, 69]])


def test_networks_start_as_in_keras() -> None:
    size, channels = 16, 5
    for kind, gates in (("rnn", 1), ("lstm", 4), ("gru", 3)):
        network = _networks.build(kind, channels, size, seed=3)
        weights = {name: one.detach().numpy() for name, one in network.named_parameters()}
        recurrent = weights["layer.weight_hh_l0"]
        np.testing.assert_allclose(recurrent.T @ recurrent, np.eye(size), atol=1e-5)
        limit = np.sqrt(6 / (channels + gates * size))
        kernel = weights["layer.weight_ih_l0"]
        assert 0.8 * limit < np.abs(kernel).max() <= limit
        bias = weights["layer.bias_ih_l0"]
        expected = np.zeros(gates * size)
        if kind == "lstm":
            expected[size : 2 * size] = 1
        assert np.array_equal(bias, expected)
        assert not weights["layer.bias_hh_l0"].any()


@pytest.mark.parametrize("name", ["narx-mlp", "rnn", "lstm"])
def test_the_best_epoch_on_validation_is_kept(name: str) -> None:
    training, validation = split_in_time(stream(600), 0.6, 0.4)
    model = baselines.make(name, epochs=30, hidden_size=16, learning_rate=0.03, batch_size=16)
    model.fit(training, validation=validation)
    assert isinstance(model, Regression)
    assert isinstance(model.learner, Network)
    assert model.learner.trained_ is not None
    losses = [line["validation_loss"] for line in model.learner.trained_.history]
    rows = np.arange(len(validation)) - validation.first_rows >= 4
    misses = (model.predict(validation) - validation.target)[rows] / np.ptp(training.target)
    assert np.mean(misses**2) == pytest.approx(min(losses), rel=1e-4)
    assert min(losses) < losses[-1]  # otherwise the last epoch would do as well


def test_patience_ends_training() -> None:
    training, validation = split_in_time(stream(300), 0.6, 0.4)
    learner = Network("mlp", epochs=200, patience=2, learning_rate=0.05)
    Regression(learner=learner, lags=Lags.of()).fit(training, validation=validation)
    assert learner.trained_ is not None
    losses = [line["validation_loss"] for line in learner.trained_.history]
    assert len(losses) < 200
    assert int(np.argmin(losses)) == len(losses) - 3


def test_training_leaves_the_global_generator_of_torch_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    baselines.make("gru", epochs=1, hidden_size=4).fit(stream())
    assert torch.equal(torch.rand(3), expected)


def test_a_loss_that_is_not_finite_is_an_error() -> None:
    with pytest.raises(TrainingError, match="Lower learning_rate"):
        baselines.make("rnn", learning_rate=1e30, epochs=5).fit(stream())


def test_importing_and_making_baselines_loads_no_heavy_package() -> None:
    code = (
        "import sys; from varnn import baselines; [baselines.make(name) for name in baselines.NAMES]; "
        "print([one for one in ('torch', 'lightgbm', 'statsmodels', 'matplotlib') if one in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_layers_stepped_by_hand_are_those_of_torch(kind: str) -> None:
    """With tanh they give what torch's own layers give; with relu, which torch has not, something else."""
    network = _networks.build(kind, 3, 5, seed=1)
    assert isinstance(network, _networks.Recurrent)
    with torch.no_grad():
        for weights in network.layer.parameters():
            weights.copy_(torch.randn(weights.shape))
        steps = torch.randn(7, 4, 3)
        step = {"lstm": _networks.lstm, "gru": _networks.gru}[kind]
        torch.testing.assert_close(step(network.layer, steps, torch.tanh), network.layer(steps)[0][:, -1])
        assert not torch.allclose(step(network.layer, steps, torch.relu), network.layer(steps)[0][:, -1])


@pytest.mark.parametrize("kind", ["rnn", "lstm", "gru"])
def test_a_recurrent_network_may_see_the_row_it_predicts(kind: str) -> None:
    """The label is the row's own input: only a network that sees that row can know it."""
    x = np.random.default_rng(0).normal(size=800)
    panel = Panel.from_arrays(x[:, None], x)
    errors = {}
    for current in (False, True):
        for activation in ("relu", "tanh"):
            settings: dict[str, Any] = {
                "current": current,
                "activation": activation,
                "epochs": 15,
                "batch_size": 16,
            }
            model = baselines.make(kind, **settings, hidden_size=16)
            errors[current, activation] = np.mean(np.square(model.fit(panel).predict(panel) - x)[5:])
    assert max(errors[True, one] for one in ("relu", "tanh")) < 0.2
    assert min(errors[False, one] for one in ("relu", "tanh")) > 0.5


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize(("kind", "activation"), [("rnn", "relu"), ("lstm", "tanh"), ("gru", "relu")])
def test_recorded_steps_are_those_not_recorded(
    kind: str, activation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel = random_panel([700], n_inputs=3, seed=1)  # batches of 128, and one that is shorter

    def losses() -> list[float]:
        model = baselines.make(kind, device="cuda", epochs=4, activation=activation, random_state=1)
        assert isinstance(model, Regression)
        model.fit(panel)
        assert isinstance(model.learner, Network) and model.learner.trained_ is not None
        return [line["loss"] for line in model.learner.trained_.history]

    recorded = losses()
    monkeypatch.setattr(_networks, "_recorded", lambda take_step, *_: take_step)
    assert recorded == losses()
