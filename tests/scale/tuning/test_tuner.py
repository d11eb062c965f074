"""A whole search: what it gives, what it keeps, and what awkward rows, spaces and budgets come to."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import varnn
from varnn import Details, Panel, VARNNRegressor, datasets
from varnn.errors import ConfigError, DataError, MissingExtraError
from varnn.fitting import stages
from varnn.scale import VARNNTuner
from varnn.scale.tuning import search, study
from varnn.scale.tuning.page import page
from varnn.scale.tuning.search import Step

LABELS = np.sin(np.arange(300) / 9) + np.random.default_rng(0).normal(size=300) / 5
PANEL = Panel.from_arrays(None, LABELS)


def tuner(**changes: Any) -> VARNNTuner:
    model = VARNNRegressor(ensemble=1, epochs=2, hidden_size=4, **changes.pop("settings", {}))
    given: dict[str, Any] = {
        "model": model,
        "trials": 3,
        "origins": 2,
        "seeds": 1,
        "space": {"window": (4, 12), "hidden_size": [4, 8]},
    }
    return VARNNTuner(**(given | changes))


def test_a_search_gives_a_regressor_that_was_fitted_on_all_rows(tmp_path: Path) -> None:
    one = tuner().fit(PANEL)
    assert [line["trial"] for line in one.trials_] == [0, 1, 2]
    assert one.trials_[0]["default"] and one.trials_[0]["ratio"] == 1 and one.trials_[0]["settings"] == {}
    assert set(one.trials_[1]["settings"]) == {"window", "hidden_size"}
    assert one.best_.fitted_.training.trained_on == 300
    assert one.kept_default_ == one.verdict_.keeps_default
    assert one.verdict_.validation_ratio <= 1
    assert {"default", "persistence", "linear ARX"} <= set(one.verdict_.errors)
    assert len(one.study_.trials) == 3
    np.testing.assert_array_equal(one.predict(PANEL), one.best_.predict(PANEL))
    assert one.score(PANEL) == one.best_.score(PANEL)
    live = one.stream()
    assert isinstance(live.predict([]), float)
    one.save(tmp_path / "m.varnn")
    np.testing.assert_array_equal(varnn.load(tmp_path / "m.varnn").predict(PANEL), one.predict(PANEL))


def test_arrays_and_series_do_as_panels_do() -> None:
    X, series = np.random.default_rng(1).normal(size=(300, 2)), np.repeat(["a", "b"], 150)
    one = tuner(trials=2).fit(X, LABELS, series=series)
    assert one.n_features_in_ == 2 and one.best_.fitted_.training.series == 2
    assert one.predict(X, LABELS, series=series).shape == (300,)


def test_one_seed_gives_one_search_and_it_leaves_the_model_alone() -> None:
    model = VARNNRegressor(ensemble=1, epochs=2, hidden_size=4)
    first, second = (tuner(model=model).fit(PANEL) for _ in range(2))
    assert [(a["settings"], a["ratio"]) for a in first.trials_] == [
        (a["settings"], a["ratio"]) for a in second.trials_
    ]
    assert not hasattr(model, "fitted_")
    other = tuner(model=model, random_state=5).fit(PANEL)
    assert [a["settings"] for a in other.trials_] != [a["settings"] for a in first.trials_]


def test_workers_come_to_the_same_ratios() -> None:
    alone, together = (tuner(trials=4, workers=count).fit(PANEL) for count in (1, 2))
    # With two at a time a trial is proposed before the last one is told; the first two know of none.
    assert together.trials_[1]["settings"] == alone.trials_[1]["settings"]
    assert together.trials_[1]["ratio"] == pytest.approx(alone.trials_[1]["ratio"], rel=1e-6)
    assert [line["ended"] for line in together.trials_] == ["through"] * 4


def test_trials_on_a_cluster(local_ray: None) -> None:
    alone, spread = (tuner(trials=3, cluster=cluster).fit(PANEL) for cluster in (None, "auto"))
    assert spread.trials_[1]["settings"] == alone.trials_[1]["settings"]
    assert spread.trials_[1]["ratio"] == pytest.approx(alone.trials_[1]["ratio"], rel=1e-6)


def test_a_worker_that_is_killed_costs_no_trial() -> None:
    killed: list[int] = []
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")

    def kill(step: Step) -> None:
        if step.done < 2 or step.stage != "trials" or killed:
            return
        every = [Path("/proc", one) for one in children.read_text().split()]
        workers = [int(one.name) for one in every if b"varnn.jobs._worker" in (one / "cmdline").read_bytes()]
        killed.append(workers[0])
        os.kill(workers[0], signal.SIGKILL)

    one = tuner(trials=6, workers=2).fit(PANEL, on_step=kill)
    assert killed and {line["ended"] for line in one.trials_} <= {"through", "behind"}
    assert len(one.trials_) == 6


def test_a_tuned_model_is_taken_where_it_is_truly_better() -> None:
    panel = Panel.from_arrays(None, np.random.default_rng(3).normal(size=1200).cumsum())
    poor = VARNNRegressor(ensemble=1, epochs=2, hidden_size=4, linear=False, adapt=None)
    one = tuner(model=poor, space={"linear": [False, True]}, trials=6, seeds=2).fit(panel)
    assert not one.kept_default_ and one.best_.linear
    assert one.verdict_.settings == {"linear": True} and one.verdict_.test_ratio < 0.9
    assert one.verdict_.test is not None and one.verdict_.test.p < 0.05


def test_a_study_goes_on_and_trials_that_are_done_are_not_done_again(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    tuner(study=path, trials=2).fit(PANEL)
    steps: list[Step] = []
    one = tuner(study=str(path), trials=3).fit(PANEL, on_step=steps.append)
    assert len(one.trials_) == 3
    assert [step.done for step in steps if step.stage == "trials"] == [3]
    none: list[Step] = []
    tuner(study=path, trials=3).fit(PANEL, on_step=none.append)
    assert {step.stage for step in none} <= {"finals", "test", "refit"}
    with pytest.raises(ConfigError, match="is of other rows"):
        tuner(study=path).fit(Panel.from_arrays(None, LABELS + 1))
    with pytest.raises(ConfigError, match="is of other rows"):
        tuner(study=path).fit(Panel.from_arrays(None, LABELS, series=np.repeat([1, 2], 150)))
    with pytest.raises(ConfigError, match="is of a model with other settings"):
        tuner(study=path, settings={"details": Details(patience=2)}).fit(PANEL)


def test_a_trial_that_fails_does_not_end_the_search() -> None:
    space = {"details__loss_rows": [1, 200], "hidden_size": [4, 6]}  # more rows than a window has
    one = tuner(space=space, trials=8, settings={"window": 6, "details": Details(loss_rows=1)}).fit(PANEL)
    ended = {line["ended"] for line in one.trials_}
    assert {"through", "failed"} <= ended
    assert any("loss_rows" in (line["reason"] or "") for line in one.trials_)
    assert one.verdict_.trials["failed"] >= 1 and "failed (the last:" in str(one.verdict_)


def test_a_search_in_which_everything_fails_keeps_the_default(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(search, "HOPELESS", 3)
    space = {"details__loss_rows": (150, 200)}
    one = tuner(space=space, trials=None, minutes=10).fit(PANEL)
    assert one.kept_default_ and one.verdict_.trials == {"through": 1, "behind": 0, "failed": 3}
    assert "the last 3 trials all failed, so no more are begun" in caplog.text
    page(one, "rows").html()


def test_what_fails_for_the_default_is_said_at_once() -> None:
    steps: list[Step] = []
    with pytest.raises(ConfigError, match="ensemble must be a whole number"):
        tuner(model=VARNNRegressor(ensemble=0)).fit(PANEL, on_step=steps.append)
    with pytest.raises(DataError, match="horizon"):
        tuner(model=VARNNRegressor(horizon=500)).fit(PANEL, on_step=steps.append)
    assert not steps
    with pytest.raises(ConfigError, match="loss_rows must be at most window"):
        tuner(model=VARNNRegressor(window=4, details=Details(loss_rows=9))).fit(PANEL)


def test_no_time_is_time_for_the_default() -> None:
    one = tuner(trials=None, minutes=0.001).fit(PANEL)
    assert one.kept_default_ and one.trials_[0]["ratio"] == 1
    assert one.verdict_.trials["through"] >= 1


def test_a_trial_ends_when_time_is_up(tmp_path: Path) -> None:
    slow = VARNNRegressor(ensemble=1, epochs=400, hidden_size=4, details=Details(patience=None))
    quick = tuner(model=slow, trials=2, study=tmp_path / "s.db")
    began = time.perf_counter()
    quick.set_params(minutes=0.0001).fit(PANEL)
    default = quick.trials_[0]["seconds"]
    assert [line["ended"] for line in quick.trials_] == ["through"]
    quick.set_params(minutes=default / 60 / 10).fit(PANEL)  # the default is known: a tenth of a trial
    assert [line["reason"] for line in quick.trials_] == [None, study.CUT_OFF]
    assert quick.verdict_.trials == {"through": 1, "behind": 0, "failed": 0}
    assert time.perf_counter() - began < 200 * default


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"trials": 0}, "trials must be a whole number, at least 1, or None; got 0"),
        ({"minutes": 0}, "minutes must be a number, above 0"),
        ({"origins": 0}, "origins must be a whole number, at least 1"),
        ({"test_fraction": 1.0}, "test_fraction must be a number, above 0 and below 1"),
        ({"workers": 0}, "workers must be a whole number"),
        ({"study": 3}, "study must be a path"),
        ({"model": "varnn"}, "model must be a VARNNRegressor"),
        ({"cluster": 3}, "cluster must be 'auto'"),
        ({"space": {"depth": (1, 3)}}, "which is no setting"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_fitted(changes: dict[str, Any], said: str) -> None:
    steps: list[Step] = []
    with pytest.raises(ConfigError, match=said):
        tuner(**changes).fit(PANEL, on_step=steps.append)
    assert not steps


def test_optuna_is_asked_for_before_work_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtraError, match=r"\[tune\]"):
        tuner().fit("not even rows")


def test_thirty_rows_and_fewer() -> None:
    one = tuner(origins=3).fit(Panel.from_arrays(None, LABELS[:30]))
    assert one.verdict_.rows == 6 and np.isfinite(one.predict(PANEL)).all()
    with pytest.raises(DataError, match="5 rows in 1 series are too few to tune on"):
        tuner().fit(Panel.from_arrays(None, LABELS[:5]))


def test_a_constant_target_keeps_the_default() -> None:
    one = tuner().fit(Panel.from_arrays(None, np.full(200, 3.0)))
    assert one.kept_default_ and all(np.isfinite(line["ratio"]) for line in one.trials_)
    page(one, "constants").html()


def test_missing_labels_are_not_scored() -> None:
    labels = LABELS.copy()
    labels[::3] = np.nan
    one = tuner().fit(Panel.from_arrays(None, labels))
    assert one.verdict_.rows == int(np.count_nonzero(~np.isnan(labels[240:])))
    labels[200:] = np.nan
    with pytest.raises(DataError, match="too few to tune on"):
        tuner().fit(Panel.from_arrays(None, labels))


def test_texts_among_the_inputs() -> None:
    sky = np.where(np.arange(300) % 7 < 3, "sun", "rain")
    frame = pd.DataFrame({"sky": sky, "load": LABELS + (sky == "sun")})
    one = tuner(trials=2).fit(Panel.from_frame(frame, target="load"))
    assert "sky=sun" in one.best_.fitted_.input_names


def test_trials_cost_one_member_and_no_refit(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, bool]] = []
    real = stages.fit

    def counted(settings: Any, *rows: Any, refit: bool = False, **options: Any) -> Any:
        asked.append((settings.ensemble, refit))
        return real(settings, *rows, refit=refit, **options)

    monkeypatch.setattr("varnn.fitting.fit", counted)
    model = VARNNRegressor(ensemble=2, epochs=1, hidden_size=4)
    one = tuner(model=model, trials=2, origins=2).fit(PANEL)
    assert asked[:4] == [(1, False)] * 4  # the default and a trial, at two origins
    assert asked[-1] == (2, True)  # what is taken
    assert one.best_.ensemble == 2


def test_a_tuner_is_an_estimator() -> None:
    one = clone(tuner())
    assert one.get_params()["model__hidden_size"] == 4
    with pytest.raises(NotFittedError):
        one.predict(PANEL)


def test_ctrl_c_keeps_what_is_finished(tmp_path: Path) -> None:
    path, words = tmp_path / "s.db", tmp_path / "words.txt"
    program = (
        "import numpy as np; from varnn import Panel, VARNNRegressor; from varnn.scale import VARNNTuner\n"
        "labels = np.sin(np.arange(3000) / 9)\n"
        "def say(step):\n"
        f"    print(step.done, file=open({str(words)!r}, 'a'), flush=True)\n"
        "VARNNTuner(VARNNRegressor(ensemble=1, epochs=3, hidden_size=4), trials=10_000, workers=2,\n"
        f"           study={str(path)!r}, space={{'window': (4, 12)}}).fit(None, labels, on_step=say)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)
    while not words.exists() or len(words.read_text().splitlines()) < 4:
        time.sleep(0.05)
        assert process.poll() is None
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(timeout=60) != 0
    kept = optuna.load_study(study_name=study.NAME, storage=f"sqlite:///{path}")
    states = [one.state.name for one in kept.trials]
    assert states.count("COMPLETE") + states.count("PRUNED") >= 3 and "RUNNING" not in states


def test_a_page_says_the_verdict_first(tmp_path: Path) -> None:
    one = tuner(trials=16).fit(PANEL)
    assert one.importances_ and set(one.importances_) == {"window", "hidden_size"}
    text = page(one, "made rows").html()
    assert text.index(str(one.verdict_)[:30]) < text.index("<h2>")
    for part in (
        "On rows that no choice has seen",
        "Trials",
        "The best trials",
        "What decided",
        "linear ARX",
    ):
        assert part in text


def test_made_rows_with_a_calendar_and_the_default_space() -> None:
    panel = datasets.load("synthetic", kind="regimes", rows=400, seed=1)
    one = VARNNTuner(VARNNRegressor(ensemble=1, epochs=1), trials=3, origins=1, seeds=1).fit(panel)
    assert json.dumps(one.trials_) and len(one.trials_) == 3
