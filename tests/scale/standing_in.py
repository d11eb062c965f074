"""What stands in for a GPU: jobs as plain data that cross a socket, trained on the CPU."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from varnn.errors import TrainingError
from varnn.network.training import Member, TrainConfig, Trained, train_members
from varnn.scale._trainings import Refused

SEED_THAT_FAILS, SEED_THAT_IS_REFUSED, SEED_THAT_KILLS = 13, 17, 19
ONCE = "VARNN_TEST_KILLED"  # variable of the environment: a file that says that it was done


@dataclass(frozen=True)
class StandInJob:
    """A member and how to train it."""

    member: Member
    config: TrainConfig
    process: int  # that made it

    @classmethod
    def of(cls, member: Member, config: TrainConfig) -> "StandInJob":
        if member.seed == SEED_THAT_KILLS and not Path(os.environ[ONCE]).exists():
            Path(os.environ[ONCE]).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return cls(member, config, os.getpid())

    def trained(self, result: Trained) -> Trained:
        return result


def train(jobs: list[StandInJob], stop: Event) -> list[Trained]:
    """Train jobs in the process that owns the GPU, which is not the one that made them."""
    seeds = {job.member.seed for job in jobs}
    if SEED_THAT_FAILS in seeds:
        raise TrainingError("the loss must stay finite; this one did not.")
    if SEED_THAT_IS_REFUSED in seeds:
        raise Refused("a cell that is not known")
    return train_members([job.member for job in jobs], jobs[0].config)
