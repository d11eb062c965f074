"""Scaled panels -> trained weights.

``config`` says how; ``members`` trains several networks side by side, ``loop`` one, or several in every
step: epochs, Adam, schedules, and what ``record`` says of when to stop and what to keep; ``validation`` is
the error on validation rows. Everything a member learns from is drawn from its seed, so one seed on one
machine gives one result.
"""

from varnn.network.training.config import Schedule, TrainConfig, pick_device
from varnn.network.training.loop import train, train_together
from varnn.network.training.members import Trainer, train_members
from varnn.network.training.record import Ahead, Epoch, Member, Trained
from varnn.network.training.stopping import OwnEvent
from varnn.network.training.threads import one_thread
from varnn.network.training.validation import error_on_rows

__all__ = [
    "Ahead",
    "Epoch",
    "Member",
    "OwnEvent",
    "Schedule",
    "TrainConfig",
    "Trained",
    "Trainer",
    "error_on_rows",
    "one_thread",
    "pick_device",
    "train",
    "train_members",
    "train_together",
]
