"""What the kernel handles of members, of their settings and of machines; what it does not, in words."""

import logging
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import torch

from varnn.errors import ConfigError
from varnn.network.engines._workspace import count_weights
from varnn.network.engines.cuda._kernels import OLDEST, kernel_for
from varnn.network.engines.cuda._layout import Shape
from varnn.network.engines.cuda._nvrtc import UnavailableError
from varnn.network.engines.registry import CUDA
from varnn.network.handled import ANY, HandledCells
from varnn.network.training.config import TrainConfig, pick_device
from varnn.network.training.record import Member
from varnn.network.training.validation import validation_ends

logger = logging.getLogger(__name__)

CELLS = HandledCells(
    {
        "n_inputs": ANY,
        "hidden_size": ANY,
        "memory_size": ANY,
        "accumulate": (False, True),
        "activation_memory": (False, True),
        "residual": ("projected",),
        "memory_activation": ("relu", "tanh"),
        "horizon": (1,),
    }
)
MOST_WEIGHTS = 2**15  # they and their gradient are in the 2**16 registers of a multiprocessor
MOST_OF_MEMORY = 0.7  # of a GPU's, for rows and windows: the rest is others'
_MOST_NUMBERS = 2**31 - 1  # windows are told by 32 bits
_COMPILERS = 4  # at a time


def refusal(members: Sequence[Member], config: TrainConfig) -> ConfigError | None:
    """Explain, as an error to raise, why members cannot be trained by the kernel here; None where they can.

    Examples
    --------
    >>> import numpy as np
    >>> from varnn.data.panel import Panel
    >>> from varnn.network.cell import Architecture
    >>> rows = Panel.from_arrays(np.zeros((9, 2)), np.arange(9.0))
    >>> member = Member(Architecture.of("RM", n_inputs=2, residual="none"), rows, None, seed=1)
    >>> print(refusal([member], TrainConfig(window=3, device="cpu")))
    engine='cuda' does not handle residual='none' (only 'projected'), device='cpu' (only 'auto' or 'cuda').
    Use Details(engine='auto'), which trains on the CPU what the GPU cannot.
    """
    found = reasons(members, config)
    if not found:
        return None
    logger.debug("the kernel of the GPU does not handle %s", ", ".join(found))
    return ConfigError(
        f"engine={CUDA!r} does not handle {', '.join(found)}. "
        "Use Details(engine='auto'), which trains on the CPU what the GPU cannot."
    )


def handles(member: Member, config: TrainConfig) -> bool:
    """Tell whether a member can be trained by the kernel here."""
    return not reasons([member], config)


def reasons(members: Sequence[Member], config: TrainConfig) -> list[str]:
    """List what of members, of settings or of this machine the kernel does not handle, in words."""
    found = [reason for member in members for reason in unhandled(member, config)]
    gpu = gpu_of(config)
    if isinstance(gpu, str):
        found.append(gpu)
    else:
        found += [reason for member in members for reason in _too_large(member, config, gpu)]
        if not found:  # compiling comes last: it takes a while
            found += _not_compiled({Shape.of(one.architecture, config) for one in members}, config, gpu)
    return list(dict.fromkeys(found))


def unhandled(member: Member, config: TrainConfig) -> list[str]:
    """List what the kernel does not handle of a member on whatever GPU; none is asked.

    Examples
    --------
    >>> import numpy as np
    >>> from varnn.data.panel import Panel
    >>> from varnn.network.cell import Architecture
    >>> rows = Panel.from_arrays(np.zeros((9, 2)), np.arange(9.0))
    >>> member = Member(Architecture.of("RM", n_inputs=2, hidden_size=8), rows, None, seed=1)
    >>> unhandled(member, TrainConfig(window=3))
    []
    """
    found = CELLS.unhandled(member.architecture)
    weights = count_weights(member.architecture)
    if weights > MOST_WEIGHTS:
        found.append(f"{weights:,} weights (only up to {MOST_WEIGHTS:,})")
    if member.ahead is not None:
        found.append("targets ahead (only the next row)")
    if any(one is not None and one.weights is not None for one in (member.training, member.validation)):
        found.append("weights of rows")
    if member.validation is not None and len(validation_ends(member.validation, config)) == 0:
        found.append(f"validation rows too few for a window of {config.window}")
    windows = _windows(member, config)
    if max(windows, len(member.training), len(member.validation or ())) > _MOST_NUMBERS:
        found.append(f"{windows:,} windows in all epochs (only up to {_MOST_NUMBERS:,})")
    numbers = max(len(member.training), len(member.validation or ())) * member.training.n_inputs
    if numbers > _MOST_NUMBERS:  # which the kernel counts by 32 bits, too
        found.append(f"{numbers:,} numbers in rows (only up to {_MOST_NUMBERS:,})")
    return found


def gpu_of(config: TrainConfig) -> int | str:
    """Number of the GPU to train on, or why there is none."""
    if config.device != "auto":
        device = pick_device(config.device)  # refuses a name that is none, and a GPU that is not there
        if device.type != "cuda":
            return f"device={config.device!r} (only 'auto' or 'cuda')"
    elif not _is_there():
        return "this machine (no GPU is usable here, or torch was built without CUDA)"
    else:
        device = torch.device("cuda")
    try:
        given: int | None = device.index
        number = torch.cuda.current_device() if given is None else given
        capability = torch.cuda.get_device_capability(number)
    except (RuntimeError, AssertionError) as error:  # as in a process that was forked from one that used it
        return f"this process ({str(error).splitlines()[0].rstrip('.')})"
    if capability < OLDEST:
        have, need = (".".join(map(str, one)) for one in (capability, OLDEST))
        return f"a GPU of compute capability {have} (only {need} or above)"
    return number


@cache
def _is_there() -> bool:
    with warnings.catch_warnings():  # torch for CUDA may warn where there is no driver: nobody asked for one
        warnings.simplefilter("ignore")
        return torch.cuda.is_available()


def _windows(member: Member, config: TrainConfig) -> int:
    """About as many windows as there are in all epochs, rather more."""
    epochs = min(member.stop_after or config.epochs, config.epochs)
    return int(epochs) * (len(member.training) // config.loss_rows + member.training.n_series)


def _too_large(member: Member, config: TrainConfig, gpu: int) -> list[str]:
    panels = [one for one in (member.training, member.validation) if one is not None]
    needed = 4 * _windows(member, config) + sum(4 * len(one) * (one.n_inputs + 1) for one in panels)
    most = int(MOST_OF_MEMORY * torch.cuda.get_device_properties(gpu).total_memory)
    return [f"{needed:,} bytes of rows and windows (the GPU has room for {most:,})"] if needed > most else []


def _not_compiled(shapes: set[Shape], config: TrainConfig, gpu: int) -> list[str]:
    def reason(shape: Shape) -> list[str]:
        try:
            kernel_for(shape, config.batch_size, gpu)
        except UnavailableError as error:
            return [f"this shape ({error})"]
        return []

    with ThreadPoolExecutor(_COMPILERS) as pool:  # a compiler takes seconds, and one core
        return [one for found in pool.map(reason, shapes) for one in found]
