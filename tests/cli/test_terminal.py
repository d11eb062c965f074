"""What a terminal shows: bars that tell the truth, warnings above them, and as much as was asked for."""

import inspect
import io
import json
import logging
import os
import re
import subprocess
import sys
import warnings
from contextlib import redirect_stderr
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from varnn.cli import _table, terminal
from varnn.cli._remaining import FitsLeft, Remaining
from varnn.cli.app import app
from varnn.cli.flags import with_flags
from varnn.cli.voice import heard, speak
from varnn.data.tables import Reading
from varnn.datasets import synthetic
from varnn.fitting._procedure import Stage
from varnn.fitting._time_left import StageKey, TimeLeft

SMALL = ("--epochs", "2", "--hidden-size", "4", "--ensemble", "2")
_BAR = """
import logging, time, warnings
from varnn.cli.progress import training_bar
from varnn.cli.voice import heard, speak
with heard():
    speak(quiet=False, verbose=0)
    with training_bar("training") as on_epoch:
        line = {"stage": 2, "member": 1, "members": 3, "horizon": 1, "loss": 1.0, "seconds": 0.1}
        for epoch in range(1, 6):
            on_epoch({**line, "epoch": epoch, "seconds_left": 10.0 - epoch})
            logging.getLogger("varnn.fitting").warning("labels are\\nfew")
            warnings.warn("from elsewhere", UserWarning, stacklevel=1)
            time.sleep(0.12)
"""


def command(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-c", "from varnn.cli.app import main; main()", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def watched(code: str) -> str:
    """Run a program whose standard error is a terminal of 80 columns; give what it showed."""
    pty = pytest.importorskip("pty")  # not on Windows
    ours, theirs = pty.openpty()
    settings = {**os.environ, "COLUMNS": "80", "TERM": "xterm", "NO_COLOR": "1"}
    with subprocess.Popen([sys.executable, "-c", code], stderr=theirs, env=settings) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                block = os.read(ours, 1 << 16)
            except OSError:  # the other end is closed
                break
            if not block:
                break
            shown += block
        assert process.wait() == 0, shown.decode()
    os.close(ours)
    return shown.decode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("terminal")
    panel = synthetic.panel("drift", rows=240)
    pairs = zip(panel.inputs[:, 0], panel.target, strict=True)
    rows = ["heat,load", *(f"{x:.4f},{y:.4f}" for x, y in pairs)]
    (folder / "house.csv").write_text("\n".join(rows))
    return folder


def test_a_bar_names_its_stage_and_warnings_stand_above_it_once() -> None:
    shown = watched(_BAR)
    lines = [re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", line).strip() for line in re.split(r"[\r\n]+", shown)]
    assert lines.count("note: labels are few") == 1
    assert lines.count("note: from elsewhere (UserWarning)") == 1
    bars = [line for line in lines if "━" in line]
    assert any("member 2 of 4" in line and re.search(r"\d s left", line) for line in bars)
    assert not any("note:" in line for line in bars)  # never in one line with the bar
    assert "took" in bars[-1] and "left" not in bars[-1]


@pytest.mark.parametrize("width", [60, 80])
def test_what_is_long_in_the_summary_goes_on_below_itself(width: int, folder: Path) -> None:
    rows = [f"2024-01-01 {hour:02d}:00,{hour % 5},{hour % 7}" for hour in range(24)]
    (folder / "times.csv").write_text("\n".join(["time,a_rather_long_name_of_an_input,load", *rows]))
    out = io.StringIO()
    shown = Console(file=out, width=width, force_terminal=True, color_system=None, highlight=False)
    _table.read(folder / "times.csv", Reading(target="load")).show(shown)
    lines = out.getvalue().splitlines()
    assert all(len(line) < width for line in lines)
    at = next(place for place, line in enumerate(lines) if line.startswith("  time     "))
    assert lines[at + 1].startswith(11 * " ") and lines[at + 1][11] != " "
    assert "  (a guess; --time to change it)" not in lines  # it begins where the value does
    assert " ".join(" ".join(lines).split()).count("(a guess; --time to change it)") == 1


def test_a_pipe_gets_no_bar_and_no_colour(folder: Path) -> None:
    done = command("fit", folder / "house.csv", "--target", "load", "-o", folder / "m.varnn", *SMALL)
    assert done.returncode == 0, done.stderr
    assert "━" not in done.stderr and "\x1b" not in done.stderr and "\r" not in done.stderr
    assert re.search(r"RMSE on rows held out: \S+, of persistence \S+\. Saved", done.stderr)
    assert done.stdout == ""


@pytest.mark.parametrize("before", [True, False], ids=["varnn -q fit", "varnn fit -q"])
def test_quiet_says_nothing_but_errors(folder: Path, before: bool) -> None:
    words: list[Any] = ["fit", folder / "house.csv", "--target", "load", "-o", folder / "q.varnn", *SMALL]
    done = command(*(["-q", *words] if before else [*words, "-q"]))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (folder / "q.varnn").exists()
    refused = command("fit", folder / "nothing.csv", "--target", "load", "-o", folder / "q.varnn", "--quiet")
    assert refused.returncode == 2 and refused.stderr.startswith("error: there is no file")


def test_verbose_says_what_was_read_chosen_and_written(folder: Path) -> None:
    place = folder / "v.varnn"
    done = command("fit", folder / "house.csv", "--target", "load", "-o", place, *SMALL, "-v")
    assert done.returncode == 0, done.stderr
    for words in (
        "learning from 192 rows, choosing on 48",
        "seasons that the linear part looks back on:",
        "weights of the experts at first, by their errors on validation rows: persistence",
        "root mean squared errors on validation rows: model",
        "the model of the next row was chosen and trained, in ",
        "it was trained again on all 240 rows, in ",
        f"wrote {place}, ",
    ):
        assert words in done.stderr
    read = command("-v", "inspect", place)
    assert f"read the model in {place}: 'load' from 1 input" in read.stderr


def test_inspect_is_short_and_rounded_and_says_settings_once(folder: Path) -> None:
    place = folder / "i.varnn"
    command("fit", folder / "house.csv", "--target", "load", "-o", place, *SMALL, "-q")
    short, long = (command("inspect", place, *more).stdout for more in ([], ["--verbose"]))
    assert len(short.splitlines()) <= 45 < len(long.splitlines())
    assert "Settings that are not the default" in short and short.count("hidden_size") == 1
    assert "learning_rate" not in short and long.count("learning_rate") == 1
    assert not re.search(r"\d\.\d{6,}", short)
    details = json.loads(command("inspect", place, "--json").stdout)
    assert details["settings"]["hidden_size"] == 4 and details["card"]


def test_every_command_has_both_flags() -> None:
    listed: list[Any] = [*app.registered_commands]
    for group in app.registered_groups:
        assert group.typer_instance is not None
        listed += group.typer_instance.registered_commands
    assert len(listed) >= 17
    for one in listed:
        parameters = inspect.signature(one.callback).parameters
        assert {"quiet", "verbose"} <= set(parameters), one.name


def test_help_shows_flags_as_flags() -> None:
    shown = CliRunner().invoke(app, ["fit", "--help"], env={"COLUMNS": "80"}).output
    assert re.search(r"^  -q, --quiet  ", shown, re.MULTILINE)
    assert re.search(r"^  --sort  ", shown, re.MULTILINE) and "<bool>" not in shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("Fit with intervals=True.", "Fit with --intervals."),
        ("window must be a whole number; got 'a'.", "--window must be a whole number; got 'a'."),
        ("Lower `window` or drop these.", "Lower --window or drop these."),
        ("details=Details(window=5) is not window.", "details=Details(window=5) is not window."),
        ("column 'window' is not there.", "column 'window' is not there."),
        ("known_inputs=[...] names them.", "--known names them."),
    ],
)
def test_settings_in_errors_are_flags(message: str, said: str) -> None:
    flags = {"window": "--window", "intervals": "--intervals", "known_inputs": "--known"}
    assert with_flags(message, flags).replace("--known [...]", "--known") == said


def test_a_wrong_flag_is_refused_by_its_name(folder: Path) -> None:
    refused = command(
        "fit", folder / "house.csv", "--target", "load", "-o", folder / "x.varnn", "--learning-rate", "-1"
    )
    assert refused.returncode == 2
    assert "error: --learning-rate must be a number, above 0; got -1.0." in refused.stderr


def test_words_of_other_libraries_are_one_line() -> None:
    said = io.StringIO()
    with redirect_stderr(said), heard(), warnings.catch_warnings():
        warnings.simplefilter("always")
        speak(quiet=False, verbose=0)
        for _ in range(2):
            warnings.warn("two\nlines", RuntimeWarning, stacklevel=1)
        logging.getLogger("elsewhere").info("not ours, and no warning")
    assert said.getvalue() == "note: two lines (RuntimeWarning)\n"
    assert not terminal.voice.quiet and terminal.voice.bar is None


def test_the_time_left_does_not_jump() -> None:
    now = [0.0]
    left = Remaining(lambda: now[0])
    left.update(100.0)
    shown = []
    for guess in (20.0, 300.0, 20.0, 300.0):
        left.update(guess)
        shown.append(left.now())
    assert all(30 < one < 180 for one in shown if one is not None)
    now[0] = 1000.0
    assert left.now() == 0.0 and left.share() == 1.0


def test_nothing_is_said_of_fits_that_nobody_knows() -> None:
    now = [0.0]
    left = FitsLeft(["quick", "slow", "slow", "slow"], lambda: now[0])
    left.done("quick", 0.1)
    assert str(left) == ""
    left.done("slow", 60.0)
    assert str(left) == "2 min left"


def epoch(number: int, member: int = 0, stage: Stage = Stage.CHOOSING, **changes: float) -> dict[str, float]:
    loss = 1.0 / number if number <= 4 else 1.0  # the fourth epoch is the best
    line = {"epoch": number, "member": member, "stage": stage, "horizon": 1, "loss": loss, "seconds": 1.0}
    return {**line, "members": 1, "epochs": 100, **changes}


def test_the_time_left_of_a_fit_counts_members_and_refit_to_come() -> None:
    """One member stops by itself after 4 + 5 epochs; of 4, 3 are to come, then 4 again of 4 epochs each."""
    stages = [StageKey(1, stage) for stage in Stage]
    left = TimeLeft(stages, ensemble=4, patience=5, clock=lambda: 0.0)
    told = [left.add(epoch(number)) for number in range(1, 10)]
    assert told[-1] == pytest.approx(3 * 9 + 4 * 4 + 2 * 4)  # and twice what is between, 4 epochs long
    assert all(abs(later - earlier) < 20 for earlier, later in pairwise(told[1:]))
    for member in (1, 2, 3):
        for number in range(1, 10):
            told.append(left.add(epoch(number, member, Stage.MEMBERS, members=3)))
    assert told[-1] == pytest.approx(4 * 4 + 2 * 4)


def test_the_first_epoch_loads_code_and_is_forgotten() -> None:
    left = TimeLeft([StageKey(1, Stage.CHOOSING)], ensemble=1, patience=None, clock=lambda: 0.0)
    assert left.add(epoch(1, seconds=60.0)) > 5000
    assert left.add(epoch(2)) == pytest.approx(98 + 4)
