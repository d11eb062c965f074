"""The benches of the GPU, as far as they go without one: checks that can fail, and a peer that is right."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.gpu import check, checks, kinks, made, page, speed
from benchmarks.gpu.batched import BatchedGraph
from benchmarks.gpu.checks import Checked
from benchmarks.gpu.stand_in import StandIn, run_as_kernel, train_as_kernel
from benchmarks.record import read
from varnn.errors import DataError
from varnn.network.cell import VARIANTS, Architecture
from varnn.network.engines.cuda import training as cuda
from varnn.network.engines.cuda.job import JobResult, TrainingJob
from varnn.network.engines.engine import pack, unpack
from varnn.network.training import Member, TrainConfig

CELL = Architecture.of("ARM+AM", n_inputs=3, hidden_size=7, memory_size=5)
needs_no_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")


def states(jobs: Sequence[TrainingJob]) -> tuple[Any, Any]:
    """What `checks._states` gives, by the stand-in in single precision."""
    blocks = [StandIn(job) for job in jobs]
    losses = [[block.epoch(0)] for block in blocks]
    kept = []
    for block in blocks:
        adam, average = block.adam, block.average
        kept.append(torch.stack([adam.flat, adam._mean, adam._square, average, average]).numpy())
    return np.stack(kept), np.array(losses)


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_states", states)
    monkeypatch.setattr(cuda, "run_jobs", run_as_kernel)
    monkeypatch.setattr(check, "why_not", lambda: "")


QUICK = [checks.first_steps, checks.later_steps, checks.validation, checks.several_shapes]


@pytest.mark.parametrize("one", QUICK, ids=lambda one: one.__name__)
def test_checks_hold_for_what_is_right(one: Any, stand_in: None) -> None:
    found = list(one())
    assert found
    assert [each for each in found if not each.holds] == []


def test_checks_of_when_training_ends_hold(stand_in: None) -> None:
    found = list(checks.stops())
    assert [one for one in found if not one.holds] == []
    assert len(found) > 30


BROKEN: dict[str, tuple[str, Any, str]] = {
    "no clip": ("gradient_clip", None, "later_steps"),
    "no average": ("weight_ema", 0.0, "later_steps"),
    "no schedule": ("schedule", "constant", "later_steps"),
    "one loss row": ("loss_rows", 1, "first_steps"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_checks_fail_for_what_is_wrong(
    name: str, stand_in: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    setting, value, which = BROKEN[name]

    def wrong(jobs: Sequence[TrainingJob]) -> tuple[Any, Any]:
        return states([replace(job, config=replace(job.config, **{setting: value})) for job in jobs])

    monkeypatch.setattr(checks, "_states", wrong)
    assert check.main([which]) == 1
    assert "FAILED" in capsys.readouterr().out


def test_a_number_that_is_none_does_not_hold() -> None:
    assert Checked("", 0.1, 0.2).holds
    assert not Checked("", 0.3, 0.2).holds
    assert not Checked("", np.nan, 0.2).holds


@needs_no_gpu
def test_without_a_gpu_they_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert check.main([]) == 0
    assert "nothing to check here: the kernel does not handle this machine" in capsys.readouterr().out
    assert speed.main([]) == 1
    assert "nothing to measure here" in capsys.readouterr().out


def test_they_need_none_of_the_packages_of_the_command() -> None:
    hidden = ("typer", "rich", "pandas", "lightgbm", "pydantic", "pyarrow", "matplotlib", "pytest")
    code = f"import sys; sys.modules.update(dict.fromkeys({hidden}))\n"
    code += "import benchmarks.gpu.check, benchmarks.gpu.speed"
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_the_peer_computes_the_gradient_of_the_reference(variant: Any, activation: Any) -> None:
    cell = Architecture.of(variant, n_inputs=3, hidden_size=7, memory_size=5, memory_activation=activation)
    for loss_rows in (1, 4):
        config = TrainConfig(window=6, loss_rows=loss_rows, batch_size=8)
        assert speed.apart(TrainingJob.of(Member(cell, made.panel(300, 3), None, 1), config)) < 1e-5


@pytest.mark.parametrize("variant", VARIANTS)
def test_weights_are_drawn_away_from_kinks(variant: Any) -> None:
    """There, single precision does not change the gradient by more than rounding; at a kink it jumps."""
    cell = Architecture.of(variant, n_inputs=9, hidden_size=128, memory_size=9)
    job = TrainingJob.of(made.member(cell, rows=600, missing=0.3), TrainConfig(window=5))
    job = kinks.away_from_kinks(made.only(job, job.training.ends[:128]))
    assert kinks.nearest_kink(job) > kinks.AWAY / 10
    # One weight of the first unit's bias moved, so that its first argument of the first window is zero.
    block = StandIn(job, torch.float64)
    weights = unpack(cell, job.weights.copy())
    x = job.training.inputs[job.training.ends[0] - 4].astype(np.float64)
    weights.fusion_bias[0, 0] = -(x @ weights.fusion[:9, 0].astype(np.float64))
    at_kink = replace(job, weights=pack(weights))
    assert kinks.nearest_kink(at_kink) < 1e-7
    ends = torch.from_numpy(job.training.ends.astype(np.int64))
    _, gradient = block.engine.loss_and_gradient(block.adam.flat, ends)
    _, single = StandIn(job).engine.loss_and_gradient(StandIn(job).adam.flat, ends)
    assert float((single - gradient).abs().max() / gradient.abs().max()) < 1e-5


def test_the_peer_trains_every_member_as_the_stand_in_does() -> None:
    config = TrainConfig(window=6, batch_size=50, epochs=1, learning_rate=0.01)
    panel = made.panel(405, 3)  # 400 windows: whole batches
    jobs = [TrainingJob.of(Member(CELL, panel, None, seed), config) for seed in (1, 2, 3)]
    peer = BatchedGraph(jobs, torch.device("cpu"))
    peer.steps(8)
    for flat, job in zip(peer.adam.flat, jobs, strict=True):
        expected = train_as_kernel(job).weights
        np.testing.assert_allclose(flat.numpy(), expected, rtol=1e-3, atol=1e-5)


def test_two_cores_make_the_steps_they_are_said_to_make(monkeypatch: pytest.MonkeyPatch) -> None:
    members = [Member(CELL, made.panel(205, 3), None, seed) for seed in (1, 2)]
    ours = speed.OnTwoCores(members, TrainConfig(window=6, batch_size=50))
    assert ours.steps == speed.CPU_EPOCHS * 4
    lengths: list[int] = []
    monkeypatch.setattr(speed, "train_members", lambda every, config: lengths.append(config.epochs))
    ours(0)
    assert lengths == [speed.CPU_EPOCHS]
    assert ours.config.device == "cpu"


def test_the_page_shows_the_committed_figures() -> None:
    text = page.PAGE.read_text()
    saved = read(Path(__file__).parents[2] / "benchmarks" / "results" / "gpu.json")
    assert page.put(text, page.figures(saved)) == text, (
        "run: python -m benchmarks.gpu.page benchmarks/results/gpu.json"
    )
    kernel = [row for one in saved.measured for row in one.rows if row["contender"] == speed.KERNEL]
    assert all(f"| {row['model-steps/s']:,.0f} |" in text for row in kernel)
    with pytest.raises(DataError, match="must have the lines"):
        page.put("a page without them", "figures")


def test_results_are_those_of_the_weights_kept() -> None:
    job = TrainingJob.of(
        made.member(CELL, rows=300), TrainConfig(window=6, epochs=30, patience=2, learning_rate=0.05)
    )
    found: JobResult = train_as_kernel(job)
    assert found.validation_losses is not None
    assert found.best_epoch == 1 + int(np.argmin(found.validation_losses))
    assert len(found.losses) == min(30, found.best_epoch + 2)
