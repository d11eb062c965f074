"""``python -m benchmarks stream-default``, ``fit-default`` and the like: the default beside other choices."""

from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.commands.options import Json
from benchmarks.commands.running import Rounds, Threads, run_all, thread_counts


def stream_default(rounds: Rounds = 9, threads: Threads = "1", json_path: Json = None) -> None:
    """Time a step with its interval against river and LightGBM refitted daily."""
    _measure("stream-default", rounds, threads, json_path)


def stream_command(
    rounds: Rounds = 3,
    threads: Threads = "1",
    lines: Annotated[int, typer.Option(help="Lines sent in a round.", min=1)] = 10_000,
    json_path: Json = None,
) -> None:
    """Time lines a second of `varnn stream`, with a state file and without."""
    _measure("stream-command", rounds, threads, json_path, lines=lines)


def fleet(
    rounds: Rounds = 3,
    threads: Threads = "1",
    series: Annotated[int, typer.Option(help="Series in step.", min=20)] = 10_000,
    json_path: Json = None,
) -> None:
    """Time ten thousand series in step, and take what each holds in memory."""
    _measure("fleet", rounds, threads, json_path, n_series=series)


def backtest(
    rounds: Rounds = 3,
    threads: Threads = "1",
    rows: Annotated[int, typer.Option(help="Rows to predict.", min=100)] = 100_000,
    json_path: Json = None,
) -> None:
    """Time one-step predictions of many rows against LightGBM, SARIMAX, an LSTM and neuralforecast."""
    _measure("backtest", rounds, threads, json_path, rows=rows)


def forecast(
    rounds: Rounds = 9,
    threads: Threads = "1",
    series: Annotated[int, typer.Option(help="Series asked in one call.", min=1)] = 100,
    json_path: Json = None,
) -> None:
    """Time forecasts of a running stream, with bands, against SARIMAX and river."""
    _measure("forecast", rounds, threads, json_path, series=series)


def fit_default(
    rounds: Rounds = 1,
    threads: Threads = "2",
    data: Annotated[str, typer.Option(help="Rows: made, or appliances.")] = "made",
    before: Annotated[
        Path | None, typer.Option(help="Checkout of earlier code whose default is fitted, too.")
    ] = None,
    json_path: Json = None,
) -> None:
    """Time a fit at the size of the Appliances set against the same."""
    from benchmarks.cost.fit import APPLIANCES, MADE, check_checkout
    from varnn.errors import check_choice

    check_choice("--data", data, (MADE, APPLIANCES))
    check_checkout(before)
    earlier = None if before is None else str(before.resolve())
    _measure("fit-default", rounds, threads, json_path, data=data, before=earlier)


def growth_default(threads: Threads = "2", json_path: Json = None) -> None:
    """See how fit, batch and stream of the default grow with rows, inputs, members and series."""
    _measure("growth-default", 1, threads, json_path)


def _measure(bench: str, rounds: int, threads: str, json_path: Path | None, **changes: Any) -> None:
    from benchmarks.speed.plan import plan

    run_all(list(plan(bench, threads=thread_counts(threads), rounds=rounds, **changes)), json_path)
