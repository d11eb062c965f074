"""Ctrl-C while a model is trained: what is kept, what is said, and how the process ends."""

import contextlib
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pandas as pd
import pytest

import varnn
from varnn import Details, Panel, VARNNRegressor, evaluation
from varnn.errors import ConfigError, TrainingError
from varnn.persistence import model_file

LABELS = np.sin(np.arange(3000) / 9) + np.random.default_rng(0).normal(size=3000) / 5


def stopping_after(epochs: int, stop: Event) -> Any:
    count = 0

    def on_epoch(_: dict[str, float]) -> None:
        nonlocal count
        count += 1
        if count == epochs:
            stop.set()

    return on_epoch


def fitted(epochs: int, **changes: Any) -> VARNNRegressor:
    """Cut a fit short after so many epochs of all."""
    settings: dict[str, Any] = {"ensemble": 1, "epochs": 4, "hidden_size": 4} | changes
    stop = Event()
    model = VARNNRegressor(**settings, details=Details(patience=None))
    return model.fit(None, LABELS[:300], on_epoch=stopping_after(epochs, stop), stop=stop)


@pytest.mark.parametrize(
    ("epochs", "changes", "said"),
    [
        (2, {}, "after 2 of 4 epochs, with 1 of 1 members; not trained again on all rows"),
        (2, {"refit": False}, "after 2 of 4 epochs, with 1 of 1 members"),
        (5, {}, "after its members were trained; not trained again on all rows"),
        (5, {"refit": False, "horizon": 3}, "after its members were trained; looks one row ahead only"),
    ],
)
def test_what_was_cut_short_says_so(epochs: int, changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    model = fitted(epochs, **changes)
    assert model.fitted_.training.interrupted == said
    assert model.fitted_.training.refitted_on is None and model.forecaster_ is None
    assert model.score(None, LABELS[:300]) > 0
    model.save(tmp_path / "m.varnn")
    card = model_file.read_card(tmp_path / "m.varnn")
    assert f"Training was cut short {said}." in card and "forecasts of up to" not in card
    assert varnn.load(tmp_path / "m.varnn").fitted_.training.interrupted == said


def test_a_forecaster_that_is_judged_is_kept() -> None:
    best = fitted(1000, horizon=3).fitted_.training.best_epoch[0]
    cut = fitted(4 + best + 4 + 1, horizon=3)  # in the last stage of all
    assert "what looks ahead not trained again on all rows" in str(cut.fitted_.training.interrupted)
    assert cut.forecast(interval=0.9).horizon == 3


def test_ctrl_c_in_python_keeps_the_model_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    def on_epoch(line: dict[str, float]) -> None:
        if line["epoch"] == 2:
            raise KeyboardInterrupt

    model = VARNNRegressor(ensemble=1, epochs=4, hidden_size=4).fit(None, LABELS[:300], on_epoch=on_epoch)
    assert "training was cut short after 2 of 4 epochs, with 1 of 1 members; not trained" in caplog.text
    assert model.score(None, LABELS[:300]) > 0


def test_nothing_is_left_where_nothing_was_trained() -> None:
    stop = Event()
    stop.set()
    model = VARNNRegressor()
    with pytest.raises(TrainingError, match="nothing was trained: `stop` was set before the first epoch"):
        model.fit(None, LABELS, stop=stop)
    assert not hasattr(model, "fitted_")


def test_ctrl_c_before_anything_was_trained_stays_one() -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    stop = Event()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("varnn.network.training.loop._run_epoch", interrupted)
        with pytest.raises(KeyboardInterrupt):
            VARNNRegressor(ensemble=1, epochs=2).fit(None, LABELS[:300], stop=stop)
    assert not stop.is_set()


def test_an_event_of_the_caller_is_the_callers_own() -> None:
    def on_epoch(line: dict[str, float]) -> None:
        if line["progress"] > 0.2:  # by then several members are trained side by side
            raise ValueError("of the caller")

    stop = Event()
    with pytest.raises(ValueError, match="of the caller"):
        VARNNRegressor(ensemble=3, epochs=2, hidden_size=4).fit(
            None, LABELS[:300], on_epoch=on_epoch, stop=stop
        )
    assert not stop.is_set()


def test_what_is_no_event_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"stop must be an event.*got True"):
        VARNNRegressor().fit(None, LABELS, stop=True)  # type: ignore[arg-type]  # wrong on purpose


def test_epochs_are_told_one_at_a_time() -> None:
    inside, most, lines = 0, 0, []

    def on_epoch(line: dict[str, float]) -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        time.sleep(0.01)
        lines.append(line)
        inside -= 1

    settings: dict[str, Any] = {"ensemble": 5, "epochs": 4, "hidden_size": 4, "refit": True}
    model = VARNNRegressor(**settings, details=Details(patience=None))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("os.cpu_count", lambda: 4)  # of which members make use
        model.fit(None, LABELS[:300], on_epoch=on_epoch)
    assert most == 1
    told = {"member", "members", "stage", "horizon", "epochs", "progress", "seconds_left"}
    assert set(lines[0]) == {*model.history_[0], *told}
    again = sum(model.fitted_.training.best_epoch)
    assert len(lines) == 5 * 4 + again  # those of the refit are told, too, and are not in history_
    assert len(model.history_) == 5 * 4
    shares = [line["progress"] for line in lines]
    assert shares == sorted(shares) and shares[-1] == 1.0


def test_a_fit_that_fails_leaves_the_estimator_as_it_was() -> None:
    stop = Event()
    stop.set()
    named = pd.DataFrame({"heat": LABELS[:300]})
    model = VARNNRegressor(ensemble=1, epochs=1, hidden_size=4).fit(named, LABELS[1:301])
    before = dict(vars(model))
    with pytest.raises(TrainingError):
        model.fit(np.zeros((300, 2)), LABELS[:300], stop=stop)
    assert vars(model) == before
    model.fit(np.zeros((300, 2)), LABELS[:300])
    assert model.n_features_in_ == 2 and not hasattr(model, "feature_names_in_")


def test_a_fit_that_is_not_cut_short_does_not_say_so() -> None:
    assert fitted(1000).fitted_.training.interrupted is None


def test_a_comparison_does_not_go_on_with_half_a_model() -> None:
    def on_epoch(line: dict[str, float]) -> None:
        if line["epoch"] == 2:
            raise KeyboardInterrupt

    make = ("small", lambda seed: VARNNRegressor(ensemble=1, hidden_size=4, random_state=seed))
    with pytest.raises(KeyboardInterrupt):
        evaluation.compare(Panel.from_arrays(None, LABELS[:400]), [make], seeds=1, on_epoch=on_epoch)


class Command:
    """A command at a terminal, on a table that takes a while."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        table = folder / "waves.csv"
        table.write_text("y\n" + "\n".join(f"{one:.4f}" for one in LABELS) + "\n")
        program = "from varnn.cli.app import main; main()"
        command = [sys.executable, "-c", program, arguments[0], str(table), "--target", "y", *arguments[1:]]
        self.terminal, theirs = pty.openpty()
        surroundings = os.environ | {"TERM": "xterm", "COLUMNS": "300", "NO_COLOR": "1"}
        self.process = subprocess.Popen(
            command, stderr=theirs, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env=surroundings
        )
        os.close(theirs)
        self.said = ""

    def __enter__(self) -> "Command":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.terminal)

    def interrupt(self, waiting_for: str) -> None:
        """Send Ctrl-C once something was said: the bar says "validation" after the first epoch."""
        while waiting_for not in self.said:
            self.said += os.read(self.terminal, 4096).decode(errors="replace")
        self.process.send_signal(signal.SIGINT)

    def ended(self) -> tuple[str, int]:
        with contextlib.suppress(OSError):  # which is how a terminal ends
            while more := os.read(self.terminal, 4096):
                self.said += more.decode(errors="replace")
        return " ".join(self.said.split()), self.process.wait(timeout=60)


LONG = ("--epochs", "100000", "--hidden-size", "192")


def test_ctrl_c_saves_what_is_trained_and_says_so(tmp_path: Path) -> None:
    with Command(tmp_path, "fit", "-o", str(tmp_path / "m.varnn"), *LONG) as command:
        command.interrupt("validation ")
        said, code = command.ended()
    assert code == 130, said
    assert "100%" not in said
    assert "training is cut short: what is trained by now is kept" in said
    assert "of 100000 epochs, with" in said and f"saved {tmp_path / 'm.varnn'} as it was then." in said
    assert "Traceback" not in said
    model = varnn.load(tmp_path / "m.varnn")
    assert "not trained again on all rows" in str(model.fitted_.training.interrupted)
    shown = subprocess.run(
        [
            sys.executable,
            "-c",
            "from varnn.cli.app import main; main()",
            "inspect",
            str(tmp_path / "m.varnn"),
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert re.search(r"cut short +after", shown)


def test_a_second_ctrl_c_leaves_at_once(tmp_path: Path) -> None:
    with Command(tmp_path, "fit", "-o", str(tmp_path / "m.varnn"), *LONG) as command:
        command.interrupt("validation ")
        command.interrupt("training is cut short")
        said, code = command.ended()
    assert code == 130, said
    assert "stopped at once: nothing was written." in said
    assert [one.name for one in tmp_path.iterdir()] == ["waves.csv"]


def test_a_forecast_that_was_cut_short_is_not_written(tmp_path: Path) -> None:
    with Command(tmp_path, "forecast", "--horizon", "48", "-o", str(tmp_path / "ahead.csv")) as command:
        command.interrupt("validation ")
        said, code = command.ended()
    assert code == 130, said
    assert "it cannot look so far ahead yet: nothing is written" in said
    assert not (tmp_path / "ahead.csv").exists()


def test_ctrl_c_before_anything_is_trained_says_so(tmp_path: Path) -> None:
    with Command(tmp_path, "fit", "-o", str(tmp_path / "m.varnn"), *LONG) as command:
        command.interrupt("waves.csv:")  # the summary, which comes before training
        said, code = command.ended()
    assert code == 130, said
    assert "Traceback" not in said
    assert said.endswith("stopped before anything was trained; nothing is written.")
    assert not (tmp_path / "m.varnn").exists()


def test_ctrl_c_in_a_comparison_says_what_was_done_and_leaves_soon(tmp_path: Path) -> None:
    with Command(tmp_path, "compare", "--models", "persistence,arx-lr,varnn", "--seeds", "40") as command:
        command.interrupt("2 of 42, fitting varnn")
        began = time.monotonic()
        said, code = command.ended()
    assert code == 130, said
    assert time.monotonic() - began < 10  # 2 s, on a machine that does nothing else
    assert said.endswith("stopped: 2 of 42 fits were done; nothing is written.")
    assert "Traceback" not in said
