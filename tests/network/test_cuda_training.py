"""Training by a kernel on a GPU, without one: a stand-in on the CPU takes the same jobs."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from threading import Event
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.gpu.stand_in import run_as_kernel, train_as_kernel
from tests.cases import CASES, random_panel, with_a_field
from varnn import Details, VARNNRegressor
from varnn.data.preparation import Scaling
from varnn.errors import ConfigError, TrainingError
from varnn.network.cell import VARIANTS, Architecture
from varnn.network.engines.cuda import limits
from varnn.network.engines.cuda import training as cuda
from varnn.network.engines.cuda._nvrtc import UnavailableError
from varnn.network.engines.cuda.job import JobResult, TrainingJob
from varnn.network.engines.engine import Task
from varnn.network.engines.registry import make_engine
from varnn.network.training import Ahead, Epoch, Member, TrainConfig, Trained, train_members, train_together

CELL = Architecture.of("ARM+AM", n_inputs=3, hidden_size=8, memory_size=5)
CONFIG = TrainConfig(window=6, loss_rows=2, epochs=8, batch_size=16, learning_rate=0.02, patience=2)


def members(
    cell: Architecture = CELL, *, count: int = 3, validated: bool = True, rows: int = 300
) -> list[Member]:
    panel = random_panel([rows, 80], missing=0.1, seed=1)
    scaled = Scaling.fit(panel, "minmax").apply(panel)
    unseen = Scaling.fit(panel, "minmax").apply(random_panel([120], missing=0.1, seed=2))
    return [Member(cell, scaled, unseen if validated else None, seed) for seed in range(5, 5 + count)]


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A machine whose GPU handles everything, but for the GPU: the numbers of jobs of each call."""
    calls: list[int] = []

    def run(jobs: Sequence[TrainingJob], *rest: Any) -> list[JobResult]:
        calls.append(len(jobs))
        return run_as_kernel(jobs, *rest)

    monkeypatch.setattr(cuda, "run_jobs", run)
    monkeypatch.setattr(limits, "gpu_of", lambda config: 0)
    monkeypatch.setattr(limits, "kernel_for", lambda *shape: None)
    room = type("Properties", (), {"total_memory": 10**9})
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: room)
    return calls


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"loss_rows": 1, "schedule": "cosine", "patience": None},
        {"gradient_clip": 0.1, "weight_ema": 0.9},
        {"gradient_clip": 0.05, "weight_ema": 0.99, "schedule": "cosine", "batch_size": 7},
    ],
)
@pytest.mark.parametrize("validated", [True, False])
def test_train_members_gives_what_the_cpu_gives(
    settings: dict[str, Any], validated: bool, stand_in: list[int]
) -> None:
    config = replace(CONFIG, **settings)
    every = members(validated=validated)
    every[2] = replace(every[2], stop_after=3)
    told: dict[int, list[Epoch]] = {0: [], 1: [], 2: []}
    found = train_members(every, config, lambda index, line: told[index].append(line))
    assert stand_in == [3]
    expected = train_members(every, replace(config, device="cpu"))
    assert stand_in == [3]
    for index, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert_alike(one, other)
        assert [list(line) for line in one.history] == [list(line) for line in other.history]
        assert told[index] == one.history


def assert_alike(one: Trained, other: Trained) -> None:
    assert one.best_epoch == other.best_epoch
    assert len(one.history) == len(other.history)
    for name in ("loss", "validation_loss", "learning_rate"):
        found, expected = ([line.get(name, 0.0) for line in each.history] for each in (one, other))
        np.testing.assert_allclose(found, expected, rtol=1e-3)
    for name, matrix in one.weights.as_dict().items():
        np.testing.assert_allclose(matrix, other.weights.as_dict()[name], rtol=1e-2, atol=2e-3)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_every_variant(variant: Any, activation: Any, stand_in: list[int]) -> None:
    cell = Architecture.of(variant, n_inputs=3, hidden_size=7, memory_size=5, memory_activation=activation)
    [found] = train_members(members(cell, count=1), replace(CONFIG, engine="cuda"))
    [expected] = train_members(members(cell, count=1), replace(CONFIG, device="cpu", engine="reference"))
    assert stand_in == [1]
    assert_alike(found, expected)


def test_a_default_model_is_fitted_by_it(stand_in: list[int]) -> None:
    X = np.random.default_rng(0).normal(size=(400, 2))
    y = X[:, 0] + np.sin(np.arange(400) / 9)
    found = VARNNRegressor(epochs=3, ensemble=2).fit(X, y)
    assert len(stand_in) >= 3  # the first member, the other one, both again on all rows
    before = len(stand_in)
    expected = VARNNRegressor(epochs=3, ensemble=2, device="cpu").fit(X, y)
    assert len(stand_in) == before
    np.testing.assert_allclose(found.predict(X, y=y), expected.predict(X, y=y), atol=0.02)


def test_an_end_that_is_asked_for(stand_in: list[int]) -> None:
    stop, epochs = Event(), []

    def on_epoch(index: int, line: Epoch) -> None:
        epochs.append((index, line["epoch"]))
        if len(epochs) == 2:
            stop.set()

    found = train_members(members(), replace(CONFIG, patience=None), on_epoch, stop)
    assert [len(one.history) for one in found] == [2, 0, 0]
    assert found[0].best_epoch > 0
    with pytest.raises(KeyboardInterrupt):  # nothing was trained
        train_members(members(), CONFIG, None, stop)


def test_a_member_that_fails_raises(stand_in: list[int]) -> None:
    with pytest.raises(TrainingError, match=r"in epoch \d it became nan.*Lower learning_rate"):
        train_members(members(), replace(CONFIG, learning_rate=1e25))


def test_jobs_may_be_sent_elsewhere() -> None:
    """As one that trains those of many models does: nothing of this machine's GPU is asked."""
    sent: list[int] = []

    def elsewhere(jobs: Sequence[TrainingJob], *rest: Any) -> list[JobResult]:
        sent.append(len(jobs))
        return run_as_kernel(jobs, *rest)

    found = cuda.train_by_jobs(members(), CONFIG, None, None, run=elsewhere)
    assert sent == [3]
    for one, other in zip(found, train_members(members(), replace(CONFIG, device="cpu")), strict=True):
        assert_alike(one, other)


# Who is trained by it, and who is told why not.


def reasons(**changes: Any) -> list[str]:
    one = members(count=1)[0]
    config = changes.pop("config", CONFIG)
    return limits.reasons([replace(one, **changes)], config)


def test_what_it_does_not_handle_is_said(stand_in: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    assert reasons() == []
    one = members(count=1)[0]
    assert limits.handles(one, CONFIG)
    for case in CASES:
        said = reasons(architecture=case.architecture())
        assert (said == []) == (case.residual == "projected"), case
    assert reasons(architecture=replace(CELL, horizon=4)) == ["horizon=4 (only 1)"]
    assert reasons(architecture=with_a_field(CELL, "leak", 0.0)) == ["leak=0.0 (which it does not know of)"]
    ahead = Ahead(np.zeros((380, 3), np.float32), None)
    assert reasons(ahead=ahead) == ["targets ahead (only the next row)"]
    wide = Architecture.of("RM", n_inputs=375)
    assert reasons(architecture=wide) == ["97,007 weights (only up to 32,768)"]
    short = random_panel([5])
    assert reasons(validation=short) == ["validation rows too few for a window of 6"]
    assert reasons(validation=short, config=replace(CONFIG, loss_rows=1)) == [
        "validation rows too few for a window of 6"
    ]
    endless = replace(CONFIG, epochs=10**8)
    assert "windows in all epochs (only up to 2,147,483,647)" in reasons(config=endless)[0]
    with monkeypatch.context() as patch:
        most = 2 * len(one.training)
        patch.setattr(limits, "_MOST_NUMBERS", most)
        assert one.training.n_inputs > 2
        assert reasons()[-1].endswith(f"numbers in rows (only up to {most:,})")
    monkeypatch.setattr(limits, "MOST_OF_MEMORY", 1e-6)
    assert reasons()[0].endswith("bytes of rows and windows (the GPU has room for 1,000)")


def test_a_shape_that_does_not_fit_is_said(stand_in: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    def unavailable(*shape: object) -> None:
        raise UnavailableError("a block needs 300,000 bytes of shared memory, and there are 100,000")

    monkeypatch.setattr(limits, "kernel_for", unavailable)
    assert reasons() == ["this shape (a block needs 300,000 bytes of shared memory, and there are 100,000)"]
    train_members(members(count=1), replace(CONFIG, epochs=1))  # on the CPU
    assert stand_in == []


needs_no_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")


@needs_no_gpu
def test_without_a_gpu_auto_is_the_cpu_and_a_name_is_an_error() -> None:
    one = members(count=1)
    expected = train_members(one, replace(CONFIG, device="cpu"))[0]
    found = train_members(one, CONFIG)[0]
    np.testing.assert_array_equal(found.weights.fusion, expected.weights.fusion)
    with pytest.raises(ConfigError, match=r"engine='cuda' does not handle this machine \(no GPU is usable"):
        train_members(one, replace(CONFIG, engine="cuda"))
    for engine in ("auto", "cuda"):
        with pytest.raises(ConfigError, match="device='cuda' asks for a GPU, and none is usable here"):
            train_members(one, replace(CONFIG, device="cuda", engine=engine))
    with pytest.raises(ConfigError, match=r"device='cpu' \(only 'auto' or 'cuda'\)"):
        train_members(one, replace(CONFIG, device="cpu", engine="cuda"))
    with pytest.raises(ConfigError, match=r"Use Details\(engine='auto'\)"):
        VARNNRegressor(epochs=1, details=Details(engine="cuda")).fit(np.zeros((90, 1)), np.arange(90.0))
    with pytest.raises(ConfigError, match="does not handle this machine"):
        cuda.run_jobs([TrainingJob.of(one[0], CONFIG)])


def test_an_engine_asked_for_by_name_is_not_passed_over(stand_in: list[int]) -> None:
    """device="auto" and a name of an engine: that engine, on the CPU."""
    train_members(members(count=1), replace(CONFIG, engine="fused", epochs=1))
    assert stand_in == []


def test_it_is_no_engine_for_single_batches() -> None:
    task = Task(CELL, torch.zeros(9, 3), torch.zeros(9), window=3)
    with pytest.raises(ConfigError, match=r"trains whole members on a GPU.*engine='auto'"):
        make_engine("cuda", task)
    one = members(count=1)[0]
    with pytest.raises(ConfigError, match="trains whole members"):
        train_together(CELL, one.training, None, replace(CONFIG, device="cpu", engine="cuda"), [1])


def test_a_process_that_cannot_use_the_gpu_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one forked from a process that used it: torch says so when it is asked."""

    def refuses() -> int:
        raise RuntimeError("Cannot re-initialize CUDA in forked subprocess.\nUse spawn.")

    monkeypatch.setattr(limits, "_is_there", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", refuses)
    assert reasons() == ["this process (Cannot re-initialize CUDA in forked subprocess)"]


def test_an_old_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_is_there", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    assert reasons() == ["a GPU of compute capability 7.5 (only 8.0 or above)"]


# Launches: which jobs share one, and how they are watched.


class Watched:
    """In place of a launch: an epoch passes with each look; it ends when it is told to, or by itself."""

    made: list["Watched"]

    def __init__(
        self, kernel: str, jobs: Sequence[TrainingJob], on_epoch: Callable[[int, Epoch], None] | None
    ) -> None:
        self.kernel, self.jobs, self.on_epoch = kernel, jobs, on_epoch
        self.looks, self.stopped, self.waited = 0, False, False
        self.made.append(self)

    def poll(self) -> bool:
        self.looks += 1
        for index in range(len(self.jobs)):
            if self.on_epoch is not None:
                self.on_epoch(index, {"epoch": self.looks})
        return self.stopped or self.looks >= self.jobs[0].last

    def stop(self) -> None:
        self.stopped = True

    def wait(self) -> None:
        self.waited = True

    def results(self) -> list[JobResult]:
        return [train_as_kernel(job) for job in self.jobs]


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[Watched]:
    Watched.made = []
    monkeypatch.setattr(cuda, "Launch", Watched)
    monkeypatch.setattr(cuda, "gpu_of", lambda config: 0)
    monkeypatch.setattr(cuda, "_free", lambda device: 10**9)
    monkeypatch.setattr(cuda, "kernel_for", lambda shape, batch, device: (shape, -(-batch // 8)))
    return Watched.made


def jobs_of(*sizes: int, epochs: int = 2, batch: int = 16) -> list[TrainingJob]:
    config = replace(CONFIG, epochs=epochs, batch_size=batch)
    cells = [Architecture.of("RM", n_inputs=3, hidden_size=size) for size in sizes]
    return [TrainingJob.of(members(cell, count=1)[0], config) for cell in cells]


def test_jobs_of_one_shape_share_a_launch(launches: list[Watched]) -> None:
    jobs = [*jobs_of(4, 5, 4, 5, 6), *jobs_of(4, batch=9), *jobs_of(4, batch=40)]
    told: list[tuple[int, float]] = []
    found = cuda.run_jobs(jobs, lambda index, line: told.append((index, line["epoch"])))
    assert [len(one.jobs) for one in launches] == [3, 2, 1, 1]  # batches of 9 and 16 take the same kernel
    assert sorted(told) == [(index, epoch) for index in range(7) for epoch in (1, 2)]
    for job, result in zip(jobs, found, strict=True):
        np.testing.assert_array_equal(result.weights, train_as_kernel(job).weights)
    assert all(one.waited for one in launches)


def test_jobs_that_do_not_fit_into_memory_wait_for_their_turn(
    launches: list[Watched], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda, "_free", lambda device: 50_000)
    shared = jobs_of(4)[0]
    jobs = [shared, replace(shared, weights=shared.weights + 1), *jobs_of(4, 4, 4)]
    found = cuda.run_jobs(jobs)
    counts = [len(one.jobs) for one in launches]
    assert sum(counts) == len(found) == 5
    assert 1 < len(counts) < 5
    assert counts[0] > counts[-1]  # arrays of several jobs count once


def test_all_end_when_they_are_asked_to(launches: list[Watched]) -> None:
    stop = Event()

    def on_epoch(index: int, line: Epoch) -> None:
        if line["epoch"] == 3:
            stop.set()

    cuda.run_jobs(jobs_of(4, 5, epochs=100), on_epoch, stop)
    assert [one.looks for one in launches] == [4, 4]


def test_ctrl_c_sets_stop_or_is_raised(launches: list[Watched]) -> None:
    def on_epoch(index: int, line: Epoch) -> None:
        if line["epoch"] == 3:
            raise KeyboardInterrupt

    stop = Event()
    assert len(cuda.run_jobs(jobs_of(4, 5, epochs=100), on_epoch, stop)) == 2
    assert stop.is_set()
    with pytest.raises(KeyboardInterrupt):
        cuda.run_jobs(jobs_of(4, 5, epochs=100), on_epoch)
    assert all(one.stopped and one.waited for one in launches)  # none is left alone with its memory


def test_what_on_epoch_raises_ends_the_launches(
    launches: list[Watched], caplog: pytest.LogCaptureFixture
) -> None:
    def on_epoch(index: int, line: Epoch) -> None:
        raise OSError("no room for a line")

    with caplog.at_level(logging.WARNING), pytest.raises(OSError, match="no room"):
        cuda.run_jobs(jobs_of(4, 5, epochs=100), on_epoch, Event())
    assert all(one.stopped and one.waited for one in launches)


def test_trainers_take_the_same_arguments() -> None:
    """`fitting.fit(..., trainer=)` takes either."""
    trainer = partial(cuda.train_by_jobs, run=run_as_kernel)
    assert len(trainer(members(count=1), replace(CONFIG, epochs=1), None, Event())) == 1
