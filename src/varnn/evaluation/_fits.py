"""Fits that a comparison or a backtest is made of: one after the other here, or as jobs of other processes.

Each is a job of its own: what it needs is cut out of the rows where it runs, and what it gives is put
together in the order of the jobs, so that results are the same wherever they come from.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, TypeVar

from varnn import jobs
from varnn.data.panel import Panel
from varnn.errors import ConfigError
from varnn.evaluation.protocols import Parts, ProtocolName, cut, matched, rolling_cut

Job = TypeVar("Job")
Shared = TypeVar("Shared")
Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class Cuts:
    """Where a panel is cut; made origin by origin, so that one panel is all that is sent.

    Parameters
    ----------
    panel : Panel
        The rows.
    protocol : {"honest", "paper"}
        Whose cut it is, where there is one.
    origins : int
        How many cuts there are.
    parts : Parts or None, default None
        A cut of the user's own, instead.
    """

    panel: Panel
    protocol: ProtocolName
    origins: int
    parts: Parts | None = None
    made: dict[int, Parts] = field(default_factory=dict, init=False)

    def at(self, origin: int) -> Parts:
        """Cut the rows at one of the origins."""
        if origin not in self.made:
            self.made[origin] = self._made_at(origin)
        return self.made[origin]

    def _made_at(self, origin: int) -> Parts:
        if self.parts is not None:
            return matched(self.parts)
        if self.origins == 1:
            return cut(self.panel, self.protocol)
        return rolling_cut(self.panel, self.origins, origin)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be made again: twenty cuts are twenty times the rows."""
        panel = self.panel if self.parts is None else self.panel.latest(0)
        return vars(self) | {"made": {}, "panel": panel}


def results(
    function: Callable[[Job, Shared], Result],
    listed: Sequence[Job],
    shared: Shared,
    *,
    workers: int | None,
    cluster: str | None,
) -> Iterator[tuple[int, Result]]:
    """Give the place and the result of each job as it comes; the error of one is raised.

    Without `workers` and `cluster` that is one after the other in this process, each on all cores.
    """
    if not is_parallel(workers, cluster):
        for place, one in enumerate(listed):
            yield place, function(one, shared)
        return
    with closing(
        jobs.run(function, listed, shared=shared, workers=workers, cluster=cluster, isolated=True)
    ) as outcomes:
        for done in outcomes:
            yield done.index, done.value()


def is_parallel(workers: int | None, cluster: str | None) -> bool:
    """Tell whether jobs run in other processes."""
    return cluster is not None or (workers is not None and workers != 1)


def refuse_epochs(on_epoch: Callable[..., Any] | None, workers: int | None, cluster: str | None) -> None:
    """Say that epochs of other processes are not told."""
    if on_epoch is not None and is_parallel(workers, cluster):
        raise ConfigError(
            "on_epoch is called by fits of this process; got it with "
            f"workers={workers!r}, cluster={cluster!r}, which fit in others. Leave on_epoch out: each fit is "
            "told when it is done."
        )
