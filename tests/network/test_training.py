"""Training: what is kept, when it stops, and that a seed is a result."""

import logging
import math
import threading
import time
from concurrent.futures import Future

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

from tests.cases import random_panel, random_weights
from varnn import Details, VARNNRegressor
from varnn.data.panel import Panel
from varnn.data.preparation import Scaling, split_in_time
from varnn.data.windows import loss_window_ends
from varnn.errors import ConfigError, DataError, TrainingError
from varnn.network.cell import Architecture
from varnn.network.engines._workspace import count_weights
from varnn.network.engines.engine import Task, pack
from varnn.network.engines.reference import ReferenceEngine
from varnn.network.training import (
    Epoch,
    Member,
    TrainConfig,
    Trained,
    error_on_rows,
    one_thread,
    pick_device,
    train,
    train_members,
    train_together,
)
from varnn.network.training import validation as validation_module
from varnn.network.training.validation import LossOfRows, LossOfWindows, validation_loss_of


def fit(
    on_epoch: object = None, *, validated: bool = True, learning_rate: float = 1e-2, **settings: object
) -> Trained:
    panel = random_panel([300, 200], seed=1)
    training, validation = split_in_time(panel, 0.7, 0.3)
    scaling = Scaling.fit(training, "minmax")
    return train(
        Architecture.of("ARM", n_inputs=3, hidden_size=16),
        scaling.apply(training),
        scaling.apply(validation) if validated else None,
        TrainConfig(learning_rate=learning_rate, device="cpu", **settings),  # type: ignore[arg-type]  # as the test was given it
        seed=5,
        on_epoch=on_epoch,  # type: ignore[arg-type]  # as the test was given it
    )


def test_training_learns_and_a_seed_is_a_result() -> None:
    first, second = fit(epochs=8), fit(epochs=8)
    assert first.history[-1]["loss"] < first.history[0]["loss"] / 3
    for one, two in zip(first.weights.as_dict().values(), second.weights.as_dict().values(), strict=True):
        np.testing.assert_array_equal(one, two)


def test_the_best_validation_epoch_is_kept() -> None:
    trained = fit(epochs=40, learning_rate=5e-2, patience=None)
    losses = [line["validation_loss"] for line in trained.history]
    assert len(losses) == 40
    assert trained.best_epoch == 1 + int(np.argmin(losses)) < 40
    shorter = fit(epochs=trained.best_epoch, learning_rate=5e-2, patience=None)
    np.testing.assert_array_equal(shorter.weights.fusion, trained.weights.fusion)


def test_patience_ends_training() -> None:
    trained = fit(epochs=200, learning_rate=3e-2, patience=3)
    assert len(trained.history) == trained.best_epoch + 3 < 200


def test_without_validation_the_last_weights_are_kept() -> None:
    trained = fit(epochs=4, validated=False)
    assert trained.best_epoch == 4
    assert "validation_loss" not in trained.history[0]


def test_the_cosine_schedule_ends_near_zero() -> None:
    rates = [line["learning_rate"] for line in fit(epochs=10, schedule="cosine").history]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] < 1e-3 * 1e-2 * 50
    batches = math.ceil((350 - 8) / 128)
    assert rates[0] == pytest.approx(0.5e-2 * (1 + math.cos(math.pi * (batches - 1) / batches / 10)))


def test_clipping_shortens_the_gradient() -> None:
    free, clipped = fit(epochs=1), fit(epochs=1, gradient_clip=1e-3)
    assert not np.array_equal(free.weights.fusion, clipped.weights.fusion)
    np.testing.assert_array_equal(free.weights.fusion, fit(epochs=1, gradient_clip=1e9).weights.fusion)


def test_an_interrupt_keeps_the_best_so_far(caplog: pytest.LogCaptureFixture) -> None:
    def stop(line: Epoch) -> None:
        if line["epoch"] == 3:
            raise KeyboardInterrupt

    with caplog.at_level(logging.WARNING):
        trained = fit(stop, epochs=50)
    assert len(trained.history) == 3
    losses = [line["validation_loss"] for line in trained.history]
    assert trained.best_epoch == 1 + int(np.argmin(losses))
    assert "keeping the weights of epoch" in caplog.text
    np.testing.assert_array_equal(trained.weights.fusion, fit(epochs=trained.best_epoch).weights.fusion)


def test_a_loss_that_explodes_says_what_to_try() -> None:
    with pytest.raises(TrainingError, match=r"epoch \d+ it became .*Lower learning_rate.*gradient_clip"):
        fit(epochs=20, learning_rate=1e12)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 0}, "epochs must be a whole number, at least 1; got 0"),
        ({"batch_size": 2.5}, "batch_size must be a whole number"),
        ({"learning_rate": math.nan}, "learning_rate must be above 0"),
        ({"gradient_clip": -1.0}, "gradient_clip must be above 0"),
        ({"schedule": "linear"}, "schedule must be one of"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TrainConfig(**settings)  # type: ignore[arg-type]  # as the test was given it


def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match="device"):
        pick_device("toaster")


def test_validation_rows_need_a_label() -> None:
    panel = random_panel([100])
    panel.target[80:] = np.nan
    with pytest.raises(DataError, match="at least one known target"):
        VARNNRegressor(epochs=1).fit(panel)


def members(config: TrainConfig, on_epoch: object = None) -> list[Trained]:
    panel = random_panel([300], seed=1)
    scaled = Scaling.fit(panel, "minmax").apply(panel)
    architecture = Architecture.of("ARM+AM", n_inputs=3, hidden_size=8)
    every = [Member(architecture, scaled, scaled, seed) for seed in (5, 6, 7)]
    return train_members(every, config, on_epoch)  # type: ignore[arg-type]  # as the test was given it


def test_members_side_by_side_equal_members_alone() -> None:
    panel = random_panel([300], seed=1)
    scaled = Scaling.fit(panel, "minmax").apply(panel)
    architecture = Architecture.of("ARM+AM", n_inputs=3, hidden_size=8)
    config = TrainConfig(epochs=3, device="cpu")
    for seed, member in zip([5, 6, 7], members(config), strict=True):
        alone = train(architecture, scaled, scaled, config, seed)
        np.testing.assert_array_equal(member.weights.fusion, alone.weights.fusion)
        assert [line["loss"] for line in member.history] == [line["loss"] for line in alone.history]


@pytest.mark.parametrize("cores", [1, 2])
def test_members_take_no_more_cores_than_there_are(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1}, raising=False)
    monkeypatch.setenv("VARNN_CORES", str(cores))
    threads = set()
    members(TrainConfig(epochs=3, device="cpu"), lambda *_: threads.add(threading.get_ident()))
    assert len(threads) == cores


@pytest.mark.parametrize("loss_rows", [1, 2])
def test_members_in_one_batch_equal_members_alone(loss_rows: int) -> None:
    """What a GPU does with an ensemble, on the CPU: histories, early stops and weights are each one's own."""
    panel = random_panel([300, 80], seed=1, missing=0.1)
    scaled = Scaling.fit(panel, "minmax").apply(panel)
    architecture = Architecture.of("ARM+AM", n_inputs=3, hidden_size=8)
    config = TrainConfig(
        window=6,
        loss_rows=loss_rows,
        epochs=12,
        patience=2,
        learning_rate=0.02,
        gradient_clip=0.5,
        device="cpu",
    )
    together = train_together(architecture, scaled, scaled, config, [5, 6, 7])
    for seed, member in zip([5, 6, 7], together, strict=True):
        alone = train(architecture, scaled, scaled, config, seed)
        assert len(member.history) == len(alone.history)
        assert member.best_epoch == alone.best_epoch
        np.testing.assert_allclose(member.weights.fusion, alone.weights.fusion, rtol=1e-2, atol=2e-3)
        losses, expected = ([line["validation_loss"] for line in one.history] for one in (member, alone))
        np.testing.assert_allclose(losses, expected, rtol=1e-3)


def test_a_member_that_fails_stops_the_others() -> None:
    with pytest.raises(TrainingError, match="must stay finite"):
        members(TrainConfig(epochs=500, patience=None, learning_rate=1e12, device="cpu"))


def test_the_caller_keeps_the_thread_count_of_torch() -> None:
    torch.set_num_threads(2)
    try:
        members(TrainConfig(epochs=1, device="cpu"))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


def test_two_at_once_leave_the_thread_counts_as_they_were() -> None:
    """The first begins, the second begins, the first ends, the second ends."""
    second_in, first_out = threading.Event(), threading.Event()
    told: dict[str, int] = {}

    def second() -> None:
        with one_thread():
            second_in.set()
            first_out.wait(10)
            told["within"] = torch.get_num_threads()
        told["after"] = torch.get_num_threads()

    def later() -> None:
        told["later"] = torch.get_num_threads()

    with threadpool_limits(2, user_api="blas"):
        torch.set_num_threads(2)
        try:
            other = threading.Thread(target=second)
            with one_thread():
                with one_thread():
                    other.start()
                    assert second_in.wait(10)
                assert torch.get_num_threads() == 1
            here = torch.get_num_threads()
            first_out.set()
            other.join()
            third = threading.Thread(target=later)
            third.start()
            third.join()
            assert (here, blas_threads()) == (2, 2)
        finally:
            torch.set_num_threads(1)
    assert told == {"within": 1, "after": 2, "later": 2}


def blas_threads() -> int:
    return max(int(one["num_threads"]) for one in threadpool_info() if one["user_api"] == "blas")


def test_an_interrupt_keeps_every_members_best(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C reaches the main thread while it waits; the members end their epoch."""

    def interrupted(self: Future[Trained], timeout: float | None = None) -> Trained:
        monkeypatch.setattr(Future, "result", original)
        time.sleep(0.3)
        raise KeyboardInterrupt

    original = Future.result
    monkeypatch.setattr(Future, "result", interrupted)
    trained = members(TrainConfig(epochs=100_000, patience=None, device="cpu"))
    assert len(trained) == 3
    assert all(0 < len(one.history) < 100_000 for one in trained[:2])


def test_a_validation_loss_that_is_never_finite_is_said() -> None:
    X = np.random.default_rng(0).normal(size=(200, 2))
    with pytest.raises(TrainingError, match=r"must (be|stay) finite"):
        VARNNRegressor(learning_rate=1e6, epochs=1, ensemble=1, details=Details(gradient_clip=None)).fit(
            X, X[:, 0]
        )


# The error on validation rows.


def windows_of(panel: Panel, loss_rows: int) -> tuple[Architecture, LossOfWindows, TrainConfig]:
    cell = Architecture.of("ARM+AM", n_inputs=3, hidden_size=8, memory_size=5)
    config = TrainConfig(window=6, loss_rows=loss_rows)
    found = validation_loss_of(cell, panel, config, torch.device("cpu"))
    assert isinstance(found, LossOfWindows)
    return cell, found, config


@pytest.mark.parametrize("missing", [0.0, 0.2, 0.9])
@pytest.mark.parametrize("at_once", [1024, 7])
def test_with_several_loss_rows_the_validation_loss_is_the_training_loss(
    missing: float, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validation_module, "_WINDOWS_AT_ONCE", at_once)
    panel = random_panel([100, 40, 3], missing=missing, seed=4)
    cell, loss, config = windows_of(panel, 3)
    flats = torch.tensor(np.stack([pack(random_weights(cell, seed)) for seed in (1, 2)]))
    ends = torch.tensor(loss_window_ends(panel, config.window, config.loss_rows, 0))
    rows = (torch.from_numpy(panel.inputs), torch.from_numpy(panel.target))
    reference = ReferenceEngine(Task(cell, *rows, config.window, config.loss_rows))
    expected = [float(reference.loss(flat, ends)) for flat in flats]
    assert loss(flats) == pytest.approx(expected, rel=1e-5)
    assert loss(flats[1]) == pytest.approx(expected[1:], rel=1e-5)


def test_with_one_loss_row_it_is_the_error_on_rows() -> None:
    panel = random_panel([90, 40], missing=0.1, seed=4)
    cell = Architecture.of("ARM+AM", n_inputs=3, hidden_size=8, memory_size=5)
    weights = random_weights(cell, 1, np.float32)
    loss = validation_loss_of(cell, panel, TrainConfig(window=6), torch.device("cpu"))
    found = error_on_rows(cell, weights, panel, 6)
    assert loss(torch.tensor(pack(weights))) == [found]
    several = windows_of(panel, 3)[1](torch.tensor(pack(weights)))
    assert several != [found]
    assert several == pytest.approx([found], rel=0.5)  # of other contexts, and of the same rows


def test_predictions_that_are_no_numbers_are_not_taken_for_missing_labels() -> None:
    cell, loss, _ = windows_of(random_panel([60], missing=0.2), 3)
    flat = torch.full((count_weights(cell),), torch.nan)
    assert math.isnan(loss(flat)[0])


def test_rows_too_few_for_a_window_are_validated_one_by_one() -> None:
    cell = Architecture.of("ARM+AM", n_inputs=3, hidden_size=8, memory_size=5)
    config = TrainConfig(window=6, loss_rows=3)
    loss = validation_loss_of(cell, random_panel([5, 4]), config, torch.device("cpu"))
    assert isinstance(loss, LossOfRows)
    assert math.isfinite(loss(torch.tensor(pack(random_weights(cell, 1, np.float32))))[0])


def test_members_keep_to_the_cores_that_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = set()
    monkeypatch.setenv("VARNN_CORES", "1")  # as in a process that is one of several
    members(TrainConfig(epochs=2), lambda *_: threads.add(threading.get_ident()))
    assert len(threads) == 1
