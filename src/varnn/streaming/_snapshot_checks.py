"""Is this the state of a stream of that model? As `varnn.persistence.model_checks`, for snapshots.

A snapshot holds what a stream that has just begun would hold, in the same shapes: so it is held against a
fresh one, once its number of series is known to be true.
"""

from collections.abc import Mapping

import numpy as np

from varnn.data.rules import Rule, flag, listed, names, number, optional, table, text, whole
from varnn.errors import ModelFileError
from varnn.model.fitted import Fitted
from varnn.persistence.model_checks import Checks, Facts, Numbers, Tensors
from varnn.step.layout import CARRIED, Block
from varnn.step.series import SeriesStep

_LARGE = 1e120  # of what labels up to 1e100 leave behind
_LARGEST = {"seen": 1e20, "mean_square": 1e205}  # of what labels however large leave: squares of errors, too
_MAYBE_MISSING = {"accepted", "pending", "linear_residual"}
_COUNTS = ("rows", "waited", "waiting", "n_rejected", "n_shifts", "n_glitches")
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
    "quiet": whole(0, 1 << 53),
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
    checks = Checks(what)
    checks.facts(header, _SNAPSHOT)
    checks.facts(header, {"answered": number(-_LARGE, _LARGE)}, all_there=False)
    if header["monitor"] is not None:
        checks.facts(header["monitor"], _MONITOR, "monitor: ")
        if unknown := set(header["monitor"]) - set(_MONITOR):
            checks.fail(f"its monitor has {sorted(unknown)[0]!r}, which no monitor has")
    n_series = header["n_series"] or 1
    sizes = {"n": n_series}
    least = n_series * len(Block(fitted.step, 2).carried) // 24  # a block of two holds some numbers once
    if "step" not in tensors or tensors["step"].size < least:  # before memory is set aside for its series
        checks.fail(f"its array 'step' is missing, or is not that of {n_series} series")
    if "pending" in tensors:
        sizes["D"] = len(fitted.input_names)
        shape = "D" if header["n_series"] is None else "n,D"
        checks.array(tensors, "pending", Numbers(shape, missing=True), sizes)


def check_states(tensors: Tensors, fresh: Tensors, what: str) -> None:
    """Hold the arrays of a snapshot against those of a stream that has just begun."""
    checks = Checks(what)
    if not any(name.startswith("recent.") for name in tensors):  # it was taken without a forecaster
        fresh = {name: array for name, array in fresh.items() if not name.startswith("recent.")}
    for name, like in fresh.items():
        if name == "step":  # bytes, whose numbers `check_step` looks at
            if tensors[name].shape != like.shape or tensors[name].dtype != like.dtype:
                checks.fail(f"its array 'step' must hold {like.dtype} of shape {like.shape}")
            continue
        shape, floats = ",".join(map(str, like.shape)), like.dtype.kind == "f"
        must = Numbers(shape, -_LARGE, _LARGE, kind=(like.dtype.name,), missing=floats)
        array = checks.array(tensors, name, must, {str(size): size for size in like.shape})
        if floats and name != "recent.inputs" and (np.isnan(array) & ~np.isnan(like)).any():
            checks.fail(f"its array {name!r} holds NaN")
    if "recent.seen" in fresh and not _COUNT.holds(tensors["recent.seen"][0]):
        checks.fail("its array 'recent.seen' is no number of rows")


def check_step(step: SeriesStep, what: str) -> None:
    """Reject numbers that no series can carry."""
    checks, model = Checks(what), step.model
    for block in step.blocks:
        state = block.state
        for name in CARRIED:
            values = getattr(state, name)
            known = np.isfinite(values) | (np.isnan(values) if name in _MAYBE_MISSING else False)
            limit = _LARGEST.get(name, _LARGE)
            if name == "seen" and model.carried:  # beyond its limit a state begins again
                limit = min(limit, 1.001 * max(model.state_limit, model.input_limit))
            if (
                not known.all()
                or (np.abs(values, where=np.isfinite(values), out=np.zeros(values.shape)) > limit).any()
            ):
                checks.fail(f"its numbers {name!r} are not finite, or too large")
        for name in _COUNTS:
            if (getattr(state, name) < 0).any() or (getattr(state, name) > 1 << 53).any():
                checks.fail(f"its numbers {name!r} are no counts")
        for name in ("has_label", "has_been_negative"):
            if not np.isin(getattr(state, name), (0, 1)).all():
                checks.fail(f"its numbers {name!r} are neither 0 nor 1")
        rows = state.rows[0]
        if not float(rows).is_integer() or not (state.seen[..., 0] == 1).all():
            checks.fail("its rows are not those of a series")
        if (
            (np.diff(state.quantiles, axis=1) < 0).any()
            or (state.recent_sizes < 0).any()
            or (state.inflation < 0).any()
        ):
            checks.fail("its quantiles do not rise, or sizes are negative")
        if not (state.mean_square > 0).all() or (state.raised_bound < 0).any():
            checks.fail("its mean square or raised bound is not positive")


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
    checks.facts(header, {"total": _TOTAL})
    strangers = set(header["brought"]) - set(header["series"])
    if len(header["moments"]) != len(header["series"]) or strangers:
        checks.fail("its time steps are not those of its series")
