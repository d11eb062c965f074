"""Which engine trains a cell: the fastest that can, unless one is asked for by name."""

from varnn.errors import ConfigError, check_choice
from varnn.network.engines.compiled import CompiledEngine
from varnn.network.engines.engine import Engine, Task
from varnn.network.engines.fused import FusedEngine
from varnn.network.engines.reference import ReferenceEngine
from varnn.network.engines.unrolled import UnrolledEngine

# The fastest first; "auto" is the first that handles a task, and the last one handles all of them.
ENGINES: tuple[type[Engine], ...] = (
    CompiledEngine,
    UnrolledEngine,
    FusedEngine,
    ReferenceEngine,
)

CUDA = "cuda"  # no engine: it trains whole members on a GPU (`varnn.network.engines.cuda`), batches and all


def engine_names() -> list[str]:
    """Names to ask for an engine by.

    Examples
    --------
    >>> names = engine_names()
    >>> names[0], names[-1]
    ('auto', 'reference')
    """
    return ["auto", CUDA, *(engine.name for engine in ENGINES)]


def make_engine(name: str, task: Task) -> Engine:
    """Engine of a name for a task.

    Parameters
    ----------
    name : str
        ``"auto"``, or one of `engine_names`; an engine that is asked for by name and does not handle the
        task raises an error that says what it does not handle. ``"cuda"``, which trains whole members, is
        none.
    task : Task
        What to compute.

    Examples
    --------
    >>> import torch
    >>> from varnn.network.cell import Architecture
    >>> task = Task(Architecture.of("ARM", n_inputs=2), torch.zeros(9, 2), torch.zeros(9), window=3)
    >>> make_engine("auto", task).name
    'fused'
    """
    check_choice("engine", name, engine_names())
    if name == CUDA:
        raise ConfigError(
            f"engine={CUDA!r} trains whole members on a GPU, and was asked for the loss of single batches. "
            "Train with `train_members`, or use engine='auto'."
        )
    return next(
        engine(task)
        for engine in ENGINES
        if name == engine.name or (name == "auto" and engine.refusal(task) is None)
    )


def batches_members(name: str) -> bool:
    """Tell whether an engine of this name trains several networks in every step.

    Examples
    --------
    >>> batches_members("auto"), batches_members("fused")
    (True, False)
    """
    return any(engine.batches_members for engine in ENGINES if name in ("auto", engine.name))
