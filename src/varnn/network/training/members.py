"""Several networks, side by side: on the CPU a thread each, on a GPU a block each, or as one batch."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

from varnn.data import allocator
from varnn.jobs import cores
from varnn.network.engines.registry import CUDA, batches_members
from varnn.network.training.config import TrainConfig, pick_device
from varnn.network.training.loop import train, train_together
from varnn.network.training.record import Epoch, Member, Trained
from varnn.network.training.stopping import OwnEvent
from varnn.network.training.threads import one_thread

Trainer = Callable[
    [Sequence[Member], TrainConfig, Callable[[int, Epoch], None] | None, Event | None], list[Trained]
]  # what trains members: train_members here, or another that trains them elsewhere


def train_members(
    members: Sequence[Member],
    config: TrainConfig,
    on_epoch: Callable[[int, Epoch], None] | None = None,
    stop: Event | None = None,
) -> list[Trained]:
    """Train networks side by side, on a GPU where there is one and it can, else on the CPU.

    On a GPU one kernel trains them all from first to last epoch, a block each
    (`varnn.network.engines.cuda`). ``device="auto"`` is the GPU where one is there and the kernel handles the
    members, else the CPU; ``device="cuda"`` is the GPU in any case.

    On the CPU each trains on one thread and gives what :func:`train` gives for it alone. Threads, not
    processes: those were a tenth faster once they ran, but each first imports torch for seconds.

    What the kernel does not handle, ``device="cuda"`` trains by torch. There networks of one shape that learn
    from the same rows are one batch, if the engine asked for takes several at once: it takes the time of a
    single one.

    Parameters
    ----------
    members : sequence of Member
        What to train.
    config : TrainConfig
        How to train.
    on_epoch : callable or None, default None
        Called after each epoch with the member's number and its line of the history.
    stop : Event or None, default None
        Ends training once it is set; Ctrl-C sets it. Members keep their best epoch so far, those that were
        not through their first one have no history. If none has any, KeyboardInterrupt is raised.
    """
    stop = stop or Event()
    ours = OwnEvent(stop)
    trained = _trained(members, config, on_epoch, ours)  # a member that fails sets ours alone
    if ours.is_set():
        stop.set()
        if not any(one.history for one in trained):
            raise KeyboardInterrupt
    return trained


def _trained(
    members: Sequence[Member],
    config: TrainConfig,
    on_epoch: Callable[[int, Epoch], None] | None,
    stop: Event,
) -> list[Trained]:
    def run(index: int) -> Trained:
        def numbered(line: Epoch) -> None:
            if on_epoch is not None:
                on_epoch(index, line)

        one = members[index]
        rows = (one.training, one.validation)
        how: dict[str, Any] = {"ahead": one.ahead, "stop_after": one.stop_after}
        with one_thread():  # a thread of its own has a count of its own
            return train(one.architecture, *rows, config, one.seed, numbered, stop, **how)

    allocator.release()  # of whatever prepared the rows
    with one_thread():
        if config.engine == CUDA or (config.engine == "auto" and config.device != "cpu"):
            from varnn.network.engines.cuda import limits, training  # they import parts of this package

            refusal = limits.refusal(members, config)
            if refusal is None:
                return training.train_by_jobs(members, config, on_epoch, stop)
            if config.engine == CUDA:
                raise refusal
        if pick_device(config.device).type != "cpu":
            first = members[0]
            if batches_members(config.engine) and all(one.training is first.training for one in members):
                seeds = [one.seed for one in members]
                cell, rows = first.architecture, (first.training, first.validation)
                ends = [one.stop_after for one in members]
                return train_together(cell, *rows, config, seeds, on_epoch, stop, first.ahead, ends)
            return [run(index) for index in range(len(members))]
        if len(members) == 1:
            return [run(0)]
        with ThreadPoolExecutor(min(len(members), cores.usable())) as pool:
            futures = [pool.submit(run, index) for index in range(len(members))]
            try:
                return [future.result() for future in futures]
            except BaseException as error:
                stop.set()  # the others keep their best weights
                if isinstance(error, KeyboardInterrupt):
                    return [future.result() for future in futures]
                raise
