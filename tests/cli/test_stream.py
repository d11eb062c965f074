"""``varnn stream`` in rough use: killed, told to end, flooded with nonsense; real processes throughout."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.robustness.kills import COMMAND, Killed, killed, lines_for, lines_needed
from benchmarks.robustness.malformed import malformed
from varnn import Details, VARNNRegressor
from varnn.cli._lines import Lines, Signals
from varnn.streaming.store import Store

SMALL: Any = {"epochs": 1, "hidden_size": 6, "ensemble": 2, "window": 4, "device": "cpu"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stream")


@pytest.fixture(scope="module")
def model(folder: Path) -> VARNNRegressor:
    X = np.random.default_rng(0).normal(size=(300, 2))
    made = VARNNRegressor(details=Details(forgetting=0.99), **SMALL).fit(
        X, X[:, 0] + np.sin(np.arange(300) / 9)
    )
    made.save(folder / "m.varnn")
    return made


def strict(text: str | bytes) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


def begun(folder: Path, *options: str, **settings: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, str(folder / "m.varnn"), *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        **settings,
    )


def asked(process: subprocess.Popen[bytes], *lines: bytes) -> list[Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"".join(lines))
    return [strict(process.stdout.readline()) for _ in lines]


@pytest.mark.parametrize("batch", [1, 50, 10_000])
def test_kills_lose_nothing_double_nothing_and_change_nothing(
    model: VARNNRegressor, folder: Path, tmp_path: Path, batch: int
) -> None:
    lines = lines_for(2, lines_needed(3, batch))
    found = killed(folder / "m.varnn", model, tmp_path, lines, kills=3, batch=batch, seed=batch)
    assert found == Killed(
        kills=3, lines=found.lines, answers=found.answers, seconds_to_go_on=found.seconds_to_go_on
    )
    assert found.lines > batch / 100


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_a_stream_that_waits_wakes_up_when_it_is_told_to_end(
    model: VARNNRegressor, folder: Path, tmp_path: Path, name: str, code: int
) -> None:
    process = begun(folder, "--state", str(tmp_path / "s"))
    line = b'{"x": [1, 2], "y": 1}\n'
    assert asked(process, line)[0]["seq"] == 1
    process.send_signal(getattr(signal, name))
    out, error = process.communicate(timeout=30)
    assert process.returncode == code
    assert out == b""
    assert b"Traceback" not in error
    with Store(model, tmp_path / "s") as store:
        assert store.answer(json.loads(line))["seq"] == 2


def test_a_stream_whose_answers_nobody_reads_can_be_ended(model: VARNNRegressor, folder: Path) -> None:
    process = begun(folder)
    assert process.stdin is not None
    asked(process, b'{"x": [1, 2], "y": 1}\n')
    os.set_blocking(process.stdin.fileno(), False)
    line, sent, last = b'{"x": [1, 2], "y": 1}\n' * 100, 0, time.monotonic()
    while time.monotonic() - last < 1:  # until both pipes are full
        try:
            sent += os.write(process.stdin.fileno(), line)
            last = time.monotonic()
        except BlockingIOError:
            time.sleep(0.02)
    assert sent > 65536
    process.terminate()
    assert process.wait(timeout=30) == 143
    process.communicate()


def test_a_reader_that_leaves_is_no_bug(model: VARNNRegressor, folder: Path, tmp_path: Path) -> None:
    process = begun(folder, "--state", str(tmp_path / "s"))
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    asked(process, b'{"x": [1, 2], "y": 1}\n')
    process.stdout.close()
    process.stdin.write(b'{"x": [1, 2], "y": 1}\n')
    assert process.wait(timeout=30) == 0
    assert process.stderr.read() == b""
    for pipe in (process.stdin, process.stderr):
        pipe.close()
    with Store(model, tmp_path / "s") as store:  # it was kept before it was to be sent
        assert store.answer({"x": [1, 2], "y": 1})["seq"] == 3


def test_a_second_process_is_refused_by_name(model: VARNNRegressor, folder: Path, tmp_path: Path) -> None:
    first = begun(folder, "--state", str(tmp_path / "s"))
    asked(first, b'{"x": [1, 2]}\n')
    second = begun(folder, "--state", str(tmp_path / "s"))
    out, error = second.communicate(b'{"x": [1, 2]}\n', timeout=30)
    assert second.returncode == 2
    assert f"in use by process {first.pid} on ".encode() in error
    assert out == b""
    first.kill()
    first.communicate()
    third = begun(folder, "--state", str(tmp_path / "s"))  # what a dead process left does not matter
    assert b'"seq":2' in third.communicate(b'{"x": [1, 2]}\n', timeout=30)[0]


def test_a_full_disk_ends_the_stream_with_the_last_good_state(
    model: VARNNRegressor, folder: Path, tmp_path: Path
) -> None:
    resource = pytest.importorskip("resource", reason="only Unix limits the sizes of files")

    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))

    lines = lines_for(2, 20_000)
    state = tmp_path / "s"
    process = begun(folder, "--state", str(state), preexec_fn=little_room)
    out, error = process.communicate(b"".join(lines), timeout=60)
    assert process.returncode == 2
    assert error.startswith(b"error: ")
    assert error.count(b"\n") == 1
    assert b"cannot be written" in error
    answers = [strict(one) for one in out.splitlines()]
    assert 0 < len(answers) < len(lines)
    with Store(model, state) as store, Store(model) as whole:
        for index, line in enumerate(lines[: len(answers) + 50]):
            message = json.loads(line)
            number = message["seq"]
            if index >= len(answers):
                answers.append(store.answer(message))
            del message["seq"]
            assert answers[index] == whole.answer(message) | {"seq": number}


def test_a_line_without_end_is_passed_over_without_being_held(model: VARNNRegressor, folder: Path) -> None:
    process = begun(folder, "--longest-line", "1000")
    assert process.stdin is not None
    assert process.stdout is not None
    line = b'{"x": [1, 2], "y": 1}\n'
    (first,) = asked(process, line)
    held = _memory(process.pid)
    for _ in range(300):
        process.stdin.write(b"[" * 100_000)
    process.stdin.write(b"\n")
    assert "line 2 is longer than" in strict(process.stdout.readline())["error"]
    assert _memory(process.pid) - held < 10_000_000
    long = b'{"x": [1, 2], "note": "' + b"n" * 974 + b'"}\n'
    answers = asked(process, line, long, long.replace(b"nnn", b"nnnn", 3))
    assert "prediction" in answers[0]
    assert "prediction" in answers[1]
    assert "longer than" in answers[2]["error"]
    process.stdin.write(b"x" * 2000)  # and no end of line
    out, _ = process.communicate(timeout=30)
    assert "longer than" in strict(out)["error"]
    assert first["innovation"] is not None


def _memory(process: int) -> int:
    (line,) = (one for one in Path(f"/proc/{process}/status").read_text().splitlines() if "VmRSS" in one)
    return int(line.split()[1]) * 1024


def test_counts_are_told_on_a_signal_and_every_so_often(model: VARNNRegressor, folder: Path) -> None:
    process = begun(folder, "--stats", "0.2")
    assert process.stderr is not None
    asked(process, b'{"series": "a", "x": [1, 2]}\n', b"nonsense\n")
    said = process.stderr.readline() or b""
    while b"2 lines" not in said:
        said = process.stderr.readline()
    assert said.startswith(b"2 lines, 1 errors, 1 series, ")
    assert b"ms (median)" in said
    process.communicate()
    asking = begun(folder)
    assert asking.stderr is not None
    asked(asking, b'{"series": "a", "x": [1, 2]}\n')
    asking.send_signal(signal.SIGUSR1)
    assert asking.stderr.readline().startswith(b"1 lines, 0 errors, 1 series, ")
    asked(asking, b'{"series": "a", "x": [1, 2]}\n')
    asking.communicate()
    assert asking.returncode == 0


def test_events_of_the_monitor_are_in_the_answers(model: VARNNRegressor, folder: Path) -> None:
    random = np.random.default_rng(0)
    rows: list[Any] = [{"x": random.normal(size=2).tolist(), "y": float(random.normal())} for _ in range(300)]
    rows += [{"x": one["x"], "y": 30 * one["y"]} for one in rows[:30]]
    process = begun(folder, "--watch")
    out, error = process.communicate("\n".join(map(json.dumps, rows)).encode(), timeout=60)
    assert error == b""
    events = [event for line in out.splitlines() for event in strict(line).get("events", [])]
    assert any(event["kind"] == "variance change" and event["row"] >= 300 for event in events)


@pytest.mark.parametrize("durable", [True, False])
def test_nonsense_is_answered_and_changes_nothing(
    model: VARNNRegressor, folder: Path, tmp_path: Path, durable: bool
) -> None:
    good = [{"series": "good", "x": [index / 9, 1.0], "y": index / 5} for index in range(30)]
    lines: list[bytes] = []
    for index, line in enumerate(malformed(1500, 2)):
        lines.append(line)
        if index % 50 == 0:
            lines.append(json.dumps(good[index // 50]).encode())
    options = ["--state", str(tmp_path / "s")] if durable else []
    process = begun(folder, *options)
    out, error = process.communicate(b"\n".join(lines), timeout=120)
    assert process.returncode == 0, error
    assert error == b""
    answers = out.splitlines()
    assert len(answers) == len(lines)
    found = [one for one in map(strict, answers) if isinstance(one, dict) and one.get("series") == "good"]
    with Store(model) as clean:
        for one, row in zip(found, good, strict=True):
            one.pop("seq", None)
            assert one == clean.answer(row)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a reader widen a pipe")
def test_lines_that_are_there_are_taken_together_beyond_what_a_pipe_holds() -> None:
    reading, writing = os.pipe()
    line = b"x" * 699 + b"\n"
    with (
        os.fdopen(reading, "rb") as source,
        os.fdopen(writing, "wb", buffering=0) as sender,
        Signals() as signals,
    ):
        groups = Lines(source, signals, longest=1000, most=500).groups()
        os.set_blocking(writing, False)
        assert sender.write(line * 600) == 700 * 600  # of which 64 kB were room for 93
        assert [len(next(groups)), len(next(groups))] == [500, 100]
        sender.write(line)
        assert next(groups) == [line[:-1]]  # one alone is not waited with
        sender.write(line * 600)
        sender.close()
        assert sum(map(len, groups)) == 600


def test_answers_are_the_same_without_orjson(model: VARNNRegressor, folder: Path, tmp_path: Path) -> None:
    lines = b"".join(lines_for(2, 600)) + b"nonsense\n"
    answers = []
    for missing in ("", "import sys; sys.modules['orjson'] = None; "):
        command = [sys.executable, "-c", missing + COMMAND[2], *COMMAND[3:], str(folder / "m.varnn")]
        command += ["--state", str(tmp_path / f"state{len(missing)}")]
        done = subprocess.run(command, input=lines, capture_output=True, check=True)
        assert b" " not in done.stdout.splitlines()[0]
        answers.append([strict(one) for one in done.stdout.splitlines()])
    assert answers[0] == answers[1]
    assert len(answers[0]) == 601


def test_a_start_waits_for_no_imports_it_does_not_need(folder: Path, model: VARNNRegressor) -> None:
    code = (
        "import sys; from varnn.cli.app import main\n"
        "try: main()\n"
        "except SystemExit: print({'torch', 'sklearn', 'pandas'} & {*sys.modules}, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "stream", str(folder / "m.varnn")],
        input=b'{"x": [1, 2]}\n',
        capture_output=True,
    )
    assert done.stderr.strip() == b"set()"
