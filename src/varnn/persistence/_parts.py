"""Fitted models and forecasters <-> named arrays and plain values, for a file to hold."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from varnn.errors import ConfigError
from varnn.model.experts import Experts
from varnn.model.fitted import Fitted, LastRows
from varnn.model.forecast import DirectPart, Forecaster
from varnn.model.intervals import Calibrator, ErrorScale, HorizonBands
from varnn.model.intervals.methods import METHODS
from varnn.model.pipeline import FeaturePipeline
from varnn.model.training_record import TrainingRecord
from varnn.network.cell import Architecture, weights_from

Tensors = dict[str, npt.NDArray[Any]]
Facts = dict[str, Any]
INTERVALS, BANDS = "interval_method", "band_method"  # of methods but the usual ones


def disassemble(fitted: Fitted) -> tuple[Tensors, Facts]:
    """Take a model apart."""
    tensors: Tensors = {f"weights.{name}": array for name, array in fitted.weights.as_dict().items()}
    tensors |= {f"recipe.{name}": array for name, array in fitted.pipeline.arrays().items()}
    for index, last in enumerate(fitted.last_rows.values()):
        tensors[f"tail.{index}.inputs"] = last.inputs
        tensors[f"tail.{index}.target"] = last.target
        if last.time is not None:
            tensors[f"tail.{index}.time"] = last.time.astype(np.int64)
    if fitted.experts is not None:
        tensors |= _over("experts", fitted.experts.arrays())
    calibrator, spread, method = fitted.calibrator, None, {}
    if isinstance(calibrator, ErrorScale):
        arrays = calibrator.arrays()
        spread = arrays.pop("unit").item()
        tensors |= _over("spread", arrays)
    elif calibrator is not None:
        method = {INTERVALS: _name_of(calibrator)}
        tensors |= _over(INTERVALS, calibrator.arrays())
    return tensors, {
        **method,
        "spread": spread,
        "architecture": fitted.architecture.as_dict(),
        "window": fitted.window,
        "context": fitted.context,
        "state_limit": fitted.state_limit if np.isfinite(fitted.state_limit) else None,
        "share": fitted.shrinkage,
        "positive": fitted.positive,
        "recipe": fitted.pipeline.facts(),
        "input_names": list(fitted.input_names),
        "target_name": fitted.target_name,
        "time_name": fitted.time_name,
        "series_name": fitted.series_name,
        "categories": {column: list(known) for column, known in fitted.categories.items()},
        "label_range": None if fitted.label_range is None else list(fitted.label_range),
        "series": list(fitted.last_rows),
        # Times are kept in the unit they have: nanoseconds end in the year 2262.
        "time_units": [_unit(last) for last in fitted.last_rows.values()],
        "summary": fitted.training.as_dict(),
    }


def fitted_from(tensors: Tensors, facts: Mapping[str, Any]) -> Fitted:
    """Undo :func:`disassemble`, of parts that `varnn.persistence.model_checks` has looked at."""
    architecture = Architecture(**facts["architecture"])
    return Fitted(
        architecture=architecture,
        weights=weights_from({name: tensors[f"weights.{name}"] for name in architecture.shapes}),
        pipeline=FeaturePipeline.from_parts(facts["recipe"], under("recipe.", tensors)),
        window=int(facts["window"]),
        context=facts["context"],
        state_limit=np.inf if facts["state_limit"] is None else float(facts["state_limit"]),
        experts=_experts(tensors),
        calibrator=_calibrator(INTERVALS, tensors, facts) or _error_scale(facts["spread"], tensors),
        shrinkage=float(facts["share"]),
        input_names=tuple(facts["input_names"]),
        target_name=facts["target_name"],
        time_name=facts["time_name"],
        series_name=facts["series_name"],
        categories={column: tuple(known) for column, known in facts["categories"].items()},
        label_range=_pair(facts["label_range"]),
        positive=facts["positive"],
        last_rows={
            name: _last_rows(f"tail.{index}.", tensors, unit)
            for index, (name, unit) in enumerate(zip(facts["series"], facts["time_units"], strict=True))
        },
        training=TrainingRecord.from_dict(facts["summary"]),
    )


def disassemble_forecaster(forecaster: Forecaster) -> tuple[Tensors, Facts]:
    """Take a forecaster apart."""
    tensors, facts = disassemble(forecaster.network)
    tensors["shares"] = forecaster.shrinkage
    direct, bands = forecaster.direct, forecaster.calibrator
    tensors |= _over(
        "direct", {field.name: np.atleast_1d(getattr(direct, field.name)) for field in fields(direct)}
    )
    if isinstance(bands, HorizonBands):
        tensors |= _over("bands", bands.arrays())
    elif bands is not None:
        facts |= {BANDS: _name_of(bands)}
        tensors |= _over(BANDS, bands.arrays())
    return tensors, facts | {"known": list(forecaster.known)}


def forecaster_from(tensors: Tensors, facts: Mapping[str, Any]) -> Forecaster:
    """Undo :func:`disassemble_forecaster`."""
    direct, bands = under("direct.", tensors), under("bands.", tensors)
    values = {field.name: direct[field.name] for field in fields(DirectPart)}
    found = _calibrator(BANDS, tensors, facts)
    return Forecaster(
        network=fitted_from(tensors, facts),
        known=tuple(facts["known"]),
        direct=DirectPart(**{**values, "mean": direct["mean"].item()}),
        shrinkage=tensors["shares"],
        calibrator=HorizonBands.from_arrays(bands) if bands else found,
    )


def _over(prefix: str, arrays: Tensors) -> Tensors:
    """Put the name of a part before those of its arrays."""
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def under(prefix: str, tensors: Tensors) -> Tensors:
    """Keep the arrays whose name begins so, without that beginning."""
    return {name.removeprefix(prefix): one for name, one in tensors.items() if name.startswith(prefix)}


def _pair(numbers: list[float] | None) -> tuple[float, float] | None:
    if numbers is None:
        return None
    low, high = numbers
    return float(low), float(high)


def _experts(tensors: Tensors) -> Experts | None:
    arrays = under("experts.", tensors)
    return Experts.from_arrays(arrays) if arrays else None


def _error_scale(unit: float | None, tensors: Tensors) -> ErrorScale | None:
    if unit is None:
        return None
    return ErrorScale.from_arrays({**under("spread.", tensors), "unit": np.array([unit])})


def _name_of(calibrator: Calibrator) -> str:
    """Find the name that files have for an interval method."""
    for name, method in METHODS.items():
        if type(calibrator) is method:
            return name
    raise ConfigError(
        f"a file holds intervals of the methods {list(METHODS)}; these are of {type(calibrator).__name__}. "
        "Add it to METHODS in varnn/model/intervals/methods.py."
    )


def _calibrator(place: str, tensors: Tensors, facts: Mapping[str, Any]) -> Calibrator | None:
    """Make what was learnt by a method that the header names; None where it names none."""
    if facts.get(place) is None:
        return None
    return METHODS[facts[place]].from_arrays(under(f"{place}.", tensors))


def _unit(last: LastRows) -> str | None:
    if last.time is None:
        return None
    unit, count = np.datetime_data(last.time.dtype)
    return unit if count == 1 else f"{count}{unit}"


def _last_rows(prefix: str, tensors: Tensors, unit: str | None) -> LastRows:
    time = tensors.get(f"{prefix}time")
    return LastRows(
        inputs=tensors[f"{prefix}inputs"],
        target=tensors[f"{prefix}target"],
        time=None if time is None else time.view(f"datetime64[{unit}]"),
    )
