"""How fast the kernel is, beside PyTorch in a CUDA graph and beside this project on two cores.

``python -m benchmarks.gpu.speed --json benchmarks/results/gpu.json`` measures all, ``--parts default rm fit``
some of it. Contenders take turns; a call is many steps, with what goes to the GPU and comes back from it.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch

from benchmarks.cost.house import APPLIANCES_ROWS, rows_like_appliances
from benchmarks.gpu import made
from benchmarks.gpu.batched import BatchedGraph
from benchmarks.gpu.checks import why_not
from benchmarks.record import Measured, Row, save, shown, significant
from benchmarks.speed.rounds import Contender, Timing, interleave
from varnn.estimator.regressor import VARNNRegressor
from varnn.network.cell import Architecture
from varnn.network.engines.cuda._kernels import kernel_for
from varnn.network.engines.cuda._layout import Shape
from varnn.network.engines.cuda.job import TrainingJob
from varnn.network.engines.cuda.launch import Launch
from varnn.network.engines.engine import Task
from varnn.network.engines.reference import ReferenceEngine
from varnn.network.training import Member, TrainConfig, train_members

RM = Architecture.of("RM", n_inputs=9, hidden_size=128)
KERNEL, GRAPH, CPU = "kernel", "PyTorch, CUDA graph", "varnn on two cores"
ROWS = 12_000
STEPS = {KERNEL: 2000, GRAPH: 100}  # of a call
CPU_EPOCHS = 3
CPU_MEMBERS = 2  # one a core


class Ours:
    """The kernel: one launch is many steps.

    Parameters
    ----------
    jobs : sequence of TrainingJob
        Members of one shape.
    steps : int
        Of a launch.
    """

    def __init__(self, jobs: Sequence[TrainingJob], steps: int) -> None:
        config = jobs[0].config
        began = time.perf_counter()
        shape = Shape.of(jobs[0].architecture, config)
        self.kernel = kernel_for(shape, config.batch_size, torch.cuda.current_device())
        self.compiled_in = time.perf_counter() - began
        self.jobs, self.steps = (
            [made.only(job, _cycled(job, steps * config.batch_size)) for job in jobs],
            steps,
        )
        self.on_gpu: list[float] = []  # seconds a step

    def __call__(self, _: int) -> None:
        """Train."""
        launch = Launch(self.kernel, self.jobs, lambda index, line: None)
        while not launch.poll():
            time.sleep(1e-4)
        list(launch.results())
        self.on_gpu.append(launch.gpu_seconds() / self.steps)


def _cycled(job: TrainingJob, count: int) -> Any:
    """So many windows of a job, again and again."""
    return np.resize(job.training.ends[: job.first[1]], count)


class OnTwoCores:
    """Two members at a time on the CPU, a thread each, by the engine that is fastest for them.

    Parameters
    ----------
    members : sequence of Member
        The two.
    config : TrainConfig
        How to train.
    """

    def __init__(self, members: Sequence[Member], config: TrainConfig) -> None:
        self.members = members
        self.config = replace(config, epochs=CPU_EPOCHS, device="cpu", patience=None)
        windows = np.diff(TrainingJob.of(members[0], self.config).first)
        self.steps = int(np.ceil(windows / config.batch_size).sum())  # of each

    def __call__(self, _: int) -> None:
        """Train."""
        train_members(self.members, self.config)


def step_table(
    name: str,
    cell: Architecture,
    configs: Sequence[TrainConfig],
    members: Sequence[int],
    *,
    rounds: int,
    cpu: bool,
) -> Measured:
    """Steps of some members at once, for some batches."""
    rows: list[Row] = []
    checks: list[str] = []
    panel = made.panel(ROWS, cell.n_inputs)
    for config in configs:
        for count in members:
            every = [Member(cell, panel, None, seed) for seed in range(count)]
            jobs = [TrainingJob.of(one, config) for one in every]
            ours, peer = Ours(jobs, STEPS[KERNEL]), BatchedGraph(jobs, torch.device("cuda"))
            contenders = [
                Contender(KERNEL, ours, STEPS[KERNEL]),
                Contender(GRAPH, partial(_replay, peer), STEPS[GRAPH]),
            ]
            if cpu:
                on_cpu = OnTwoCores([every[0], every[-1]], config)
                contenders.append(Contender(CPU, on_cpu, on_cpu.steps))
            what = f"batch {config.batch_size}, {count} members"
            checks.append(f"{what}: gradient of the graph is the reference's to {apart(jobs[0]):.1g}")
            checks.append(f"{what}: kernel compiled, or found, in {ours.compiled_in:.2f} s")
            timings = interleave(contenders, rounds=rounds, calls=1, warm_up=1)
            checks.append(f"{what}: {min(ours.on_gpu) * 1e6:.1f} us a step on the GPU alone")
            rows += step_rows(timings, config.batch_size, count)
            _say(f"{what}\n", *(f"  {_line(row)}\n" for row in rows[-len(timings) :]), f"  {checks[-1]}\n")
    sizes = f"{cell.n_inputs} inputs, {cell.hidden_size} hidden, {cell.memory_size} memory"
    title = f"Training steps, {sizes}, window {configs[0].window}, {configs[0].loss_rows} loss rows; {_gpu()}"
    if cpu:
        title += f"; on the CPU {CPU_MEMBERS} members are measured, and more taken to be as many turns"
    return Measured(name=name, title=title, threads=1, rows=rows, checks=checks)


def _replay(peer: BatchedGraph, _: int) -> None:
    peer.steps(STEPS[GRAPH])


def apart(job: TrainingJob) -> float:
    """How far the peer's first gradient is from the reference's, as a share of its largest number."""
    peer = BatchedGraph([job], torch.device("cpu"))
    ends = peer.ends[0]
    rows = (peer.inputs.double(), peer.target.double(), job.config.window, job.config.loss_rows)
    reference = ReferenceEngine(Task(job.architecture, *rows))
    expected = reference.loss_and_gradient(peer.adam.flat[0].double(), ends[0])[1]
    found = peer.loss_and_gradient(ends)[1][0]
    return float((found - expected).abs().max() / expected.abs().max())


def step_rows(timings: Sequence[Timing], batch: int, members: int) -> list[Row]:
    """Lay timings of steps out as rows.

    Examples
    --------
    >>> rows = step_rows([Timing(KERNEL, np.array([[1e-4]])), Timing(CPU, np.array([[1e-3]]))], 9, 128)
    >>> rows[1]["us a step"], rows[1]["model-steps/s"], rows[1]["kernel is faster by"]
    (64000.0, 2000.0, 640.0)
    """
    rows: list[Row] = []
    for one in timings:
        turns = members / CPU_MEMBERS if one.name == CPU else 1
        row: Row = {"contender": one.name, "batch": batch, "members": members}
        row["us a step"] = significant(one.best * turns * 1e6)
        row["median us"] = significant(one.median * turns * 1e6)
        row["model-steps/s"] = significant(members / (one.best * turns))
        row["kernel is faster by"] = significant(one.best * turns / timings[0].best)
        rows.append(row)
    return rows


def default_table(rounds: int) -> Measured:
    """Steps of the default's network, in the batches that it chooses."""
    configs = [made.default_config(batch, epochs=100) for batch in (9, 12, 16)]
    return step_table("gpu default", made.DEFAULT, configs, (4, 128, 132), rounds=rounds, cpu=True)


def rm_table(rounds: int) -> Measured:
    """Steps of the paper's RM."""
    config = TrainConfig(window=5, batch_size=128, epochs=100)
    return step_table("gpu RM", RM, [config], (1, 132), rounds=rounds, cpu=False)


def fit_table(rounds: int) -> Measured:
    """Whole fits of the default: on the GPU, the first one and those after it, and on two cores."""
    panel = rows_like_appliances()
    fitted = 4 * APPLIANCES_ROWS // 5
    training, test = panel.between(0, fitted), panel
    rows: list[Row] = []
    for name, device, times in (
        ("first on the GPU", "auto", 1),
        ("on the GPU", "auto", rounds),
        (CPU, "cpu", 1),
    ):
        seconds = []
        for _ in range(times):
            began = time.perf_counter()
            with _two_cores(device == "cpu"):
                model = VARNNRegressor(device=device).fit(training)
            seconds.append(time.perf_counter() - began)
        errors = (test.target - model.predict(test))[fitted:]
        row: Row = {"contender": name, "seconds": significant(min(seconds))}
        row["median seconds"] = significant(float(np.median(seconds)))
        row["mean squared error"] = significant(float(np.mean(errors**2)), 4)
        rows.append(row)
        _say(f"  {_line(row)}\n")
    title = f"Whole fits of the default, {fitted:,} made rows with {panel.n_inputs} inputs; {_gpu()}"
    return Measured(name="gpu fit", title=title, threads=2, rows=rows)


@contextmanager
def _two_cores(really: bool) -> Iterator[None]:
    """Keep this process to two cores, where the system can do that."""
    if not really or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:2])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _gpu() -> str:
    return f"{torch.cuda.get_device_name()}, torch {torch.__version__}, CUDA {torch.version.cuda}"


def _line(row: Row) -> str:
    return ", ".join(f"{name} {shown(figure)}" for name, figure in row.items())


def _say(*words: str) -> None:
    sys.stdout.write("".join(words))
    sys.stdout.flush()


PARTS: dict[str, Callable[[int], Measured]] = {"default": default_table, "rm": rm_table, "fit": fit_table}


def main(arguments: Sequence[str]) -> int:
    """Measure, and keep the figures; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu.speed")
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", help="file to keep the figures in")
    asked = parser.parse_args(arguments)
    if why := why_not():
        _say(f"nothing to measure here: the kernel does not handle {why}.\n")
        return 1
    command = f"python -m benchmarks.gpu.speed --parts {' '.join(asked.parts)} --rounds {asked.rounds}"
    measured: list[Measured] = []
    for name in asked.parts:
        _say(f"{name}\n")
        measured.append(PARTS[name](asked.rounds))
        if asked.json:
            save(asked.json, measured, command, complete=len(measured) == len(asked.parts))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
