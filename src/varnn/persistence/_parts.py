"""Fitted models and forecasters <-> named arrays and plain values, for a file to hold."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from varnn.model.adaptation import Adaptation
from varnn.model.fitted import Fitted, LastRows
from varnn.model.forecast import Bands, DirectPart, Forecaster
from varnn.model.intervals import ErrorScale
from varnn.model.pipeline import FeaturePipeline
from varnn.model.training_record import TrainingRecord
from varnn.network.cell import Architecture, weights_from

Tensors = dict[str, npt.NDArray[Any]]
Facts = dict[str, Any]
_Record = TypeVar("_Record", DirectPart, Bands)


def disassemble(fitted: Fitted) -> tuple[Tensors, Facts]:
    """Take a model apart."""
    tensors: Tensors = {f"weights.{name}": array for name, array in fitted.weights.as_dict().items()}
    tensors |= {f"recipe.{name}": array for name, array in fitted.pipeline.arrays().items()}
    for index, tail in enumerate(fitted.last_rows.values()):
        tensors[f"tail.{index}.inputs"] = tail.inputs
        tensors[f"tail.{index}.target"] = tail.target
        if tail.time is not None:
            tensors[f"tail.{index}.time"] = tail.time.astype(np.int64)
    adaptation = fitted.adaptation
    if adaptation is not None:
        tensors["adaptation.gain"] = adaptation.gain
    error_scale = fitted.error_scale
    if error_scale is not None:
        tensors |= {"spread.weights": error_scale.weights, "spread.quantiles": error_scale.quantiles}
        tensors["spread.largest"] = np.array([error_scale.largest])
    return tensors, {
        "spread": None if error_scale is None else error_scale.unit,
        "adaptation": None if adaptation is None else adaptation.numbers(),
        "architecture": fitted.architecture.as_dict(),
        "window": fitted.window,
        "share": fitted.shrinkage,
        "recipe": fitted.pipeline.facts(),
        "input_names": list(fitted.input_names),
        "target_name": fitted.target_name,
        "time_name": fitted.time_name,
        "series_name": fitted.series_name,
        "label_range": None if fitted.label_range is None else list(fitted.label_range),
        "series": list(fitted.last_rows),
        # Times are kept in the unit they have: nanoseconds end in the year 2262.
        "time_units": [_unit(tail) for tail in fitted.last_rows.values()],
        "summary": fitted.training.as_dict(),
    }


def fitted_from(tensors: Tensors, facts: Mapping[str, Any]) -> Fitted:
    """Undo :func:`disassemble`, of parts that `varnn.persistence.model_checks` has looked at."""
    architecture = Architecture(**facts["architecture"])
    units = facts.get("time_units", ["ns"] * len(facts["series"]))  # files written before had no others
    return Fitted(
        architecture=architecture,
        weights=weights_from({name: tensors[f"weights.{name}"] for name in architecture.shapes}),
        pipeline=FeaturePipeline.from_parts(facts["recipe"], under("recipe.", tensors)),
        window=int(facts["window"]),
        adaptation=_adaptation(facts["adaptation"], tensors),
        error_scale=_error_scale(facts["spread"], tensors),
        shrinkage=float(facts["share"]),
        input_names=tuple(facts["input_names"]),
        target_name=facts["target_name"],
        time_name=facts.get("time_name"),
        series_name=facts.get("series_name"),
        label_range=_pair(facts.get("label_range")),
        last_rows={
            name: _tail(f"tail.{index}.", tensors, units[index]) for index, name in enumerate(facts["series"])
        },
        training=TrainingRecord.from_dict(facts["summary"]),
    )


def disassemble_forecaster(forecaster: Forecaster) -> tuple[Tensors, Facts]:
    """Take a forecaster apart."""
    tensors, facts = disassemble(forecaster.network)
    tensors["shares"] = forecaster.shrinkage
    records: list[tuple[str, DirectPart | Bands | None]] = [
        ("direct", forecaster.direct),
        ("bands", forecaster.bands),
    ]
    for name, record in records:
        if record is not None:
            tensors |= {
                f"{name}.{field.name}": np.atleast_1d(getattr(record, field.name)) for field in fields(record)
            }
    return tensors, facts | {"known": list(forecaster.known)}


def forecaster_from(tensors: Tensors, facts: Mapping[str, Any]) -> Forecaster:
    """Undo :func:`disassemble_forecaster`."""
    direct, bands = under("direct.", tensors), under("bands.", tensors)
    return Forecaster(
        network=fitted_from(tensors, facts),
        known=tuple(facts["known"]),
        direct=_record(DirectPart, direct, "mean"),
        shrinkage=tensors["shares"],
        bands=_record(Bands, bands, "usual") if bands else None,
    )


def _record(kind: type[_Record], arrays: Tensors, number: str) -> _Record:
    """Make a record of its fields, one of which is a number."""
    values = {field.name: arrays[field.name] for field in fields(kind)}
    return kind(**{**values, number: arrays[number].item()})


def under(prefix: str, tensors: Tensors) -> Tensors:
    """Keep the arrays whose name begins so, without that beginning."""
    return {name.removeprefix(prefix): one for name, one in tensors.items() if name.startswith(prefix)}


def _pair(numbers: list[float] | None) -> tuple[float, float] | None:
    if numbers is None:
        return None
    low, high = numbers
    return float(low), float(high)


def _adaptation(numbers: list[float] | None, tensors: Tensors) -> Adaptation | None:
    if numbers is None:
        return None
    forgetting, noise, *doubt = numbers
    known = {"doubt": doubt[0]} if doubt else {}
    return Adaptation(forgetting=forgetting, gain=tensors["adaptation.gain"], noise=noise, **known)


def _error_scale(unit: float | None, tensors: Tensors) -> ErrorScale | None:
    if unit is None:
        return None
    return ErrorScale(
        unit=unit,
        weights=tensors["spread.weights"],
        quantiles=tensors["spread.quantiles"],
        largest=tensors["spread.largest"].item() if "spread.largest" in tensors else np.inf,
    )


def _unit(tail: LastRows) -> str | None:
    if tail.time is None:
        return None
    unit, count = np.datetime_data(tail.time.dtype)
    return unit if count == 1 else f"{count}{unit}"


def _tail(prefix: str, tensors: Tensors, unit: str | None) -> LastRows:
    time = tensors.get(f"{prefix}time")
    return LastRows(
        inputs=tensors[f"{prefix}inputs"],
        target=tensors[f"{prefix}target"],
        time=None if time is None else time.view(f"datetime64[{unit}]"),
    )
