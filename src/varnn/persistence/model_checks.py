"""Does a file say what a model can be? Every name, kind, shape and number of it, before any is used.

A checksum tells that a file is as it was written, not that it was written by this library. So nothing in it
is believed: what the header says is held against the rules below, and the arrays against the sizes that
follow from it. What passes loads, and predicts finite numbers from finite rows, in bounded time and memory.

Shapes are in the letters of CONTRIBUTING: E members, D inputs of the table, P inputs of the network, I inputs
of the linear part, K hidden, H rows ahead; R rows kept of a series, and lags, are as many as there are.
"""

import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn, get_args

import numpy as np
import numpy.typing as npt

from varnn.data.categories import spelt_out
from varnn.data.order import DUPLICATES
from varnn.data.preparation import FILLS, LIMIT
from varnn.data.rules import (
    Rule,
    choice,
    either,
    flag,
    listed,
    names,
    number,
    optional,
    shown,
    table,
    text,
    whole,
)
from varnn.errors import ModelFileError
from varnn.model.adaptation import LEAST_FORGETTING
from varnn.model.boosting import LARGEST, LEAVES, NEVER, Trees
from varnn.model.calendar import CYCLES, calendar_names
from varnn.model.experts import BOOSTING, names_of
from varnn.model.fitted import Context
from varnn.model.forecast.direct import CHANGES, SEASONAL_AHEAD
from varnn.model.intervals import TAUS
from varnn.model.intervals.methods import METHODS
from varnn.model.linear import ADDED_INPUTS
from varnn.model.peers import PEER_INPUTS
from varnn.model.seasons import LONGEST, SHORTEST
from varnn.network.cell import Architecture, MemoryActivation, Residual
from varnn.step.linear import SEASONAL

Tensors = Mapping[str, npt.NDArray[Any]]
Facts = Mapping[str, Any]
Sizes = dict[str, int]

DEEPEST = 12  # lists and tables within each other, in a header
_LONGEST = 100_000  # rows of a window, and rows ahead
_WIDEST = 1 << 20  # units of a layer
_CHOSEN_WINDOW = 24  # rows: the longest that fitting chooses by itself
_STATES = 1 << 23  # numbers that the windows under way of one series may hold
_WORK = 1 << 31  # products that one step of one series may take
_UNIT = re.compile(r"[1-9]?\d{0,3}(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)")  # of datetime64
_LARGE = 1e100  # as in a panel: squares must be finite
_SMALL = 1e-150  # and what is divided by must not be nothing
LARGEST_STATE = 1e19  # that may be a limit: its square is finite in single precision
_LARGEST_WEIGHT = 1e9  # of a network that sees scaled numbers


def _is_reading(value: Any) -> bool:
    rules: dict[str, Rule] = {
        "time_format": optional(text),
        "time_zone": optional(text),
        "missing": listed(either(text, number(-math.inf)), "a list", unique=False),
        "sort": flag,
        "duplicates": choice(*DUPLICATES),
        "series": choice("none"),
    }
    return isinstance(value, Mapping) and all(
        name in rules and rules[name].holds(one) for name, one in value.items()
    )


def _are_categories(value: Any) -> bool:
    return isinstance(value, Mapping) and all(known and names.holds(known) for known in value.values())


def _is_history(value: Any) -> bool:
    finite = number(-_LARGE, _LARGE)
    return isinstance(value, list) and all(
        isinstance(line, dict) and "loss" in line and all(map(finite.holds, line.values())) for line in value
    )


_positive = number(_SMALL, _LARGE)
_size = whole(1, _WIDEST)
_ARCHITECTURE: dict[str, Rule] = {
    "n_inputs": whole(0, _WIDEST),
    "hidden_size": _size,
    "memory_size": _size,
    "accumulate": flag,
    "activation_memory": flag,
    "residual": choice(*get_args(Residual)),
    "memory_activation": choice(*get_args(MemoryActivation)),
    "horizon": whole(1, _LONGEST),
}
_PIPELINE: dict[str, Rule] = {
    "fill": choice(*FILLS),
    "blind": flag,
    "clock": listed(choice(*CYCLES), f"a list of {list(CYCLES)}"),
    "peers": flag,
}
_MODEL: dict[str, Rule] = {
    "architecture": table,
    "recipe": table,
    "window": whole(1, _LONGEST),
    "share": number(0, 1),
    "input_names": names,
    "target_name": text,
    "series": names,
    "summary": table,
    "spread": optional(_positive),
    "positive": flag,
    "context": choice(*get_args(Context)),
    "state_limit": optional(number(_SMALL, LARGEST_STATE)),
    "time_name": optional(text),
    "series_name": optional(text),
    "categories": Rule("columns, and lists of their categories", _are_categories),
    "time_units": listed(
        optional(
            Rule("a unit of time", lambda one: isinstance(one, str) and _UNIT.fullmatch(one) is not None)
        ),
        "a list of units of time",
        unique=False,
    ),
    "label_range": optional(
        Rule(
            "the smallest and the largest label",
            lambda one: (
                isinstance(one, list)
                and len(one) == 2
                and all(number(-_LARGE, _LARGE).holds(each) for each in one)
                and one[0] <= one[1]
            ),
        )
    ),
}
_METHOD = Rule("an interval method that is known here", lambda one: isinstance(one, str) and one in METHODS)
_METHODS: dict[str, Rule] = {"interval_method": optional(_METHOD), "band_method": optional(_METHOD)}
_COUNT = whole(0, 1 << 53)
_SUMMARY: dict[str, Rule] = {  # of these what is there: what is not known is left out
    "rows": _COUNT,
    "series": _COUNT,
    "refitted on": _COUNT,
    "best_epoch": listed(_COUNT, "a list of whole numbers", unique=False),
    "history": Rule("a list of tables of numbers", _is_history),
    "reading": Rule("how a table was read", _is_reading),
    "period": optional(listed(text, "two texts", unique=False, most=2)),
    "backend": optional(text),
    "leak": optional(text),
    "few_errors": optional(text),
}


class Numbers(NamedTuple):
    """What an array must be."""

    shape: str  # its sizes, by letter; one that is not known yet is taken from the first array that has it
    low: float = -_LARGE
    high: float = _LARGE
    kind: tuple[str, ...] = ("float64",)
    missing: bool = False  # whether numbers may be


_RECIPE_ARRAYS = {
    "recipe.lead": Numbers("D"),
    "recipe.scaling.input_offset": Numbers("P"),
    "recipe.scaling.input_scale": Numbers("P", _SMALL),
    "recipe.scaling.input_lead": Numbers("P"),
    "recipe.scaling.input_limit": Numbers("1", 1e-3, LIMIT),
    "recipe.scaling.target_offset": Numbers("1"),
    "recipe.scaling.target_scale": Numbers("1", _SMALL),
}
_LINEAR_ARRAYS = {
    "recipe.linear.mean": Numbers("1"),
    "recipe.linear.low": Numbers("1"),
    "recipe.linear.high": Numbers("1"),
    "recipe.linear.constant": Numbers("1"),
    "recipe.linear.of_last": Numbers("1"),
    "recipe.linear.of_changes": Numbers("label lags"),
    "recipe.linear.of_inputs": Numbers("input lags,I"),
    "recipe.linear.ridge": Numbers("1", 0.0),
    "recipe.linear.largest_change": Numbers("1", 0.0),
    "recipe.linear.input_low": Numbers("I"),
    "recipe.linear.input_high": Numbers("I"),
}
_OPTIONAL_ARRAYS = {  # where there are seasons, and where errors have a bound
    "recipe.linear.periods": Numbers("seasons", SHORTEST, LONGEST),
    "recipe.linear.of_seasons": Numbers("seasons,4"),
    "spread.largest": Numbers("1", 0.0, np.inf),
}
_LABEL_ARRAYS = {  # where labels changed in training
    "recipe.labels.change": Numbers("1", 0.0),
    "recipe.labels.low": Numbers("1"),
    "recipe.labels.high": Numbers("1"),
}
_FORECASTER_ARRAYS = {
    "shares": Numbers("H", 0.0, 1.0),
    "direct.mean": Numbers("1"),
    "direct.weights": Numbers("H-1,F"),
    "direct.constants": Numbers("H-1"),
    "direct.low": Numbers("F"),
    "direct.high": Numbers("F"),
    "direct.scales": Numbers("H-1", _SMALL),
}
_BANDS_ARRAYS = {
    "bands.usual": Numbers("1", _SMALL),
    "bands.powers": Numbers("H", 0.0, 1.0),
    "bands.quantiles": Numbers("H,T"),
}
_TREE_ARRAYS = {
    "feature": Numbers("splits,trees", 0, 1 << 30, kind=("int32",)),
    "threshold": Numbers("splits,trees", -NEVER, NEVER),
    "first": Numbers("splits,trees", 0, LEAVES, kind=("int32",)),
    "value": Numbers("leaves,trees", -LARGEST, LARGEST),
}
_FLOATS = ("float32", "float64")
_TAIL_ARRAYS = {"inputs": Numbers("R,D", kind=_FLOATS), "target": Numbers("R", kind=_FLOATS, missing=True)}
_TAIL_TIME = Numbers("R", -9.2e18, 9.2e18, kind=("int64",))


class Checks:
    """What is looked at in a file, or in a snapshot; ``what`` names it in errors."""

    def __init__(self, what: str) -> None:
        self.what = what

    def fail(self, why: str) -> NoReturn:
        """Refuse it."""
        raise ModelFileError(f"{self.what} is damaged or was not written by this library: {why}.")

    def facts(
        self, facts: Facts, rules: Mapping[str, Rule], where: str = "", *, all_there: bool = True
    ) -> None:
        """Hold what a header says against rules."""
        for name, rule in rules.items():
            if name not in facts:
                if all_there:
                    self.fail(f"{where}{name!r} is missing in its header")
            elif wrong := rule.broken(f"{where}{name!r} in its header", facts[name]):
                self.fail(wrong.rstrip("."))

    def array(self, tensors: Tensors, name: str, must: Numbers, sizes: Sizes) -> npt.NDArray[Any]:
        """Hold an array against what it must be; sizes that were not known before are known then."""
        if name not in tensors:
            self.fail(f"its array {name!r} is missing")
        array = tensors[name]
        letters = must.shape.split(",") if must.shape else []
        known = len(letters) == array.ndim and all(
            sizes.setdefault(letter, size) == size for letter, size in zip(letters, array.shape, strict=True)
        )
        if array.dtype.name not in must.kind or not known:
            wanted = tuple(sizes.get(letter, letter) for letter in letters)
            self.fail(
                f"its array {name!r} must hold {' or '.join(must.kind)} of shape {wanted}; it holds "
                f"{array.dtype} of shape {array.shape}"
            )
        values = array[~np.isnan(array)] if must.missing else array
        # A comparison with NaN does not hold.
        if values.size and not (must.low <= values.min() and values.max() <= must.high):
            self.fail(f"its array {name!r} holds numbers that are not from {must.low:g} to {must.high:g}")
        return array

    def arrays(self, tensors: Tensors, table_of: Mapping[str, Numbers], prefix: str, sizes: Sizes) -> None:
        """Hold arrays against a table."""
        for name, must in table_of.items():
            self.array(tensors, prefix + name, must, sizes)


def check_model(tensors: Tensors, header: Facts, what: str) -> None:
    """Refuse a model file that holds anything but a model."""
    checks = Checks(what)
    checks.facts(header, {"card": text, "settings": table})
    sizes = _check_network(checks, tensors, header, "")
    checks.facts(header["summary"], _SUMMARY, all_there=False)
    chosen = header["settings"].get("window", header["window"])
    if header["window"] > (chosen if _COUNT.holds(chosen) else _CHOSEN_WINDOW):
        checks.fail(f"its window of {header['window']} rows is longer than its settings say")
    if sizes["H"] != 1:
        checks.fail("its one-step network looks several rows ahead")
    units = header["time_units"]
    if len(units) != len(header["series"]):
        checks.fail("its series are not as many as the units of their times")
    for index in range(len(header["series"])):
        rows = {"D": sizes["D"]}
        checks.arrays(tensors, _TAIL_ARRAYS, f"tail.{index}.", rows)
        if f"tail.{index}.time" in tensors:
            checks.array(tensors, f"tail.{index}.time", _TAIL_TIME, rows)
            if units[index] is None:
                checks.fail(f"the times of its series {shown(header['series'][index])} have no unit")
        if rows["R"] == 0:
            checks.fail(f"no row is kept of its series {shown(header['series'][index])}")
    facts = header.get("forecaster")
    if facts is not None:
        checks.facts(header, {"forecaster": table})
        _check_forecaster(checks, tensors, facts, header)


def check_depth(header: Any, what: str) -> None:
    """Refuse a header whose lists and tables lie too deep within each other."""
    level = [header]
    for _ in range(DEEPEST):
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
        if not level:
            return
    Checks(what).fail(f"its header holds tables within tables, more than {DEEPEST} deep")


def _check_network(checks: Checks, tensors: Tensors, facts: Facts, prefix: str) -> Sizes:
    """Check all that makes a network and what surrounds it; give the sizes of both."""
    where = f"{prefix.rstrip('.')}: " if prefix else ""
    checks.facts(facts, _MODEL, where)
    checks.facts(facts, _METHODS, where, all_there=False)
    of_texts = facts["categories"]
    if strange := set(spelt_out(of_texts, of_texts)) - set(facts["input_names"]):
        checks.fail(f"the category {shown(min(strange))} is none of its inputs")
    checks.facts(facts["architecture"], _ARCHITECTURE, f"{where}architecture: ")
    checks.facts(facts["recipe"], _PIPELINE, f"{where}recipe: ")
    if unknown := set(facts["architecture"]) - set(_ARCHITECTURE):
        checks.fail(f"its architecture has {shown(sorted(unknown)[0])}, which no network has")
    architecture = Architecture(**facts["architecture"])
    if architecture.accumulate and architecture.residual != "projected":
        checks.fail("its network accumulates a memory that it does not have")
    if architecture.residual == "scalar" and architecture.memory_size != 1:
        checks.fail("its network hands on one number, and its memory is wider")
    if facts["context"] == "series" and facts["state_limit"] is None:
        checks.fail(
            f"{where}its state is carried through a series, and no 'state_limit' says how large it may be"
        )
    sizes = {"1": 1, "4": SEASONAL, "T": len(TAUS), "K": architecture.hidden_size, "H": architecture.horizon}
    sizes |= {"K+1": sizes["K"] + 1, "K+4": sizes["K"] + 4, "H-1": sizes["H"] - 1}
    _check_weights(checks, tensors, prefix, architecture, sizes)
    numbers = sum(rows * columns for rows, columns in architecture.shapes.values()) * sizes["E"]
    states = sizes["E"] * (architecture.hidden_size + architecture.memory_size)
    if facts["window"] * states > _STATES or facts["window"] * numbers > _WORK:
        checks.fail(f"a window of {facts['window']} rows is too long for a network of {numbers} weights")
    _check_surroundings(checks, tensors, prefix, facts, sizes)
    if sizes["P"] != architecture.n_inputs:
        checks.fail(f"its network sees {architecture.n_inputs} inputs, and is given {sizes['P']}")
    return sizes


def _check_weights(
    checks: Checks, tensors: Tensors, prefix: str, architecture: Architecture, sizes: Sizes
) -> None:
    for name, (rows, columns) in architecture.shapes.items():
        must = Numbers("E,rows,columns", -_LARGEST_WEIGHT, _LARGEST_WEIGHT, kind=("float32",))
        shape = {"rows": rows, "columns": columns} | {one: sizes[one] for one in ("E",) if one in sizes}
        checks.array(tensors, f"{prefix}weights.{name}", must, shape)
        sizes["E"] = shape["E"]
    if sizes["E"] == 0:
        checks.fail("its ensemble has no members")


def _check_surroundings(checks: Checks, tensors: Tensors, prefix: str, facts: Facts, sizes: Sizes) -> None:
    """Check preparation, linear part, adaptation and error scale."""
    pipeline, linear = facts["recipe"], f"{prefix}recipe.linear.mean" in tensors
    if pipeline["peers"] and not linear:
        checks.fail("it sees peers, which needs a linear part, and has none")
    sizes["D"] = len(facts["input_names"])
    given = 0 if pipeline["blind"] else sizes["D"]
    sizes["I"] = given + len(calendar_names(pipeline["clock"])) + pipeline["peers"] * len(PEER_INPUTS)
    sizes["P"] = sizes["I"] + linear * (len(ADDED_INPUTS) + pipeline["peers"])
    needed = _RECIPE_ARRAYS | (_LINEAR_ARRAYS if linear else {})
    present = {name: one for name, one in _OPTIONAL_ARRAYS.items() if prefix + name in tensors}
    filtered = any(prefix + name in tensors for name in _LABEL_ARRAYS)  # all of them, or none
    checks.arrays(tensors, needed | present | (_LABEL_ARRAYS if filtered else {}), prefix, sizes)
    ordered = ["linear.", "linear.input_"] * linear + ["labels."] * filtered
    for part in ordered:
        _check_order(checks, tensors, f"{prefix}recipe.{part}low", f"{prefix}recipe.{part}high")
    if any(name.startswith(f"{prefix}experts.") for name in tensors):
        _check_experts(checks, tensors, prefix, sizes, linear=linear)
    for name in tensors:
        if name.startswith((f"{prefix}interval_method.", f"{prefix}band_method.")):  # of any shape
            shape = [str(size) for size in tensors[name].shape]
            checks.array(tensors, name, Numbers(",".join(shape)), {size: int(size) for size in shape})
    if facts["spread"] is not None:
        checks.array(tensors, f"{prefix}spread.weights", Numbers("K+4", -1e6, 1e6), sizes)
        quantiles = checks.array(tensors, f"{prefix}spread.quantiles", Numbers("T"), sizes)
        if (np.diff(quantiles) < 0).any():
            checks.fail(f"its array '{prefix}spread.quantiles' does not rise")


def _check_experts(checks: Checks, tensors: Tensors, prefix: str, sizes: Sizes, *, linear: bool) -> None:
    """Check what goes on learning: gains, what regressors are measured by, and the first weights."""
    numbers = checks.array(tensors, f"{prefix}experts.numbers", Numbers("4", -1.0), {**sizes, "4": 4})
    noise, scaled_noise, unit, season = numbers.tolist()
    if min(noise, scaled_noise) < _SMALL or unit < 0 or (season >= 0) != (sizes.get("seasons", 0) > 0):
        checks.fail(f"its array '{prefix}experts.numbers' is not a variance twice, a unit and a season")
    regressors = 0
    if linear:
        seasons = sizes.get("seasons", 0)
        regressors = 1 + sizes["label lags"] + SEASONAL * seasons + sizes["input lags"] * sizes["I"]
        if seasons and season != 1 + sizes["label lags"] + SEASONAL - 1:
            checks.fail(f"its array '{prefix}experts.numbers' names a season that is none")
    sizes |= {"Z": regressors, "Z+1": regressors + 1, "S+1": sizes["K"] + (regressors if unit else 0) + 1}
    forgetting = checks.array(
        tensors, f"{prefix}experts.forgetting", Numbers("forgettings", LEAST_FORGETTING, 1.0), sizes
    )
    if not 1 <= len(forgetting) <= 2 or (forgetting >= 1).any():
        checks.fail(f"its array '{prefix}experts.forgetting' is not one or two factors below 1")
    gains = {"experts.readout.gain": "E,S+1,S+1"} | ({"experts.linear.gain": "one,Z+1,Z+1"} if linear else {})
    for name, shape in gains.items():
        # What it is the inverse of has a ridge: it cannot be larger, and it is symmetric.
        most = 1e4 * sizes["S+1" if "readout" in name else "Z+1"]
        gain = checks.array(tensors, prefix + name, Numbers(shape, -most, most), {**sizes, "one": 1})
        if not _positive_definite(gain):
            checks.fail(f"its array '{prefix}{name}' is not the inverse of second moments")
    if linear:
        measures = {"experts.centre": Numbers("Z"), "experts.deviation": Numbers("Z", _SMALL)}
        checks.arrays(tensors, measures, prefix, sizes)
    grown = f"{prefix}experts.{BOOSTING}."
    boosting = any(name.startswith(grown) for name in tensors)
    if boosting:
        checks.arrays(tensors, _TREE_ARRAYS, grown, sizes)
        trees = Trees.from_arrays({name: tensors[grown + name] for name in _TREE_ARRAYS})
        if wrong := trees.broken(sizes["P"] + sizes["Z"] if linear else 0):
            checks.fail(f"its boosting {wrong}")
    names = names_of(tuple(forgetting), linear=linear, season=season >= 0, boosting=boosting)
    must = Numbers("experts", 1e-9, 1.0)
    prior = checks.array(tensors, f"{prefix}experts.prior", must, {**sizes, "experts": len(names)})
    if abs(prior.sum() - 1) > 1e-6:
        checks.fail(f"its array '{prefix}experts.prior' does not add up to 1")


def _check_forecaster(checks: Checks, tensors: Tensors, facts: Facts, header: Facts) -> None:
    prefix = "forecaster."
    sizes = _check_network(checks, tensors, facts, prefix)
    checks.facts(facts, {"known": names}, "forecaster: ")
    same = all(facts[name] == header[name] for name in ("input_names", "target_name"))
    if not same or facts["series"] or not set(facts["known"]) <= set(facts["input_names"]):
        checks.fail("its forecaster is not one of these inputs and this target")
    if facts["context"] != "window":
        checks.fail("its forecaster carries a state through a series, and forecasts are made from windows")
    if sizes["H"] < 2 or facts["window"] > header["window"] + _CHOSEN_WINDOW:
        checks.fail("its forecaster looks no rows ahead, or back on more rows than its model")
    known = 0 if facts["recipe"]["blind"] else len(facts["known"])
    sizes["F"] = sizes["P"] + CHANGES + known + SEASONAL_AHEAD * sizes.get("seasons", 0)
    bands = any(name.startswith(f"{prefix}bands.") for name in tensors)
    checks.arrays(tensors, _FORECASTER_ARRAYS | (_BANDS_ARRAYS if bands else {}), prefix, sizes)
    _check_order(checks, tensors, f"{prefix}direct.low", f"{prefix}direct.high")
    if bands and (np.diff(tensors[f"{prefix}bands.quantiles"]) < 0).any():
        checks.fail(f"its array '{prefix}bands.quantiles' does not rise")


def _check_order(checks: Checks, tensors: Tensors, low: str, high: str) -> None:
    if (tensors[low] > tensors[high]).any():
        checks.fail(f"its array {low!r} lies above {high!r}")


def _positive_definite(matrices: npt.NDArray[Any]) -> bool:
    try:
        np.linalg.cholesky(matrices)  # as `Adaptation.whitening` takes it
    except np.linalg.LinAlgError:
        return False
    return bool((matrices == matrices.swapaxes(-1, -2)).all())
