"""Is this the state of a stream of that model? As `varnn.persistence.model_checks`, for snapshots.

A snapshot holds what a stream that has just begun would hold, in the same shapes: so it is held against a
fresh one, once its number of series is known to be true.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from varnn.data.rules import Rule, flag, listed, names, number, optional, table, text, whole
from varnn.errors import ModelFileError
from varnn.model.aggregation import scale_column
from varnn.model.fitted import Fitted
from varnn.model.outliers import FILTER_BOUND, FILTER_COUNTS, FILTER_NUMBERS
from varnn.persistence.model_checks import Checks, Facts, Numbers, Tensors

_MOST_STATELESS = 100_000  # series of a window of one row, whose states take no room in a file
_LARGE = 1e120  # of what labels up to 1e100 leave behind
_LARGEST = {"states": 1e20, "learning": 1e205}  # of what labels however wild leave: squares of errors, too
_COUNT = whole(0, 1 << 53)
_SNAPSHOT: dict[str, Rule] = {
    "steps": _COUNT,
    "n_series": optional(whole(1, 1 << 31)),
    "time": optional(text),
    "last_time": optional(text),
    "monitor": optional(table),
}
_MONITOR: dict[str, Rule] = {
    "coverage": optional(number(0.5, 0.999)),
    "false_alarms": number(1e-9, 0.01),
    "warm_up": whole(1, 1 << 53),
    "memory": whole(1, 1 << 53),
}
_LATE: dict[str, Rule] = {
    "times": listed(optional(text), "a list of times", unique=False),
    "waiting": listed(_COUNT, "a list of rows"),
    "open": flag,
    "told": Rule(
        "a list of kinds of events, and rows",
        lambda one: (
            isinstance(one, list)
            and all(
                isinstance(each, list) and len(each) == 2 and text.holds(each[0]) and _COUNT.holds(each[1])
                for each in one
            )
        ),
    ),
}
_TIME_STEP = Rule(
    "a kind of time step and a number",
    lambda one: (
        isinstance(one, list)
        and len(one) == 2
        and one[0] in ("time", "number", "round")
        and number(-_LARGE, _LARGE).holds(one[1])
    ),
)
_BROUGHT = listed(number(-_LARGE, _LARGE), "five numbers", unique=False, most=5)
_TOTAL = Rule("five numbers", lambda one: _BROUGHT.holds(one) and len(one) == 5)
_COMPANIONS: dict[str, Rule] = {
    "now": optional(_TIME_STEP),
    "moments": listed(optional(_TIME_STEP), "a list of time steps", unique=False),
    "brought": Rule(
        "five numbers of each series",
        lambda one: (
            isinstance(one, Mapping) and all(_BROUGHT.holds(each) and len(each) == 5 for each in one.values())
        ),
    ),
}


def check_owner(header: Facts, fitted: Fitted) -> None:
    """Refuse the snapshot of another model."""
    if header.get("model") != fitted.fingerprint:
        raise ModelFileError(
            "a snapshot can only go on with the model it was taken from; this one belongs to another. "
            "Load that model, or start a new stream."
        )


def check_late(tensors: Tensors, header: Facts, fitted: Fitted, what: str) -> None:
    """Refuse what cannot be rows since the oldest one that waits for its label."""
    checks, late = Checks(what), header["late"]
    if not table.holds(late):
        checks.fail("it does not say which of its rows wait")
    checks.facts(late, _LATE, "late: ")
    rows = len(late["times"])
    sizes = {"rows": rows, "others": rows - 1, "D": len(fitted.input_names)}
    checks.array(tensors, "before", Numbers("bytes", kind=("uint8",)), {})
    checks.array(tensors, "x", Numbers("others,D", missing=True), sizes)
    checks.array(tensors, "labels", Numbers("rows", missing=True), sizes)
    checks.array(tensors, "predictions", Numbers("rows", -_LARGE, _LARGE), sizes)
    waiting = late["waiting"]
    if not waiting or waiting != sorted(waiting) or waiting[0] or waiting[-1] >= rows - late["open"]:
        checks.fail("the rows that wait are not among its rows")
    if late["open"] and not np.isnan(tensors["labels"][-1]):
        checks.fail("its open row has a label")


def check_header(tensors: Tensors, header: Facts, fitted: Fitted, what: str) -> None:
    """Refuse a snapshot of anything but this model, before memory is set aside for its series."""
    if "late" in header:
        raise ModelFileError(
            f"{what} must be that of a stream alone; it has rows that wait for their labels. Go on from it "
            "with LateLabels.restore."
        )
    checks, cell = Checks(what), fitted.architecture
    checks.facts(header, _SNAPSHOT)
    checks.facts(header, {"answered": number(-_LARGE, _LARGE)}, all_there=False)
    if header["monitor"] is not None:
        checks.facts(header["monitor"], _MONITOR, "monitor: ")
        checks.facts(header["monitor"], {"quiet": whole(0, 1 << 53)}, "monitor: ", all_there=False)
        if unknown := set(header["monitor"]) - set(_MONITOR) - {"quiet"}:
            checks.fail(f"its monitor has {sorted(unknown)[0]!r}, which no monitor has")
    n_series = header["n_series"] or 1
    sizes = {"E": fitted.n_members, "w-1": fitted.window - 1, "n": n_series}
    sizes["state"] = cell.memory_size + (not fitted.carried) + cell.activation_memory * cell.hidden_size
    shape = "w-1,n,state" if fitted.n_members == 1 else "E,w-1,n,state"
    if fitted.carried:
        shape = "E,n,state"
    most = _LARGEST["states"]
    if fitted.carried:  # beyond its limit a state begins anew; in single precision the limit is rounded
        most = min(most, 1.001 * fitted.state_limit)
    checks.array(tensors, "states", Numbers(shape, -most, most, kind=("float32",)), sizes)
    if "pending" in tensors:
        sizes["D"] = len(fitted.input_names)
        shape = "D" if header["n_series"] is None else "n,D"
        checks.array(tensors, "pending", Numbers(shape, missing=True), sizes)
    if not fitted.carried and fitted.window == 1 and n_series > _MOST_STATELESS:
        checks.fail(f"it has {n_series} series, and no states of them")


def check_states(tensors: Tensors, fresh: Tensors, fitted: Fitted, what: str) -> None:
    """Hold the arrays of a snapshot against those of a stream that has just begun."""
    checks = Checks(what)
    if not any(name.startswith("recent.") for name in tensors):  # it was taken without a forecaster
        fresh = {name: one for name, one in fresh.items() if not name.startswith("recent.")}
    if "known" not in tensors:  # it was taken when streams refused gaps
        fresh = {name: one for name, one in fresh.items() if name != "known"}
    for name, like in fresh.items():
        most = _LARGEST.get(name, _LARGE)
        shape, floats = ",".join(map(str, like.shape)), like.dtype.kind == "f"
        must = Numbers(shape, -most, most, kind=(like.dtype.name,), missing=floats)
        array = checks.array(tensors, name, must, {str(size): size for size in like.shape})
        if floats and name != "recent.inputs" and (np.isnan(array) & ~np.isnan(like)).any():
            checks.fail(f"its array {name!r} holds numbers that are none")
    if "recipe" in fresh:
        filtered = FILTER_NUMBERS if fitted.pipeline.label_filter is not None else 0
        if fitted.pipeline.linear is not None:
            observed, known = tensors["recipe"][:, 1 + filtered : 3 + filtered].T
            if not np.isin(known, (0, 1)).all():
                checks.fail("its array 'recipe' says neither yes nor no")
            if not (observed == observed[0]).all() or not _COUNT.holds(_whole(observed[0])):
                checks.fail("its array 'recipe' holds counts of rows that are none")
        if filtered:
            judged = tensors["recipe"][:, 1 : 1 + filtered]
            counts = judged[:, FILTER_COUNTS]
            if (counts < 0).any() or (counts > 1 << 53).any() or (judged[:, FILTER_BOUND] < 0).any():
                checks.fail("its array 'recipe' holds counts that are none")
    if "learning" in fresh and fitted.experts is not None:
        scales = tensors["learning"][:, scale_column(len(fitted.experts.prior))]
        if not (scales > 0).all():
            checks.fail("its array 'learning' holds a mean square that is none")
    if "lifted" in fresh and not np.isin(tensors["lifted"], (0, 1)).all():
        checks.fail("its array 'lifted' says neither yes nor no")
    if "recent.seen" in fresh and not _COUNT.holds(tensors["recent.seen"][0]):
        checks.fail("its array 'recent.seen' is no number of rows")


def _whole(value: float) -> Any:
    """A whole number as such; others stay as they are."""
    return int(value) if float(value).is_integer() else value


def check_group(tensors: Tensors, header: Facts, what: str) -> None:
    """Refuse snapshots of several series whose names and states do not go together."""
    checks = Checks(what)
    checks.facts(header, {"series": names})
    for index in range(len(header["series"])):
        checks.array(tensors, str(index), Numbers("bytes", kind=("uint8",)), {})


def check_linked(header: Facts, what: str) -> None:
    """Refuse what cannot be the time steps of series that see each other."""
    checks = Checks(what)
    checks.facts(header, _COMPANIONS)
    checks.facts(header, {"total": _TOTAL}, all_there=False)  # older ones have none
    strangers = set(header["brought"]) - set(header["series"])
    if len(header["moments"]) != len(header["series"]) or strangers:
        checks.fail("its time steps are not those of its series")
