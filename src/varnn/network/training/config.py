"""How to train, and on what device."""

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import torch

from varnn.errors import ConfigError, check_choice
from varnn.network.engines.registry import engine_names

Schedule = Literal["constant", "cosine"]


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """How to train; checked when it is made.

    Examples
    --------
    >>> TrainConfig(learning_rate=-1.0)
    Traceback (most recent call last):
    ...
    varnn.errors.ConfigError: learning_rate must be above 0; got -1.0.
    """

    window: int = 5
    loss_rows: int = 1
    epochs: int = 50
    batch_size: int = 128
    learning_rate: float = 3e-3
    schedule: Schedule = "constant"
    patience: int | None = 10
    gradient_clip: float | None = None
    weight_ema: float = 0.0
    device: str = "auto"
    engine: str = "auto"

    def __post_init__(self) -> None:
        for name in ("window", "loss_rows", "epochs", "batch_size", "patience"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int | np.integer) or value < 1):
                raise ConfigError(f"{name} must be a whole number, at least 1; got {value!r}.")
        for name in ("learning_rate", "gradient_clip"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise ConfigError(f"{name} must be above 0; got {value}.")
        if not 0 <= self.weight_ema < 1:
            raise ConfigError(f"weight_ema must be at least 0 and below 1; got {self.weight_ema}.")
        if self.loss_rows > self.window:
            raise ConfigError(f"loss_rows must be at most window = {self.window}; got {self.loss_rows}.")
        check_choice("schedule", self.schedule, get_args(Schedule))
        check_choice("engine", self.engine, engine_names())


def pick_device(name: str) -> torch.device:
    """Turn ``"auto"``, ``"cpu"`` or ``"cuda"`` into a device that is there.

    Examples
    --------
    >>> pick_device("cpu").type
    'cpu'
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"device must be 'auto', 'cpu' or 'cuda'; got {name!r}.") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError(f"device={name!r} asks for a GPU, and none is usable here. Use 'auto'.")
    return device


def put_on(device: torch.device, array: npt.NDArray[Any]) -> torch.Tensor:
    """Bring an array to a device; on the CPU it is shared, not copied, and nothing here writes to it."""
    return torch.from_numpy(np.ascontiguousarray(array)).to(device)
