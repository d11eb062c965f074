"""Settings of training, and the device it runs on."""

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
    """Settings of a training by Adam with early stopping; checked when they are made.

    Parameters
    ----------
    window : int, default 5
        Rows in a window.
    loss_rows : int, default 1
        Rows at the end of a window whose errors make the loss; the paper takes the last one.
    epochs : int, default 50
        Passes over the windows, at most.
    batch_size : int, default 128
        Windows in a step.
    learning_rate : float, default 3e-3
        Step size of Adam, at the start of the schedule.
    schedule : {"constant", "cosine"}, default "constant"
        Course of the learning rate; ``"cosine"`` anneals it to zero over the epochs, once, without restarts
        (Loshchilov and Hutter).
    patience : int or None, default 10
        Epochs without a better validation loss that end the training; None is never.
    gradient_clip : float or None, default None
        Longest norm of a gradient; longer ones are scaled down to it (Pascanu et al.).
    weight_ema : float, default 0.0
        Part of itself that the exponential moving average of the weights keeps with each step; the average
        is what is validated and kept, after the averaging of Polyak and Juditsky. 0 is no average.
    device : str, default "auto"
        Where to train: ``"auto"``, ``"cpu"`` or ``"cuda"``. ``"auto"`` is the GPU where one is there and
        its kernel handles the members (`varnn.network.engines.cuda`), else the CPU.
    engine : str, default "auto"
        How gradients are computed, one of `varnn.network.engines.registry.engine_names`. ``"cuda"`` is the
        kernel that trains whole members on a GPU, and an error where it cannot.

    References
    ----------
    I. Loshchilov and F. Hutter, "SGDR: stochastic gradient descent with warm restarts", ICLR 2017.
    R. Pascanu, T. Mikolov and Y. Bengio, "On the difficulty of training recurrent neural networks", ICML
    2013.
    B. T. Polyak and A. B. Juditsky, "Acceleration of stochastic approximation by averaging", SIAM Journal on
    Control and Optimization 30 (1992).

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
    """Device of a name, one that is there, for torch to compute on; ``"auto"`` is the CPU.

    Members that the GPU's own kernel handles never come here with ``"auto"``: it trains them.

    Parameters
    ----------
    name : str
        ``"auto"``, ``"cpu"``, ``"cuda"``, or another name that torch has.

    Examples
    --------
    >>> pick_device("cpu").type
    'cpu'
    """
    if name == "auto":
        # These products are so small that torch on a GPU spends its time starting them: an H200 took 2.5
        # times as long as the CPU beside it.
        return torch.device("cpu")
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
