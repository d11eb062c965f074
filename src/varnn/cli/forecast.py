"""``varnn forecast``: a table in, its next rows out; or how such forecasts would have done."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from varnn.cli._options import (
    Cluster,
    Data,
    DuplicatesOption,
    Inputs,
    Json,
    Levels,
    Missing,
    Output,
    Page,
    Parallel,
    Series,
    Sort,
    Time,
    TimeFormat,
    TimeZone,
    listed,
    reading,
)

if TYPE_CHECKING:
    from varnn.data.panel import Panel
    from varnn.evaluation.backtesting import Backtest

_HORIZON = 24
_TARGETS = 4_500_000  # rows times steps that are looked at in a backtest: the latest


def forecast(
    data: Data,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            help="Column to forecast; that of --model, or y of a table with ds and y, if not given.",
        ),
    ] = None,
    output: Output = Path("-"),
    horizon: Annotated[
        int | None, typer.Option(help="Rows ahead; that of the model, or 24, if not given.", min=1)
    ] = None,
    model_path: Annotated[
        Path | None,
        typer.Option("--model", help="Model written by varnn fit --horizon; one is fitted if not given."),
    ] = None,
    time: Time = None,
    series: Series = None,
    inputs: Inputs = None,
    time_format: TimeFormat = None,
    time_zone: TimeZone = None,
    missing: Missing = None,
    sort: Sort = False,
    duplicates: DuplicatesOption = "error",
    known: Annotated[
        str | None, typer.Option(help="Inputs known in the future, separated by commas.")
    ] = None,
    future: Annotated[
        Path | None, typer.Option(help="Table with the coming values of the inputs in --known.")
    ] = None,
    interval: Levels = None,
    backtest: Annotated[
        bool, typer.Option("--backtest", help="Score forecasts from every row of the last fifth instead.")
    ] = False,
    origins: Annotated[int, typer.Option(help="Backtest: fit anew at so many origins.", min=1)] = 1,
    seeds: Annotated[int, typer.Option(help="Backtest: seeds to fit from.", min=1)] = 1,
    peers: Annotated[bool, typer.Option("--peers", help="Let each series see the others.")] = False,
    max_rows: Annotated[
        int | None, typer.Option(help="Latest rows to learn from, or to backtest on.", min=1)
    ] = None,
    workers: Parallel = None,
    cluster: Cluster = None,
    report: Page = None,
    as_json: Json = False,
) -> None:
    """Forecast the rows after the end of each series of a table.

    With --backtest nothing is written: forecasts are made from before every row of the last fifth of the
    table, and scored beside simple ones at each step.
    """
    from varnn.cli._interrupt import INTERRUPTED, NOTHING_TRAINED, fit_or_cut_short
    from varnn.cli.terminal import console, voice

    voice.stopped = voice.stopped if backtest or model_path is not None else NOTHING_TRAINED
    from varnn.cli import _packages, _pages, _table
    from varnn.data.files import STANDARD, check_apart, check_writable, table_writer
    from varnn.errors import ConfigError
    from varnn.estimator.details import Details
    from varnn.estimator.input import latest_rows
    from varnn.estimator.loading import load
    from varnn.estimator.regressor import VARNNRegressor
    from varnn.model.intervals import check_levels
    from varnn.report import forecast_page

    if as_json and output == STANDARD and not backtest:
        raise ConfigError(
            "--json and the forecasts cannot both go to standard output. Name a file with --output."
        )
    if model_path is not None and (backtest or known or peers):
        raise ConfigError("--model brings its own settings: leave out --backtest, --known and --peers.")
    if not backtest and (workers is not None or cluster is not None):
        raise ConfigError(
            "--workers and --cluster are for --backtest, which fits many times; one fit takes all cores of "
            "this machine anyway. Leave them out, or add --backtest."
        )
    _packages.ask_for(tables=True, training=model_path is None, cluster=cluster is not None)
    check_apart(
        {"--output": output, "--report": report},
        {"the table": data, "the model": model_path, "the table of --future": future},
    )
    check_writable(output)
    _pages.check_page(report, refused="--backtest fits many" if backtest else "")
    if interval:
        check_levels(interval)  # before the work, not after it
    model = None if model_path is None else load(model_path)
    if target is None and model is not None:
        target = model.fitted_.target_name
    steps = horizon or _HORIZON
    if model is not None:
        longest = 1 if model.forecaster_ is None else model.forecaster_.horizon
        steps = horizon or longest
        if steps > longest:
            raise ConfigError(
                f"{str(model_path)!r} was fitted for {longest} rows ahead; got --horizon {steps}. Fit it "
                f"again with varnn fit --horizon {steps}."
            )
    names = listed(inputs) if model is None else list(model.fitted_.input_names)
    how = reading(
        target,
        time,
        series,
        names,
        time_format=time_format,
        time_zone=time_zone,
        missing=missing,
        sort=sort,
        duplicates=duplicates,
    )
    understood = _table.read(data, how, fitted=None if model is None else model.fitted_)
    words = console(stderr=True, quiet=as_json or (output == STANDARD and not backtest))
    understood.show(words)
    known_inputs = listed(known) or []
    name, roles, facts, panel = understood.name, understood.roles, understood.facts(), understood.panel
    del understood  # so that rows may go that are not learnt from
    if backtest:
        panel = latest_rows(panel, max_rows or max(1, _TARGETS // steps))
        how_often: dict[str, Any] = {"seeds": seeds, "origins": origins}
        where: dict[str, Any] = {"workers": workers, "cluster": cluster}
        result = _backtested(panel, peers, horizon=steps, known_inputs=known_inputs, **how_often, **where)
        _show(result, as_json=as_json)
        return
    cut_short = ""
    if model is None:
        model = VARNNRegressor(horizon=steps, known_inputs=known_inputs, peers=peers)
        if max_rows is not None:
            model.set_params(details__max_rows=max_rows)
        panel = latest_rows(panel, (model.details or Details()).max_rows)
        cut_short = fit_or_cut_short(model, panel)
        if model.forecaster_ is None and steps > 1:
            said = "it cannot look so far ahead yet: nothing is written."
            console(stderr=True).print(said, markup=False)
            raise typer.Exit(INTERRUPTED)
    coming = None
    if future is not None:
        how = reading(
            "none",
            ",".join(roles.time) or "none",
            roles.series or "none",
            model.known_inputs or [],
            time_format=time_format,
            time_zone=time_zone,
            missing=missing,
            sort=sort,
            duplicates=duplicates,
        )
        how = replace(how, categories=model.fitted_.categories)
        coming = _table.read(future, how, must_have_target=False).panel
    found = model.forecast(panel, horizon=steps, inputs=coming, interval=interval or None)
    with table_writer(output) as write:
        write(found.columns())
    words.print(f"Forecast {found.horizon} rows of {len(found.ids)} series. Wrote {output}.", markup=False)
    _pages.write_page(
        report,
        words,
        lambda _: forecast_page(
            model,
            panel,
            forecast=found if interval else None,  # without levels, the page has some of its own
            levels=interval,
            horizon=steps,
            inputs=coming,
            title=name,
            guessed=roles.guessed,
        ),
    )
    if cut_short:
        said = f"training was cut short {cut_short}: forecasts are as they were then."
        console(stderr=True).print(said, markup=False)
    if as_json:
        written = {"output": str(output), "data": facts}
        typer.echo(json.dumps(written | ({"interrupted": cut_short} if cut_short else {}), indent=1))
    if cut_short:
        raise typer.Exit(INTERRUPTED)


def _backtested(panel: "Panel", peers: bool, **settings: Any) -> "Backtest":
    import time

    from varnn.cli.progress import backtest_bar, fits_bar
    from varnn.estimator.regressor import VARNNRegressor
    from varnn.evaluation.backtesting import backtest

    def model(seed: int) -> VARNNRegressor:
        return VARNNRegressor(random_state=seed, peers=peers)

    if settings["workers"] is None and settings["cluster"] is None:
        began = [time.perf_counter()]
        with fits_bar(settings["seeds"] * settings["origins"] * ["VARNN"]) as fits:

            def on_done(*_: int) -> None:
                began.append(time.perf_counter())
                fits.done("VARNN", began[-1] - began[-2])

            return backtest(panel, model=model, on_epoch=fits.epoch, on_fit=on_done, **settings)
    with backtest_bar() as on_fit:
        return backtest(panel, model=model, on_fit=on_fit, **settings)


def _show(result: "Backtest", *, as_json: bool) -> None:
    """Print a backtest: errors over those of persistence, and the coverage of intervals."""
    from rich.table import Table

    from varnn.cli.terminal import console
    from varnn.evaluation.backtesting import LEVEL

    lines = result.table()
    steps = [name for name in lines[0] if name != "forecast"]
    coverage = {one: float(result.coverage[:, int(one) - 1].mean()) for one in steps}
    if as_json:
        facts = {
            "rows": result.rows,
            "mse": {name: errors.tolist() for name, errors in result.mse.items()},
            "coverage": result.coverage.tolist(),
        }
        typer.echo(json.dumps(facts, indent=1))
        return
    shown = Table(title=f"Mean squared error over that of persistence, {result.rows:,} test rows")
    for name in ("rows ahead", *steps):
        shown.add_column(name, justify="left" if name == "rows ahead" else "right")
    for line in lines:
        cells = [_cell(*line[one]) for one in steps]
        shown.add_row(str(line["forecast"]), *cells)
    shown.add_section()
    shown.add_row(f"VARNN: coverage of {LEVEL:.0%} intervals", *(f"{coverage[one]:.1%}" for one in steps))
    console().print(shown)


def _cell(mean: float, spread: float) -> str:
    from varnn.data.in_words import times

    if mean >= 1000:
        return times(mean)
    return f"{mean:.3f} ± {spread:.3f}" if spread else f"{mean:.3f}"
