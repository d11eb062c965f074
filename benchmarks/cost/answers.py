"""Saved tables -> what things cost, in users' words: what the page about performance answers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from benchmarks.cost import command, fit, fleet, forecast, stream
from benchmarks.cost.compiled import COMPILED, NUMPY_ONLY
from benchmarks.cost.house import APPLIANCES_ROWS
from benchmarks.record import Measured, markdown_table, shown, significant

_NOT_PEERS = (stream.PREDICTED, stream.REFIT, fit.BEFORE)  # parts of a line, or ourselves
_SERIES = 10_000
_UNITS = {1: "s", 1e-3: "ms", 1e-6: "µs"}
_COLUMNS = ("who", "takes", "times varnn's", "error", "interval")


class Answer(NamedTuple):
    """One question: what is done, what it takes, what that comes to, and a section that says more."""

    what: str
    takes: str
    comes_to: str
    section: str


class Tables:
    """Saved tables by name, and by how many threads each was measured with."""

    def __init__(self, measured: Sequence[Measured]) -> None:
        self.all = list(measured)

    def get(self, name: str, threads: int | None = None) -> Measured | None:
        """Find a table; of several runs that with the fewest threads, or with those asked for."""
        fitting = [one for one in self.all if one.name == name and threads in (None, one.threads)]
        return min(fitting, key=lambda one: one.threads, default=None)


def answers(measured: Sequence[Measured]) -> list[Answer]:
    """Answer what was measured, in the order in which people ask."""
    tables = Tables(measured)
    makers: Mapping[str, Callable[[Measured, Tables], Answer]] = {
        "stream-default": _step,
        "fit-default": _fit,
        "backtest": _million,
        "fleet": _fleet,
        "forecast": _forecast,
        "stream-command": _lines,
        "service-load rates": _served,
    }
    return [make(table, tables) for name, make in makers.items() if (table := tables.get(name)) is not None]


def in_time(seconds: float) -> str:
    """Write a time with a unit that suits it.

    Examples
    --------
    >>> in_time(27.3e-6), in_time(0.0029), in_time(0.41), in_time(47.7)
    ('27.3 µs', '2.9 ms', '410 ms', '47.7 s')
    """
    size = next((size for size in _UNITS if seconds >= size), 1e-6)
    return f"{shown(significant(seconds / size))} {_UNITS[size]}"


def figure(table: Measured, name: str, column: str) -> float:
    """Look a figure up; 0 where there is none."""
    (row,) = (row for row in table.rows if next(iter(row.values())) == name)
    return float(row[column] or 0)


def section(title: str, words: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a heading, some words and a table."""
    return f"### {title}\n\n{words}\n\n{markdown_table(columns, rows)}"


def _step(table: Measured, _: Tables) -> Answer:
    ours = _ours(table)
    median, p99 = (figure(table, ours, column) * 1e-6 for column in ("median us", "p99 us"))
    takes = f"{in_time(median)}; 99 % within {in_time(p99)}"
    if ours != NUMPY_ONLY:
        takes += f"; {in_time(figure(table, NUMPY_ONLY, 'median us') * 1e-6)} with NumPy alone"
    words = (
        "`predict(x, interval=0.9)` and then `observe(y)`, from the rows of one series as they come. Whoever "
        "learns with each row pays for that in the step; LightGBM pays once a day, and gives no interval."
    )
    rows = _peers(table, ours, "best us", 1e-6)
    return Answer(
        f"**One step** of a stream, with a 90 % interval ({_threads(table)})",
        takes,
        f"{_rate(1 / median)} rows a second",
        section("One step", words, _COLUMNS, rows),
    )


def _fit(table: Measured, _: Tables) -> Answer:
    seconds, memory = (figure(table, fit.OURS, column) for column in ("best s", "peak MB"))
    rows_fitted = f"{fit.TRAINED * APPLIANCES_ROWS:,.0f}"
    words = (
        f"`VARNNRegressor().fit(panel)` on {rows_fitted} rows of 26 inputs: linear part, four networks, "
        "experts and intervals, with what is chosen chosen on the last fifth. Boosting alone is much faster; "
        "whose error is smaller on your rows, `varnn compare` says."
    )
    return Answer(
        f"**A fit** of {rows_fitted} rows of 26 inputs ({_threads(table)})",
        f"{in_time(seconds)}, {shown(memory)} MB of memory beyond the rows",
        f"{_rate(fit.TRAINED * APPLIANCES_ROWS / seconds)} rows a second",
        section("A fit", words, _COLUMNS, _peers(table, fit.OURS, "best s")),
    )


def _million(table: Measured, _: Tables) -> Answer:
    ours = _ours(table)
    row = figure(table, ours, "best us a row") * 1e-6
    takes = in_time(row * 1e6)
    if ours != NUMPY_ONLY:
        takes += f"; {in_time(figure(table, NUMPY_ONLY, 'best us a row'))} with NumPy alone"
    words = (
        "`model.predict(panel, interval=0.9)` over rows with labels, each predicted from those before it: a "
        "backtest, or a day's file. Measured on 100,000 rows of one series, and ten times that here: each "
        "row costs the same."
    )
    rows = _peers(table, ours, "best us a row")
    return Answer(
        f"**A million rows** predicted with 90 % intervals ({_threads(table)})",
        takes,
        f"{_rate(1 / row)} rows a second",
        section("A million rows", words, ("who", "a million rows", *_COLUMNS[2:]), rows),
    )


def _fleet(table: Measured, tables: Tables) -> Answer:
    ours = fleet.TOGETHER.format(COMPILED)
    if ours not in _names(table):
        ours = fleet.TOGETHER.format(NUMPY_ONLY)
    seconds = _SERIES / figure(table, ours, "series-steps per s")
    takes = in_time(seconds)
    two = tables.get("fleet", 2)
    if two is not None:
        takes += f"; {in_time(_SERIES / figure(two, ours, 'series-steps per s'))} with two threads"
    memory = figure(table, ours, "kB per series")
    words = (
        "`model.stream(n_series=10_000)` takes a row of every series in one call, which is many times as "
        "fast as a stream for each, and gives the same."
    )
    rows = [
        [name, in_time(_SERIES / figure(table, name, "series-steps per s")), str(row["interval"])]
        for row in table.rows
        for name in [str(next(iter(row.values())))]
    ]
    return Answer(
        f"**A step of 10,000 series**, with intervals ({_threads(table)})",
        takes,
        f"{shown(significant(memory * _SERIES / 1e3))} MB for all of them",
        section("Ten thousand series", words, ("who", "10,000 series", "interval"), rows),
    )


def _forecast(table: Measured, _: Tables) -> Answer:
    ours = _ours(table)
    seconds = figure(table, ours, "best us") * 1e-6
    together = next(name for name in _names(table) if name.startswith(f"{ours}, "))
    words = (
        f"`live.forecast({forecast.HORIZON}, interval=0.9)` of a running stream, whose model was fitted with "
        f"`horizon={forecast.HORIZON}`. It goes once more over the rows that the stream keeps, here a week "
        "of them, so it takes far longer than a step. The forecast of a linear model is cheaper by far."
    )
    rows = [
        [name, in_time(figure(table, name, "best us") * 1e-6), str(row["bands"])]
        for row in table.rows
        for name in [str(next(iter(row.values())))]
    ]
    return Answer(
        f"**A forecast** of {forecast.HORIZON} rows with 90 % bands ({_threads(table)})",
        in_time(seconds),
        f"{in_time(figure(table, together, 'best us') * 1e-6)} a series, asked for many at once",
        section("A forecast", words, ("who", "a series", "bands"), rows),
    )


def _lines(table: Measured, _: Tables) -> Answer:
    words = (
        "`varnn stream` reads JSON lines with inputs by name, label and time, and answers each with a "
        "prediction, its interval and the error. `--state` has every answer on disk before it is sent."
    )
    rows = [
        [name, in_time(figure(table, name, "us a line") * 1e-6), shown(figure(table, name, "lines a second"))]
        for name in _names(table)
    ]
    return Answer(
        f"**A line** of `varnn stream`, in and out ({_threads(table)})",
        in_time(figure(table, command.ONE, "us a line") * 1e-6),
        f"{shown(figure(table, command.ONE, 'lines a second'))} lines a second",
        section("A line of the command", words, ("what", "a line", "lines a second"), rows),
    )


def _served(table: Measured, tables: Tables) -> Answer:
    default = [row for row in table.rows if row["model"] == "default"]
    best = max(default, key=lambda row: float(row["observations a second, best"] or 0))
    rows = [
        [str(row["a batch"]), in_time(float(row["us an observation, best"] or 0) * 1e-6), "a request of 100"]
        for row in default
    ]
    late = tables.get("service-load latencies")
    for row in [] if late is None else late.rows:
        if row["model"] == "default":
            waits = f"{shown(row['p50 ms'])} ms; 99 % within {shown(row['p99 ms'])} ms"
            rows.append([f"one step, clients: {row['clients']}", waits, "from when it was due"])
    many = tables.get("service-load many")
    held = next((row for row in many.rows if row["model"] == "default"), None) if many is not None else None
    words = (
        "`varnn serve` over HTTP, the answer on disk before it is sent, the client on a core of its own. "
        "Many rows in a request are the way to be fast."
    )
    if held is not None:
        words += (
            f" It held {shown(held['series'])} series in {shown(held['MB in memory'])} MB, and took "
            f"{shown(held['observations a second'])} observations a second of them."
        )
    return Answer(
        f"**A served observation**, durable, 100 in a request ({_threads(table)})",
        in_time(float(best["us an observation, best"] or 0) * 1e-6),
        f"{shown(best['observations a second, best'])} a second",
        section("A served observation", words, ("what", "takes", "measured"), rows),
    )


def _peers(table: Measured, ours: str, column: str, size: float = 1.0) -> list[list[str]]:
    """One line for ourselves and each peer: time, ratio, error, and whether it gives intervals."""
    rows = []
    for row in table.rows:
        name = str(next(iter(row.values())))
        if name not in _NOT_PEERS:
            takes, ratio = in_time(float(row[column] or 0) * size), shown(row[f"time / {ours}"])
            rows.append([name, takes, ratio, shown(row["error"]), str(row["interval"])])
    return rows


def _ours(table: Measured) -> str:
    return COMPILED if COMPILED in _names(table) else NUMPY_ONLY


def _names(table: Measured) -> list[str]:
    return [str(next(iter(row.values()))) for row in table.rows]


def _rate(per_second: float) -> str:
    return shown(significant(per_second))


def _threads(table: Measured) -> str:
    return "one thread" if table.threads == 1 else f"{table.threads} threads"
