"""Which engine trains a cell: the fastest that can, unless one is asked for by name."""

from importlib.util import find_spec
from typing import Literal, get_args

from torch import Tensor

from varnn.errors import ConfigError, check_choice, require
from varnn.network.cell import Architecture
from varnn.network.engines._compilable import supports
from varnn.network.engines.adam import FlatAdam
from varnn.network.engines.engine import Engine
from varnn.network.engines.fused import FusedEngine
from varnn.network.engines.reference import ReferenceEngine

EngineName = Literal["auto", "reference", "fused", "compiled"]


def make_engine(
    name: EngineName,
    architecture: Architecture,
    inputs: Tensor,
    target: Tensor,
    window: int,
    loss_rows: int = 1,
    ahead: Tensor | None = None,
) -> Engine:
    """Make the engine of a name.

    Parameters
    ----------
    name
        ``"reference"`` is the readable one, ``"fused"`` runs any cell anywhere, ``"compiled"`` runs
        RM on the CPU and needs numba. ``"auto"`` is ``"compiled"`` where that can run, else ``"fused"``.
    architecture
        The cell.
    inputs, target
        All rows, (N, D) and (N,), scaled, on the device to compute on.
    window, loss_rows
        Rows in a window, and how many of the last ones make the loss; ``"compiled"`` grades one.
    ahead
        Targets of the rows after each row, (N, H - 1), for a cell that looks ahead: ``"fused"`` learns
        from them where there is activation memory, ``"reference"`` always.

    Examples
    --------
    >>> import torch
    >>> cell = Architecture.of("ARM", n_inputs=2)
    >>> type(make_engine("auto", cell, torch.zeros(9, 2), torch.zeros(9), window=3)).__name__
    'FusedEngine'
    """
    check_choice("engine", name, get_args(EngineName))
    if name == "reference" or (ahead is not None and not architecture.activation_memory):
        return ReferenceEngine(architecture, inputs, target, window, loss_rows, ahead)
    if name == "fused" or (name == "auto" and not (loss_rows == 1 and _can_compile(architecture, inputs))):
        return FusedEngine(architecture, inputs, target, window, loss_rows, ahead)
    if loss_rows > 1:
        raise ConfigError(
            f"engine='compiled' grades the last row only; got loss_rows={loss_rows}. Use 'auto'."
        )
    require("numba", extra="fast", purpose="engine='compiled'")
    from varnn.network.engines.compiled import CompiledEngine

    return CompiledEngine(architecture, inputs, target, window)


def make_adam(engine: Engine, flat: Tensor, learning_rate: float) -> FlatAdam:
    """Make the optimiser of the weights ``flat`` that is fastest beside an engine.

    Examples
    --------
    >>> import torch
    >>> cell = Architecture.of("ARM", n_inputs=2)
    >>> engine = make_engine("auto", cell, torch.zeros(9, 2), torch.zeros(9), window=3)
    >>> make_adam(engine, torch.zeros(4), learning_rate=0.01).learning_rate
    0.01
    """
    if isinstance(engine, ReferenceEngine | FusedEngine):
        return FlatAdam(flat, learning_rate)
    from varnn.network.engines.compiled import CompiledAdam

    return CompiledAdam(flat, learning_rate)


def _can_compile(architecture: Architecture, inputs: Tensor) -> bool:
    return inputs.device.type == "cpu" and supports(architecture) and find_spec("numba") is not None
