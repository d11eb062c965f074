"""Saved tables -> what the default costs, in users' words: the first table of the page about performance."""

from collections.abc import Sequence

from benchmarks.cost import command, fit, fleet, stream
from benchmarks.cost.compiled import COMPILED, NUMPY_ONLY
from benchmarks.cost.house import APPLIANCES_ROWS
from benchmarks.record import Measured, shown, significant

_NOT_PEERS = (stream.PREDICTED, stream.REFIT, fit.BEFORE)  # parts of a line, or ourselves


def summary(measured: Sequence[Measured]) -> list[list[str]]:
    """Rows of what, what it takes, and what others take; those that were measured.

    Of several runs of a bench that with the fewest threads counts.
    """
    tables: dict[str, Measured] = {}
    for one in sorted(measured, key=lambda one: one.threads):
        tables.setdefault(one.name, one)
    makers = {
        "stream-default": _step,
        "backtest": _million,
        "fleet": _series,
        "stream-command": _lines,
        "fit-default": _fit,
    }
    return [make(tables[name]) for name, make in makers.items() if name in tables]


def _step(table: Measured) -> list[str]:
    ours = _ours(table)
    takes = f"{_shown(table, ours, 'median us')} us (99 % within {_shown(table, ours, 'p99 us')} us)"
    if ours != NUMPY_ONLY:
        takes += f"; {_shown(table, NUMPY_ONLY, 'median us')} us with NumPy alone"
    return [
        f"a streamed step: predict with a 90 % interval, observe ({_threads(table)})",
        takes,
        _times(table, ours),
    ]


def _million(table: Measured) -> list[str]:
    ours = _ours(table)
    row = _figure(table, ours, "best us a row")
    takes = f"{shown(significant(row))} s, at {shown(row)} us a row"
    if ours != NUMPY_ONLY:
        takes += f"; {_shown(table, NUMPY_ONLY, 'best us a row')} us with NumPy alone"
    return [f"a million rows predicted with 90 % intervals ({_threads(table)})", takes, _times(table, ours)]


def _series(table: Measured) -> list[str]:
    ours = fleet.TOGETHER.format(COMPILED)
    if ours not in _names(table):
        ours = fleet.TOGETHER.format(NUMPY_ONLY)
    rate = _figure(table, ours, "series-steps per s")
    takes = (
        f"{shown(significant(10_000 / rate))} s, {_shown(table, ours, 'kB per series')} kB of memory a series"
    )
    others = [
        f"{name}: {shown(significant(rate / _figure(table, name, 'series-steps per s')))} times that"
        for name in (fleet.ONNX, fleet.SNARIMAX)
        if name in _names(table)
    ]
    return [f"a step of 10,000 series, with intervals ({_threads(table)})", takes, "; ".join(others)]


def _lines(table: Measured) -> list[str]:
    us, rate = (_shown(table, command.ONE, column) for column in ("us a line", "lines a second"))
    takes = f"{us} us: {rate} a second"
    others = [
        f"{name}: {_shown(table, name, 'lines a second')} a second"
        for name in _names(table)
        if name != command.ONE
    ]
    return [f"a line of `varnn stream` in and out ({_threads(table)})", takes, "; ".join(others)]


def _fit(table: Measured) -> list[str]:
    takes = f"{_shown(table, fit.OURS, 'best s')} s"
    if fit.BEFORE in _names(table):
        share = _shown(table, fit.OURS, f"time / {fit.BEFORE}")
        takes += f", {share} of what the code before took"
    what = f"a fit of {fit.TRAINED * APPLIANCES_ROWS:,.0f} rows of 26 inputs ({_threads(table)})"
    return [what, takes, _times(table, fit.OURS)]


def _times(table: Measured, ours: str) -> str:
    """Say how many times as long each peer takes."""
    return "; ".join(
        f"{name}: {_shown(table, name, f'time / {ours}')} times that"
        for name in _names(table)
        if name not in (*_NOT_PEERS, COMPILED, NUMPY_ONLY, fit.OURS)
    )


def _ours(table: Measured) -> str:
    return COMPILED if COMPILED in _names(table) else NUMPY_ONLY


def _names(table: Measured) -> list[str]:
    return [str(next(iter(row.values()))) for row in table.rows]


def _figure(table: Measured, name: str, column: str) -> float:
    (row,) = (row for row in table.rows if next(iter(row.values())) == name)
    return float(row[column] or 0)


def _shown(table: Measured, name: str, column: str) -> str:
    return shown(_figure(table, name, column))


def _threads(table: Measured) -> str:
    return "one thread" if table.threads == 1 else f"{table.threads} threads"
