"""Trainings that workers send to the process that owns the GPU: real processes, a real socket, a CPU."""

import os
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from multiprocessing.connection import Client
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
import torch

from tests.scale import standing_in
from tests.scale.standing_in import SEED_THAT_FAILS, SEED_THAT_IS_REFUSED, SEED_THAT_KILLS, StandInJob, train
from tests.scale.test_many import SMALL, of_series, panel_of, same_model
from varnn import Details, VARNNRegressor
from varnn.errors import TrainingError
from varnn.network.cell import Architecture
from varnn.network.engines.cuda import training
from varnn.network.training import Member, TrainConfig, Trained
from varnn.scale import _gpu, fit_many
from varnn.scale._gpu import Together
from varnn.scale._trainings import Refused, Trainings

Calls = list[tuple[int, ...]]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Seeds of the members of each call to the GPU's stand-in."""
    found: Calls = []

    def counted(jobs: list[StandInJob], stop: Event) -> list[Trained]:
        found.append(tuple(job.member.seed for job in jobs))
        return train(jobs, stop)

    def stand_in(regressors: Iterable[VARNNRegressor]) -> Trainings:
        return Trainings(counted, StandInJob)

    monkeypatch.setattr(_gpu, "trainings", stand_in)
    return found


@pytest.mark.parametrize("workers", [1, 2])
def test_models_are_what_they_are_when_trained_here(workers: int, calls: Calls) -> None:
    panel = panel_of(["a", "b", "c", "d", "e"])
    models = fit_many(panel, VARNNRegressor(**SMALL), workers=workers)
    assert list(models) == ["a", "b", "c", "d", "e"] and models.failures == {}
    assert sorted(calls) == sorted(5 * [(7,), (8,), (7, 8)])  # first members, the others, all again
    for name in ("a", "e"):
        rows = of_series(panel, name)
        same_model(models[name], VARNNRegressor(**SMALL).fit(rows), rows)


def test_a_training_that_fails_is_its_own_series_affair(calls: Calls) -> None:
    panel = panel_of(["a", "b", "c"])
    seeds = dict(zip("abc", (7, SEED_THAT_FAILS, SEED_THAT_IS_REFUSED), strict=True))
    wanted = {
        name: (of_series(panel, name), VARNNRegressor(**{**SMALL, "random_state": seed, "ensemble": 1}))
        for name, seed in seeds.items()
    }
    models = fit_many(wanted, workers=2)
    assert models.failures == {"b": "the loss must stay finite; this one did not."}
    rows, regressor = wanted["c"]  # what the parent does not train is trained by the worker itself
    same_model(models["c"], regressor.fit(rows), rows)
    assert (SEED_THAT_IS_REFUSED,) in calls


def test_a_worker_that_is_killed_leaves_the_parent_well(
    calls: Calls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(standing_in.ONCE, str(tmp_path / "killed"))
    panel = panel_of(["a", "b", "c", "d"])
    wanted: dict[str, Any] = {
        name: (of_series(panel, name), VARNNRegressor(**{**SMALL, "random_state": seed}))
        for name, seed in zip("abcd", (7, SEED_THAT_KILLS, 7, 7), strict=True)
    }
    models = fit_many(wanted, workers=2, path=tmp_path / "m.varnns")
    assert (tmp_path / "killed").exists() and models.failures == {} and len(models) == 4
    for name, (rows, regressor) in wanted.items():
        same_model(models[name], regressor.fit(rows), rows)


def test_who_does_not_know_the_key_is_refused() -> None:
    with Trainings(train, StandInJob) as trainings:
        with pytest.raises((OSError, EOFError, Exception), match=r"digest|closed|reset"):
            Client(trainings.door.address, authkey=b"wrong").recv()
        assert Client(trainings.door.address, authkey=trainings.door.key) is not None


def test_a_long_name_of_the_temporary_folder_is_no_hindrance(tmp_path: Path) -> None:
    """A name of a socket has 107 characters at most; the folder is chosen once in a process."""
    folder = tmp_path / ("x" * 120)
    folder.mkdir()
    program = (
        "from multiprocessing.connection import Client; from varnn.scale._trainings import Trainings\n"
        "with Trainings(lambda jobs, stop: jobs, int) as trainings:\n"
        "    with Client(trainings.door.address, authkey=trainings.door.key) as one:\n"
        "        one.send([1, 2]), print(one.recv())"
    )
    environment = os.environ | {"TMPDIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "('done', [1, 2])\n", done.stderr


def test_what_the_gpu_has_no_room_for_is_trained_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(training, "run_jobs", full)
    with pytest.raises(Refused, match="out of memory"):
        _gpu._run([], Event())


def test_when_the_parent_is_gone_a_fit_says_so() -> None:
    trainings = Trainings(train, StandInJob)
    trainer = trainings.door.trainer()
    trainings.close()
    with pytest.raises(TrainingError, match="the process that trains on the GPU is gone"):
        trainer([], TrainConfig(), None, None)


def test_calls_of_many_threads_are_put_together() -> None:
    sizes, first = list[int](), Event()

    def run(jobs: list[int], stop: Event) -> list[int]:
        sizes.append(len(jobs))
        first.wait(30)
        if 99 in jobs:
            raise TrainingError("not this one")
        return [2 * job for job in jobs]

    together = Together(run, at_once=1, most=4)
    with ThreadPoolExecutor(5) as pool:
        begun = pool.submit(together, [0], Event())
        while not sizes:
            time.sleep(0.001)
        later = [pool.submit(together, jobs, Event()) for jobs in ([1, 2], [99], [3], [4, 5, 6, 7, 8])]
        while len(together._waiting) < 4:
            time.sleep(0.001)
        first.set()
        assert begun.result() == [0] and later[0].result() == [2, 4] and later[2].result() == [6]
        assert later[3].result() == [8, 10, 12, 14, 16]
        with pytest.raises(TrainingError, match="not this one"):
            later[1].result()
    assert sizes[:2] == [1, 4] and sorted(sizes[2:]) == [1, 1, 2, 5]


def test_jobs_of_the_kernel_are_made_without_a_gpu_and_others_refused() -> None:
    rows = panel_of(["a"])
    rows = replace(rows, inputs=rows.inputs.astype(np.float32), target=rows.target.astype(np.float32))
    config = TrainConfig(window=4, epochs=2)
    member = Member(Architecture.of("RM", n_inputs=2, hidden_size=4), rows, None, seed=1)
    assert _gpu.KernelJob.of(member, config).last == 2
    other = replace(member, architecture=Architecture.of("RM", n_inputs=2, residual="none"))
    for wrong, how in ((other, config), (member, replace(config, device="cpu"))):
        with pytest.raises(Refused):
            _gpu.KernelJob.of(wrong, how)


def test_a_gpu_that_settings_do_not_want_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_gpu, "is_there", lambda: True)
    assert _gpu.trainings([VARNNRegressor(device="cpu")]) is None
    assert _gpu.trainings([VARNNRegressor(details=Details(engine="fused"))]) is None
