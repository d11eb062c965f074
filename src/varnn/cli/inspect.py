"""``varnn inspect``: what is in a model file."""

import json
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from varnn.cli._options import Json, Model
from varnn.estimator.details import flattened

if TYPE_CHECKING:
    from varnn.estimator.regressor import VARNNRegressor
    from varnn.model.fitted import Fitted


def inspect(
    model_path: Model,
    as_json: Json = False,
) -> None:
    """Show configuration, inputs, training curve and latency of a model file; of many, how many and which.

    Of a .varnns file or a folder of models: how many there are, their settings once, and which series failed.
    """
    from rich.table import Table

    from varnn.cli._many import show_many
    from varnn.cli.terminal import console, printable
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
    if card := facts.pop("card"):  # of files written before there were any, there is none
        typer.echo(f"{printable(card)}\n")
    table = Table(title=str(model_path), title_justify="left", show_header=False)
    for name, value in facts.items():
        if name == "experts":
            shown = "\n".join(["weight at first, RMSE on validation rows:", *map(_line, value)])
        else:
            shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        table.add_row(name, shown)
    console().print(table)


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
        "best loss (scaled)": min(losses) if losses else None,
        "training curve": _curve(losses),
        "one streamed step": f"{_latency(model):.1f} microseconds here",
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


def _line(expert: dict[str, Any]) -> str:
    error = expert["validation RMSE"]
    return f"{expert['weight at first']:4.0%}  {'' if error is None else f'{error:.4g}':9}  {expert['name']}"


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
