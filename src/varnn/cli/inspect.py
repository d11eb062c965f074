"""``varnn inspect``: what is in a model file."""

import json
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from varnn.cli._options import Json, Model
from varnn.data.display import some
from varnn.data.in_words import figure
from varnn.data.leaks import advice
from varnn.estimator.details import flattened
from varnn.persistence.card import LABELS as ERRORS

if TYPE_CHECKING:
    from varnn.estimator.regressor import VARNNRegressor
    from varnn.model.fitted import Fitted


def inspect(
    model_path: Model,
    as_json: Json = False,
) -> None:
    """Show what a model file holds: what it predicts from what, how well, and how it was trained.

    Settings are those that are not the default; --verbose lists all, and --json has every detail. Of a
    .varnns file or a folder of models: how many there are, their settings once, and which series failed.
    """
    from varnn.cli._many import show_many
    from varnn.cli.terminal import voice
    from varnn.estimator.loading import load
    from varnn.scale.models import Models, is_of_many

    if is_of_many(model_path):
        show_many(Models.open(model_path), model_path, as_json=as_json)
        return
    model = load(model_path)
    facts = _facts(model, model_path)
    if as_json:
        typer.echo(json.dumps(facts, indent=1))
        return
    _show(f"{model_path}, {facts['file']}", _sections(model, facts, all_settings=voice.verbose > 0))


def _show(title: str, sections: dict[str, dict[str, str]]) -> None:
    """Print names and values, section after section; what is long goes on below itself."""
    from rich.table import Table
    from rich.text import Text

    from varnn.cli.terminal import console, printable

    out = console()
    out.print(title, markup=False, style="bold")
    for heading, lines in sections.items():
        if not any(lines.values()):
            continue
        out.print(f"\n{heading}", markup=False, style="bold")
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True, min_width=22)
        table.add_column(overflow="fold")
        for name, value in lines.items():
            if value:
                table.add_row(
                    *(Text(printable(one)) for one in (f"  {name}", value))
                )  # brackets are no markup
        out.print(table)


def _sections(
    model: "VARNNRegressor", facts: dict[str, Any], *, all_settings: bool
) -> dict[str, dict[str, str]]:
    from varnn.report.settings import changed_settings

    fitted, record = model.fitted_, model.fitted_.training
    ahead = "" if model.forecaster_ is None else f"; forecasts of up to {model.forecaster_.horizon} rows"
    inputs = f"{len(facts['inputs'])}: {some(facts['inputs'], len(facts['inputs']) if all_settings else 12)}"
    if not fitted.pipeline.use_inputs:
        inputs += " (given, but found to be of no use)"
    rows = "" if record.trained_on is None else f"{record.trained_on:,} of {record.series:,} series"
    when = "" if record.period is None else f", {record.period[0]} to {record.period[1]}".replace("T", " ")
    held_out = {
        said: figure(math.sqrt(record.validation[name]))
        for name, said in ERRORS.items()
        if name in record.validation
    }
    kept = facts["settings"] if all_settings else changed_settings(model.get_params(deep=False))
    return {
        "Predicts": {
            "target": f"{fitted.target_name}, one row ahead{ahead}",
            "inputs": inputs if facts["inputs"] else "none: from labels alone",
            "calendar": some([f"time of {one}" for one in fitted.pipeline.calendar]),
            "seasons": some(fitted.seasons),
            **{f"texts of {name}": some(known, 12) for name, known in fitted.categories.items()},
            "never below zero": "yes" if fitted.positive else "",
        },
        "Error on rows held out (RMSE)": held_out,
        "Experts: weight at first, RMSE on rows held out": {
            one["name"]: f"{one['weight at first']:4.0%}  {_error(one)}" for one in facts.get("experts", ())
        },
        "Training": {
            "rows": f"{rows}{when}",
            "cut short": record.interrupted or "",
            "look": "" if record.leak is None else f"{advice(record.leak)}.",
            "epochs kept": some([str(one) for one in record.best_epoch]),
            "validation error": facts["training curve"],
        },
        "Network": {
            "cell": f"{model.variant}, {facts['hidden']} hidden units, memory of {facts['memory']}",
            "members": f"{facts['members']}, {facts['parameters']:,} parameters in all",
            "predicts from": fitted.context_in_words,
            "added to linear part": "" if fitted.experts else f"{fitted.shrinkage:.0%} of what it says",
            "one streamed step": facts["one streamed step"],
        },
        "Settings" if all_settings else "Settings that are not the default": {
            name: str(value) for name, value in kept.items()
        },
    }


def _error(expert: dict[str, Any]) -> str:
    found = expert["validation RMSE"]
    return "" if found is None else figure(found)


def _facts(model: "VARNNRegressor", path: Path) -> dict[str, Any]:
    from varnn.persistence.model_file import read_card

    fitted, settings = model.fitted_, flattened(model.get_params(deep=False))
    losses = [line.get("validation_loss", line["loss"]) for line in model.history_]
    return {
        "variant": model.variant,
        "target": fitted.target_name,
        "inputs": list(fitted.input_names),
        "categories": {column: list(known) for column, known in fitted.categories.items()},
        "window": fitted.window,
        "predicts from": fitted.context_in_words,
        "hidden": fitted.architecture.hidden_size,
        "memory": fitted.architecture.memory_size,
        "members": fitted.n_members,
        "calendar inputs": list(fitted.pipeline.calendar),
        "seasons": list(fitted.seasons),
        **_learning(fitted),
        "never below zero": "yes" if fitted.positive else "no",
        "parameters": int(sum(matrix.size for matrix in fitted.weights.as_dict().values())),
        "training rows": fitted.training.trained_on,
        "training series": fitted.training.series,
        "cut short": fitted.training.interrupted or "no",
        "exact leak": fitted.training.leak or "no",
        "best epoch": fitted.training.best_epoch,
        "best loss (scaled)": float(f"{min(losses):.6g}") if losses else None,
        "training curve": _curve(losses),
        "one streamed step": f"{_latency(model):.0f} microseconds here",
        "file": f"{path.stat().st_size / 1e3:.0f} kB",
        "settings": settings,
        "card": read_card(path),
    }


def _learning(fitted: "Fitted") -> dict[str, Any]:
    """Say who predicts, and how much of each; where nothing learns on, how much the network corrects."""
    experts = fitted.experts
    if experts is None:
        return {"shrinkage of the correction": fitted.shrinkage}
    errors = {name: math.sqrt(mse) for name, mse in fitted.training.validation.items()}
    return {
        "experts": [
            {"name": name, "weight at first": round(weight, 4), "validation RMSE": errors.get(name)}
            for name, weight in zip(experts.names, experts.prior.tolist(), strict=True)
        ]
    }


def _curve(losses: list[float]) -> str:
    """Draw losses as a line of blocks, one per epoch (at most 60)."""
    if not losses:
        return ""
    step = -(-len(losses) // 60)
    kept = losses[::step]
    low, high = min(kept), max(kept)
    span = (high - low) or 1.0
    return "".join("▁▂▃▄▅▆▇█"[round(7 * (loss - low) / span)] for loss in kept)


def _latency(model: "VARNNRegressor", steps: int = 500) -> float:
    """Time predict + observe on a training row; give the median in microseconds."""
    last = next(iter(model.fitted_.last_rows.values()))
    series = 2 if model.peers else None
    live = model.stream(series)
    x = np.tile(last.inputs[-1], (2, 1)) if series else last.inputs[-1]
    y = np.tile(last.target[-1], 2) if series else last.target[-1]
    timestamp = None if last.time is None else last.time[-1]
    spent = []
    for step in range(steps):
        began = time.perf_counter()
        live.predict(x, time=None if timestamp is None else timestamp + step)
        live.observe(y)
        spent.append(time.perf_counter() - began)
    return 1e6 * sorted(spent)[steps // 2]
