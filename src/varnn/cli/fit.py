"""``varnn fit``: a table in, a model file out."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from varnn.cli._options import (
    Data,
    DuplicatesOption,
    Inputs,
    Json,
    Missing,
    Page,
    Series,
    Sort,
    Target,
    Time,
    TimeFormat,
    TimeZone,
    listed,
    reading,
)
from varnn.estimator import defaults


def fit(
    data: Data,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Model file to write; with --each a .varnns file or a folder."),
    ],
    target: Target = None,
    time: Time = None,
    series: Series = None,
    inputs: Inputs = None,
    time_format: TimeFormat = None,
    time_zone: TimeZone = None,
    missing: Missing = None,
    sort: Sort = False,
    duplicates: DuplicatesOption = "error",
    variant: Annotated[str, typer.Option(help="RM, RM+AM, ARM or ARM+AM.")] = defaults.VARIANT,
    window: Annotated[
        int | None, typer.Option(help="Rows a window has in training; chosen if not given.", min=1)
    ] = None,
    hidden_size: Annotated[
        int, typer.Option(help="Width of the hidden layer.", min=1)
    ] = defaults.HIDDEN_SIZE,
    epochs: Annotated[int | None, typer.Option(help="Epochs to train; chosen if not given.", min=1)] = None,
    max_rows: Annotated[int, typer.Option(help="Latest rows to learn from.", min=1)] = defaults.MAX_ROWS,
    learning_rate: Annotated[float, typer.Option(help="Step size of Adam.")] = defaults.LEARNING_RATE,
    ensemble: Annotated[int, typer.Option(help="Members to average.", min=1)] = defaults.ENSEMBLE,
    peers: Annotated[bool, typer.Option("--peers", help="Let each series see the others.")] = False,
    experts: Annotated[
        str | None, typer.Option(help="Further experts, separated by commas: boosting (needs LightGBM).")
    ] = None,
    horizon: Annotated[int, typer.Option(help="Rows ahead that it can forecast.", min=1)] = 1,
    known: Annotated[
        str | None, typer.Option(help="Inputs known in the future, separated by commas.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of weights and batches.")] = defaults.SEED,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    each: Annotated[
        str | None, typer.Option(help="series: fit a model of its own to each series, all in one file.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="With --each: processes; one a core if not given.", min=1)
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(help="With --each: a Ray cluster to fit on, auto or an address.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume/--no-resume", help="With --each: leave models that are there already.")
    ] = True,
    report: Page = None,
    as_json: Json = False,
) -> None:
    """Fit a model to a table and save it; with --each series, one to each series.

    With --report a page shows how good it is on the rows that were held out, which inputs matter, and where
    it fails.

    Ctrl-C cuts training short: what is trained by then is saved, and the file says so. With --each, models
    that are finished are kept, and the same command goes on with the others.
    """
    from varnn.cli._interrupt import INTERRUPTED, NOTHING_TRAINED, fit_or_cut_short
    from varnn.cli.terminal import console, voice

    voice.stopped = voice.stopped if each is not None else NOTHING_TRAINED  # until something is
    from varnn.cli import _many, _packages, _pages, _table
    from varnn.data.files import check_apart, check_writable
    from varnn.estimator.details import Details
    from varnn.estimator.input import latest_rows
    from varnn.estimator.regressor import VARNNRegressor
    from varnn.persistence.model_file import check_replaceable
    from varnn.report import fit_page

    _many.check_each(each, output, workers=(workers, None), cluster=(cluster, None), resume=(resume, True))
    further = tuple(listed(experts) or ())
    _packages.ask_for(tables=True, training=True, boosting=bool(further), cluster=cluster is not None)
    _pages.check_page(report, refused="--each fits many" if each is not None else "")
    check_apart({"--output": output, "--report": report}, {"the table": data})
    if each is None:
        check_writable(output)
        check_replaceable(output)
    understood = _table.read(
        data,
        reading(
            target,
            time,
            series,
            listed(inputs),
            time_format=time_format,
            time_zone=time_zone,
            missing=missing,
            sort=sort,
            duplicates=duplicates,
        ),
    )
    words = console(stderr=True, quiet=as_json)
    understood.show(words)
    facts, panel = understood.facts(), understood.panel
    title, guessed = understood.name, understood.roles.guessed
    if each is None:  # else each series has its own latest rows
        panel = latest_rows(panel, max_rows)
    del understood  # and with it the rows that are not learnt from
    model = VARNNRegressor(
        variant,  # type: ignore[arg-type]  # checked by fit, with a message of its own
        window=window,
        hidden_size=hidden_size,
        epochs=epochs,
        learning_rate=learning_rate,
        ensemble=ensemble,
        peers=peers,
        experts=further,
        horizon=horizon,
        known_inputs=listed(known),
        random_state=seed,
        device=device,
        details=Details(max_rows=max_rows),
    )
    if each is not None:
        how: dict[str, Any] = {"workers": workers, "cluster": cluster, "resume": resume}
        _many.fit_each(panel, model, output, **how, facts=facts, as_json=as_json)
        return
    cut_short = fit_or_cut_short(model, panel)
    model.save(output)
    best = min(line.get("validation_loss", line["loss"]) for line in model.history_)
    said = f"{_error_in_words(model.fitted_.training.validation)}Saved {output}."
    if cut_short:
        said = f"training was cut short {cut_short}: saved {output} as it was then."
    words.print(said, markup=False)
    _pages.write_page(
        report, words, lambda on_step: fit_page(model, panel, title=title, guessed=guessed, on_step=on_step)
    )
    if as_json:
        leak = model.fitted_.training.leak
        result = {"model": str(output), "best_validation_error": best, "leak": leak, "data": facts}
        typer.echo(json.dumps(result | ({"interrupted": cut_short} if cut_short else {}), indent=1))
    if cut_short:
        raise typer.Exit(INTERRUPTED)


def _error_in_words(errors: dict[str, float]) -> str:
    """Say how far off the model was on rows that were held out, beside the simplest one there is."""
    from varnn.data.in_words import figure

    if "model" not in errors or "persistence" not in errors:
        return ""
    model, last = (figure(errors[name] ** 0.5) for name in ("model", "persistence"))
    return f"RMSE on rows held out: {model}, of persistence {last}. "
