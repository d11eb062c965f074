"""What the figures should reach, as look-ups in the saved tables."""

from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.cost import command, fit, fleet, stream
from benchmarks.cost.compiled import COMPILED, NUMPY_ONLY
from benchmarks.record import Measured


@dataclass(frozen=True)
class Target:
    """A figure that was promised.

    Parameters
    ----------
    what
        In words.
    table, row, column
        Where the figure is found.
    least
        What it must reach; with ``below``, what it must not exceed.
    stretch
        What it would be good to reach.
    below
        Smaller is better.
    threads
        Threads of the run that is judged.
    """

    what: str
    table: str
    row: str
    column: str
    least: float
    stretch: float | None = None
    below: bool = False
    threads: int = 1

    def find(self, measured: Iterable[Measured], threads: int) -> float | None:
        """Figure of a run with so many threads; None where it was not measured."""
        for one in measured:
            if one.name == self.table and one.threads == threads:
                for row in one.rows:
                    figure = row.get(self.column)
                    if next(iter(row.values())) == self.row and isinstance(figure, int | float):
                        return float(figure)
        return None

    def verdict(self, figure: float | None) -> str:
        """Say whether a figure is enough.

        Examples
        --------
        >>> target = Target("speed", "train", "a", "time / b", least=3, stretch=5)
        >>> [target.verdict(figure) for figure in (2.9, 3.0, 6.0, None)]
        ['not met', 'met', 'met, stretch too', 'not measured']
        """
        if figure is None:
            return "not measured"
        if self._reaches(figure, self.stretch):
            return "met, stretch too"
        return "met" if self._reaches(figure, self.least) else "not met"

    def _reaches(self, figure: float, bound: float | None) -> bool:
        if bound is None:
            return False
        return figure <= bound if self.below else figure >= bound


_RM = "train RM"
_FUSED, _COMPILED = "time / varnn fused", "time / varnn compiled"

_OF_DEFAULT = (
    Target(
        "default: one streamed predict + observe with a 90 % interval, compiled, us",
        "stream-default",
        COMPILED,
        "best us",
        22,
        12,
        below=True,
    ),
    Target(
        "the same: p99 as a multiple of the median (stretch)",
        "stream-default",
        COMPILED,
        "p99 / median",
        3,
        below=True,
    ),
    Target("the same, NumPy only, us", "stream-default", NUMPY_ONLY, "best us", 75, 50, below=True),
    Target(
        "the same, compiled: river SNARIMAX takes so many times as long",
        "stream-default",
        stream.SNARIMAX,
        f"time / {COMPILED}",
        1,
        5,
    ),
    Target(
        "default: prediction with intervals, 100,000 rows of one series, compiled, us a row",
        "backtest",
        COMPILED,
        "best us a row",
        8,
        4,
        below=True,
    ),
    Target(
        "default: 10,000 series in step, with intervals, series-steps a second",
        "fleet",
        fleet.TOGETHER.format(COMPILED),
        "series-steps per s",
        100_000,
        300_000,
    ),
    Target(
        "`varnn stream`, default: lines a second",
        "stream-command",
        command.ONE,
        "lines a second",
        15_000,
        25_000,
    ),
    Target(
        "default: a fit at the Appliances set's size, two threads, as a share of before",
        "fit-default",
        fit.OURS,
        f"time / {fit.BEFORE}",
        1 / 2,
        1 / 3,
        below=True,
        threads=2,
    ),
)

_OF_NETWORK = (
    Target("RM: fused against Keras VARNN, fit()", _RM, "Keras VARNN, fit()", _FUSED, 3, 5),
    Target("RM: fused against Keras VARNN, bare step", _RM, "Keras VARNN, step", _FUSED, 3, 5),
    Target("RM: fused against torch LSTM", _RM, "torch nn.LSTM", _FUSED, 9, 15),
    Target("RM: fused against Keras LSTM, fit()", _RM, "Keras LSTM, fit()", _FUSED, 10, 18),
    Target("RM: fused against Keras LSTM, bare step", _RM, "Keras LSTM, step", _FUSED, 10, 18),
    Target("RM: compiled against Keras VARNN, fit()", _RM, "Keras VARNN, fit()", _COMPILED, 7, 12),
    Target("RM: compiled against Keras VARNN, bare step", _RM, "Keras VARNN, step", _COMPILED, 7, 12),
    Target(
        "ARM+AM step, window 24: fused against the reference engine",
        "train ARM+AM window 24",
        "varnn reference",
        _FUSED,
        2.5,
        4,
    ),
    Target(
        "ARM+AM step, window 24: fused, as a multiple of its matrix products alone (stretch)",
        "train ARM+AM window 24",
        "varnn fused",
        "time / matrix products alone",
        1.5,
        below=True,
    ),
    Target(
        "scoring, NumPy: against copied windows, time", "score", "copies, NumPy", "time / varnn NumPy", 4, 8
    ),
    Target(
        "scoring, compiled: against copied windows, time",
        "score",
        "copies, NumPy",
        "time / varnn compiled",
        4,
        8,
    ),
    Target(
        "scoring, NumPy: against copied windows, peak memory",
        "score",
        "copies, NumPy",
        "memory / varnn NumPy",
        4,
    ),
    Target(
        "scoring, compiled: against copied windows, peak memory",
        "score",
        "copies, NumPy",
        "memory / varnn compiled",
        4,
    ),
    Target(
        "streamed step: against river SNARIMAX", "stream", "river SNARIMAX(3, 0, 3)", "time / varnn Stream", 4
    ),
    Target("streamed step: microseconds (stretch)", "stream", "varnn Stream", "best us", 10, below=True),
    Target(
        "10,000 series: series-steps per second",
        "stream fleet",
        "one call for all",
        "series-steps per s",
        300_000,
        1_000_000,
    ),
    Target(
        "RM, 50 epochs at the Appliances set's size: seconds, fused",
        "train fit",
        "varnn fused",
        "best s",
        8,
        3,
        below=True,
    ),
    Target(
        "RM, 50 epochs at the Appliances set's size: seconds, compiled",
        "train fit",
        "varnn compiled",
        "best s",
        8,
        3,
        below=True,
    ),
    Target(
        "RM, Beijing size, window 5: MB of training beyond the data",
        "growth Beijing",
        "5",
        "fit MB",
        100 + 4 * 420_764 / 1e6,
        below=True,
    ),
    Target(
        "RM, Beijing size, window 48: MB of training beyond the data",
        "growth Beijing",
        "48",
        "fit MB",
        100 + 4 * 420_721 / 1e6,
        below=True,
    ),
)

TARGETS = (*_OF_DEFAULT, *_OF_NETWORK)

# Asked for once, and taken back when the floor was shown: what the matrix products alone take.
WITHDRAWN = (
    Target("RM: fused against the reference engine", _RM, "varnn reference", _FUSED, 3.5, 5),
    Target("RM: compiled against torch LSTM", _RM, "torch nn.LSTM", _COMPILED, 25, 40),
)

FLOORS = {  # as multiples of the matrix products alone
    "ARM+AM at window 24, fused": ("train ARM+AM window 24", "varnn fused"),
    "RM, fused": (_RM, "varnn fused"),
    "RM, compiled": (_RM, "varnn compiled"),
}
