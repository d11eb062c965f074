"""What a member learns from, as arrays for a GPU: the same as the loop on the CPU draws, bit for bit."""

import dataclasses
import math
import pickle
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.gpu import made
from tests.cases import random_panel
from varnn.data.preparation import Scaling
from varnn.data.windows import loss_window_ends, window_ends
from varnn.errors import DataError, TrainingError
from varnn.network.cell import Architecture
from varnn.network.engines.cuda.job import JobResult, TrainingJob
from varnn.network.engines.reference import ReferenceEngine
from varnn.network.training import Member, TrainConfig, train

CELL = Architecture.of("ARM+AM", n_inputs=3, hidden_size=8, memory_size=5)


def member(seed: int = 5, *, validated: bool = True, **settings: Any) -> Member:
    panel = random_panel([150, 70], missing=0.2, seed=1)
    scaled = Scaling.fit(panel, "minmax").apply(panel)
    return Member(CELL, scaled, scaled if validated else None, seed, **settings)


@pytest.mark.parametrize("loss_rows", [1, 4])
@pytest.mark.parametrize("stop_after", [None, 2])
def test_windows_and_weights_are_those_of_the_loop(
    loss_rows: int, stop_after: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop is watched where it hands batches to an engine."""
    seen: list[tuple[torch.Tensor, torch.Tensor]] = []
    original = ReferenceEngine.loss_and_gradient

    def watched(self: ReferenceEngine, flat: torch.Tensor, ends: torch.Tensor) -> Any:
        seen.append((flat.clone(), ends.clone()))
        return original(self, flat, ends)

    monkeypatch.setattr(ReferenceEngine, "loss_and_gradient", watched)
    config = TrainConfig(
        window=6,
        loss_rows=loss_rows,
        epochs=4,
        batch_size=16,
        patience=None,
        device="cpu",
        engine="reference",
    )
    one = member(stop_after=stop_after)
    trained = train(CELL, one.training, one.validation, config, one.seed, stop_after=stop_after)
    job = TrainingJob.of(one, config)
    np.testing.assert_array_equal(job.training.ends, np.concatenate([ends.numpy() for _, ends in seen]))
    np.testing.assert_array_equal(job.weights, seen[0][0].numpy())
    assert job.last == len(trained.history) == (stop_after or 4)
    batches = [math.ceil(windows / 16) for windows in np.diff(job.first)]
    assert len(seen) == sum(batches)  # in batches of the same sizes, as epochs begin where the loop's do
    at = np.cumsum([0, *(len(ends) for _, ends in seen)])
    assert set(job.first.tolist()) <= set(at.tolist())
    assert job.training.ends.dtype == job.first.dtype == np.int32


def test_rows_are_not_copied_and_validation_is_on_whole_windows() -> None:
    one = member()
    assert one.validation is not None
    for loss_rows in (1, 4):
        config = TrainConfig(window=6, loss_rows=loss_rows, epochs=1)
        job, other = TrainingJob.of(one, config), TrainingJob.of(dataclasses.replace(one, seed=6), config)
        assert job.training.inputs is other.training.inputs is one.training.inputs
        assert job.training.target is other.training.target is one.training.target
        assert job.validation is not None
        assert job.validation.inputs is one.validation.inputs
        expected = (
            window_ends(one.validation, 6) if loss_rows == 1 else loss_window_ends(one.validation, 6, 4, 0)
        )
        np.testing.assert_array_equal(job.validation.ends, expected)
        assert not np.array_equal(job.training.ends, other.training.ends)
    assert TrainingJob.of(member(validated=False), config).validation is None


def test_rows_too_short_are_refused_as_by_the_loop() -> None:
    with pytest.raises(DataError, match="every series needs at least window = 71 rows"):
        TrainingJob.of(member(), TrainConfig(window=71))


def test_it_goes_to_another_process_as_it_is() -> None:
    jobs = [TrainingJob.of(member(seed), TrainConfig(window=6, epochs=2)) for seed in (1, 2)]
    panel = jobs[0].training.inputs
    jobs[1] = dataclasses.replace(jobs[1], training=jobs[1].training._replace(inputs=panel))
    again = pickle.loads(pickle.dumps(jobs))
    for one, two in zip(jobs, again, strict=True):
        assert (one.architecture, one.config) == (two.architecture, two.config)
        np.testing.assert_array_equal(one.training.ends, two.training.ends)
        np.testing.assert_array_equal(one.weights, two.weights)
    assert again[0].training.inputs is again[1].training.inputs  # still sent to a GPU once


def result(losses: list[float], unseen: list[float] | None, best_epoch: int) -> JobResult:
    job = TrainingJob.of(member(), TrainConfig(window=6, epochs=4))
    validated = None if unseen is None else np.array(unseen, np.float32)
    seconds = np.arange(1.0, len(losses) + 1)
    return JobResult(job.weights, np.array(losses, np.float32), validated, seconds, best_epoch)


@pytest.mark.parametrize("schedule", ["constant", "cosine"])
@pytest.mark.parametrize("validated", [False, True])
def test_lines_of_the_history_are_those_of_the_loop(schedule: Any, validated: bool) -> None:
    config = TrainConfig(window=6, epochs=4, batch_size=16, schedule=schedule, patience=None, device="cpu")
    one = member(validated=validated)
    lines = train(CELL, one.training, one.validation, config, one.seed).history
    figures = result([3, 2, 1, 0.5], [4, 3, 2, 3] if validated else None, 3)
    trained = TrainingJob.of(one, config).trained(figures)
    assert [list(line) for line in trained.history] == [list(line) for line in lines]
    for name in ("epoch", "learning_rate"):
        assert [line[name] for line in trained.history] == [line[name] for line in lines]
    assert [line["loss"] for line in trained.history] == [3, 2, 1, 0.5]
    assert [line.get("validation_loss") for line in trained.history] == (
        [4, 3, 2, 3] if validated else [None] * 4
    )
    assert [line["seconds"] for line in trained.history] == [1, 2, 3, 4]
    assert all(type(value) in (int, float) for line in trained.history for value in line.values())
    assert trained.best_epoch == 3
    np.testing.assert_array_equal(
        trained.weights.fusion.ravel(), figures.weights[: trained.weights.fusion.size]
    )


def test_failures_are_said_in_the_words_of_the_loop() -> None:
    job = TrainingJob.of(member(), TrainConfig(window=6, epochs=4, learning_rate=0.5))
    with pytest.raises(TrainingError, match=r"in epoch 2 it became nan. Lower learning_rate \(now 0.5\)"):
        job.trained(result([1.0, math.nan], [1.0, math.nan], 1))
    with pytest.raises(TrainingError, match=r"validation loss must be finite; in no epoch was it"):
        job.trained(result([1.0, 2.0], [math.nan, math.nan], 0))
    nothing = job.trained(result([], [], 0))  # it was ended within its first epoch
    assert nothing.history == []
    assert nothing.best_epoch == 0


def test_one_epoch_of_given_windows() -> None:
    job = TrainingJob.of(member(), TrainConfig(window=6, epochs=4))
    short = made.only(job, job.training.ends[:7])
    assert (short.last, short.first.tolist(), len(short.training.ends)) == (1, [0, 7], 7)
