"""The boosting expert: what it adds, and that batches, streams, fleets, peers and files agree on it."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from typer.testing import CliRunner

import varnn
from tests.cases import random_panel
from varnn import Panel, Stream, VARNNRegressor
from varnn.cli.app import app
from varnn.errors import ConfigError, MissingExtraError
from varnn.fitting import _boosting
from varnn.model.boosting import Trees
from varnn.model.experts import Experts
from varnn.model.prediction import predict_chunks
from varnn.persistence import model_file
from varnn.streaming.linked import LinkedStreams

SMALL: dict[str, Any] = {"hidden_size": 8, "epochs": 2, "ensemble": 2, "window": 6, "device": "cpu"}
CLOSE: Any = {"rtol": 0, "atol": 2e-4}


def kinked(rows: int = 900, series: int = 1, seed: int = 0) -> Panel:
    """Make series moved by the product of two signs: two epochs do not show it to a network."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(series * rows, 3))
    pushes = np.sign(x[:, 0]) * np.sign(x[:, 1]) + generator.normal(size=len(x)) / 5
    y = np.empty(len(x))
    for row in range(len(x)):
        y[row] = pushes[row] + (0.8 * y[row - 1] if row % rows else 50.0)
    y[generator.random(len(y)) < 0.03] = np.nan
    return Panel.from_arrays(x, y, series=np.repeat([f"s{index}" for index in range(series)], rows))


@pytest.fixture(scope="module")
def boosted() -> VARNNRegressor:
    return VARNNRegressor(experts=("boosting",), **SMALL).fit(kinked().between(0, 700))


@pytest.fixture(scope="module")
def later() -> Panel:
    return kinked().between(700, 900)


def experts_of(model: Any) -> tuple[Experts, Trees]:
    experts = model.fitted_.experts
    assert isinstance(experts, Experts)
    assert experts.trees is not None
    return experts, experts.trees


def streamed(live: Stream, panel: Panel) -> Any:
    predictions = []
    for x, label in zip(panel.inputs, panel.target, strict=True):
        predictions.append(live.predict(x))
        live.observe(label)
    return np.array(predictions)


def test_trees_see_what_the_others_do_not(boosted: VARNNRegressor, later: Panel) -> None:
    experts, _ = experts_of(boosted)
    assert experts.names[-1] == "boosting"
    assert np.argmax(experts.prior) == len(experts.names) - 1
    assert set(boosted.fitted_.training.validation) > {"boosting", "network"}
    plain = VARNNRegressor(**SMALL).fit(kinked().between(0, 700))
    errors = [np.nanmean((one.predict(later) - later.target) ** 2) for one in (boosted, plain)]
    assert errors[0] < 0.3 * errors[1]


def test_what_the_expert_says_is_the_linear_part_and_the_trees(boosted: VARNNRegressor, later: Panel) -> None:
    (chunk,) = predict_chunks(boosted.fitted_, later, wanted=("experts", "weights", "linear", "regressors"))
    taps = chunk.taps
    pipeline, (experts, trees) = boosted.fitted_.pipeline, experts_of(boosted)
    features = np.column_stack([pipeline(later).panel.inputs, experts.standardized(taps.regressors)])
    wanted = pipeline.scaling.restore(leaves_of(trees, features.astype(np.float32)))
    np.testing.assert_allclose(taps.experts[:, -1], wanted, rtol=1e-9)
    said = taps.linear[:, None] + taps.experts
    errors = np.nanmean((said - later.target[:, None]) ** 2, axis=0)
    assert errors[-1] < 0.3 * errors[:-1].min()
    np.testing.assert_allclose((taps.weights * said).sum(axis=1), chunk.prediction, rtol=1e-9)


def leaves_of(trees: Trees, features: Any) -> Any:
    """Sum the leaves that rows are in: the first of each tree that no split to the left rules out."""
    ruled_out = np.zeros((len(features), *trees.value.shape), bool)
    for split, (first, feature, threshold) in enumerate(
        zip(trees.first, trees.feature, trees.threshold, strict=True)
    ):
        leaves = np.arange(len(trees.value))[:, None]
        left = (leaves >= first) & (leaves <= split)
        ruled_out |= (features[:, feature] > threshold)[:, None] & left
    leaf = np.argmin(ruled_out, axis=1)
    return np.take_along_axis(np.broadcast_to(trees.value, ruled_out.shape), leaf[:, None], 1).sum(
        axis=(1, 2)
    )


def test_a_stream_gives_what_a_batch_gives(boosted: VARNNRegressor, later: Panel) -> None:
    wanted = boosted.predict(later, resume=False)
    np.testing.assert_array_equal(streamed(boosted.stream(), later), wanted)
    resumed = streamed(boosted.stream(resume=True), later)
    np.testing.assert_array_equal(resumed, boosted.predict(later, resume=True))
    assert np.abs(resumed[:3] - wanted[:3]).max() > 1e-3


def test_a_snapshot_goes_on(boosted: VARNNRegressor, later: Panel) -> None:
    live = boosted.stream()
    streamed(live, later.between(0, 100))
    again = Stream.restore(boosted, live.snapshot())
    rest = later.between(100, 200)
    np.testing.assert_array_equal(streamed(again, rest), streamed(live, rest))


def test_a_file_holds_the_trees_and_needs_no_lightgbm(
    boosted: VARNNRegressor, later: Panel, tmp_path: Path
) -> None:
    boosted.save(tmp_path / "m.varnn")
    again = varnn.load(tmp_path / "m.varnn")
    wanted = boosted.predict(later)
    np.testing.assert_array_equal(again.predict(later), wanted)
    assert again.get_params() == boosted.get_params()
    assert f"{len(experts_of(boosted)[1])} trees beside it" in model_file.read_card(tmp_path / "m.varnn")
    assert again.fitted_.fingerprint == boosted.fitted_.fingerprint
    np.savez(tmp_path / "rows.npz", x=later.inputs, y=later.target, wanted=wanted)
    code = (
        "import sys, numpy as np; sys.modules['lightgbm'] = None\n"
        "import varnn; kept = np.load('rows.npz')\n"
        "found = varnn.load('m.varnn').predict(kept['x'], kept['y'])\n"
        "np.testing.assert_allclose(found, kept['wanted'], rtol=1e-6)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)


def test_a_fleet_gives_what_a_batch_gives() -> None:
    panel = kinked(300, series=3)
    model = VARNNRegressor(experts=("boosting",), **SMALL).fit(panel)
    fleet, predictions = model.stream(3), []
    x, y = panel.inputs.reshape(3, 300, 3), panel.target.reshape(3, 300)
    for row in range(150):
        predictions.append(fleet.predict(x[:, row]))
        fleet.observe(y[:, row])
    wanted = model.predict(panel).reshape(3, 300)[:, :150]
    np.testing.assert_allclose(np.transpose(predictions), wanted, **CLOSE)


def test_series_that_see_each_other_have_trees_too() -> None:
    panel = kinked(200, series=3)
    model = VARNNRegressor(experts=("boosting",), peers=True, **SMALL).fit(panel)
    wanted, live = model.predict(panel).reshape(3, 200), LinkedStreams(model)
    found = np.empty((3, 80))
    for name in panel.ids:
        live[name] = live.begin()
    for row in range(80):
        with live.together(panel.ids):
            for index, name in enumerate(panel.ids):
                found[index, row] = live[name].predict(panel.inputs[index * 200 + row])
                live[name].observe(panel.target[index * 200 + row])
    np.testing.assert_allclose(found, wanted[:, :80], **CLOSE)


def test_one_seed_grows_one_model(boosted: VARNNRegressor, later: Panel) -> None:
    again = clone(boosted).fit(kinked().between(0, 700))
    np.testing.assert_array_equal(again.predict(later), boosted.predict(later))
    other = clone(boosted).set_params(random_state=1).fit(kinked().between(0, 700))
    values = [experts_of(one)[1].value for one in (boosted, again, other)]
    np.testing.assert_array_equal(values[0], values[1])
    assert not np.array_equal(values[0], values[2])


def test_all_rows_grow_as_many_trees_as_were_best_on_those_held_out() -> None:
    panel = kinked().between(0, 700)
    chosen = VARNNRegressor(experts=("boosting",), refit=False, **SMALL).fit(panel)
    refitted = VARNNRegressor(experts=("boosting",), **SMALL).fit(panel)
    trees = [experts_of(one)[1] for one in (chosen, refitted)]
    assert len(trees[0]) == len(trees[1]) < _boosting.MOST
    assert not np.array_equal(trees[0].value, trees[1].value)


def test_without_validation_rows_a_fixed_number_is_grown() -> None:
    model = VARNNRegressor(experts=("boosting",), validation_fraction=0, **SMALL).fit(kinked(300))
    experts, trees = experts_of(model)
    assert len(trees) == _boosting.UNCHOSEN
    assert len(set(experts.prior)) == 1


def test_without_labels_in_the_latest_rows_trees_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_boosting, "LATEST", 20)
    panel = kinked(300)
    panel.target[-20:] = np.nan
    model = VARNNRegressor(experts=("boosting",), validation_fraction=0, **SMALL).fit(panel)
    assert experts_of(model)[1].value.tolist() == [[0.0]]
    assert np.isfinite(model.predict(panel)).all()


def test_a_search_may_ask_for_it() -> None:
    panel = random_panel([200])
    search = GridSearchCV(
        VARNNRegressor(**{**SMALL, "epochs": 1}), {"experts": [(), ("boosting",)]}, cv=TimeSeriesSplit(2)
    )
    assert search.fit(panel.inputs, panel.target).best_params_["experts"] in [(), ("boosting",)]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"experts": "boosting"}, r"experts must be \(\) or \('boosting',\).*got 'boosting'"),
        ({"experts": ("forest",)}, r"experts must be \(\) or \('boosting',\).*got \('forest',\)"),
        ({"experts": ("boosting", "boosting")}, "experts must be"),
        ({"experts": None}, "experts must be"),
        ({"experts": ("boosting",), "linear": False}, "needs linear=True"),
        ({"experts": ("boosting",), "adapt": None}, "needs adapt='constant-gain'"),
    ],
)
def test_what_makes_no_sense_is_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        VARNNRegressor(**SMALL, **settings).fit(random_panel([60]))


def test_lightgbm_is_asked_for_before_anything_is_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    begun: list[Any] = []
    with pytest.raises(MissingExtraError, match=r"needs the package 'lightgbm'.*\[baselines\]"):
        VARNNRegressor(experts=("boosting",), **SMALL).fit(random_panel([60]), on_epoch=begun.append)
    assert not begun


def test_the_command_takes_it(tmp_path: Path) -> None:
    panel = random_panel([120])
    pd.DataFrame(panel.inputs, columns=["a", "b", "c"]).assign(y=panel.target).to_csv(
        tmp_path / "rows.csv", index=False
    )
    words = ["fit", str(tmp_path / "rows.csv"), "--target", "y", "--epochs", "1", "--hidden-size", "4"]
    done = CliRunner().invoke(app, [*words, "-o", str(tmp_path / "m.varnn"), "--experts", "boosting"])
    assert done.exit_code == 0, done.output
    assert len(experts_of(varnn.load(tmp_path / "m.varnn"))[1]) > 0
    wrong = CliRunner().invoke(app, [*words, "-o", str(tmp_path / "w.varnn"), "--experts", "forest"])
    assert isinstance(wrong.exception, ConfigError)
