"""An estimator's settings: refused where they make no sense, and as plain values for a file."""

from collections.abc import Mapping
from typing import Any, get_args

import numpy as np

from varnn.data.preparation import FILLS, SCALES
from varnn.data.rules import Rule, choice, either, flag, listed, names, number, optional, text, whole
from varnn.errors import ConfigError, ModelFileError
from varnn.estimator.details import Details
from varnn.model.adaptation import LEAST_FORGETTING
from varnn.model.calendar import CYCLES
from varnn.model.experts import BOOSTING
from varnn.model.intervals.methods import METHODS
from varnn.network.cell import VARIANTS, MemoryActivation, Residual

_FORGETTING = number(LEAST_FORGETTING, 1, below=True)
_SEED = either(whole(0, 2**32 - 1), Rule("a RandomState", lambda one: isinstance(one, np.random.RandomState)))

_FLAT: dict[str, Rule] = {
    "variant": choice(*VARIANTS),
    "window": optional(whole(1)),
    "hidden_size": whole(1),
    "epochs": optional(whole(1)),
    "learning_rate": number(0, above=True),
    "ensemble": whole(1),
    "linear": flag,
    "calendar": optional(
        either(choice("auto"), listed(choice(*CYCLES), f"a list of some of {list(CYCLES)}, each once"))
    ),
    "peers": flag,
    "adapt": Rule("'constant-gain' or None", optional(choice("constant-gain")).holds),
    "experts": listed(choice(BOOSTING), "() or ('boosting',), the experts there are to choose from"),
    "intervals": either(flag, choice(*METHODS)),
    "horizon": whole(1),
    "known_inputs": optional(names),
    "validation_fraction": number(0, 1, below=True),
    "refit": flag,
    "scale": choice(*SCALES),
    "fill": choice(*FILLS),
    "device": text,
    "random_state": optional(_SEED),
    "verbose": either(flag, whole(0)),
    "details": optional(Rule("Details(...)", lambda one: isinstance(one, Details))),
}
_DETAILS: dict[str, Rule] = {
    "memory_size": optional(whole(1)),
    "memory_activation": choice(*get_args(MemoryActivation)),
    "residual": choice(*get_args(Residual)),
    "loss_rows": optional(whole(1)),
    "batch_size": optional(whole(1)),
    "schedule": choice("constant", "cosine"),
    "patience": optional(whole(1)),
    "weight_ema": number(0, 1, below=True),
    "gradient_clip": optional(number(0, above=True)),
    "context": choice("auto", "series", "window"),
    "forgetting": Rule(
        f"'auto' or a number from {LEAST_FORGETTING} to below 1",
        either(choice("auto"), _FORGETTING).holds,
    ),
    "positive": Rule("true, false or 'auto'", either(flag, choice("auto")).holds),
    "max_rows": optional(whole(1)),
    "engine": text,  # names are those of the registry, which a fit asks: it needs torch
}


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse settings of :class:`varnn.VARNNRegressor` that are of the wrong kind, or contradict each other.

    Examples
    --------
    >>> from varnn import VARNNRegressor
    >>> check_settings(VARNNRegressor(ensemble=0).get_params())
    Traceback (most recent call last):
    ...
    varnn.errors.ConfigError: ensemble must be a whole number, at least 1; got 0.
    """
    _check(_FLAT, settings)
    if settings["details"] is not None:
        _check(_DETAILS, settings["details"].get_params(), "details.")
    if settings["peers"] and not settings["linear"]:
        raise ConfigError("peers=True needs linear=True: a row sees what the linear part left to its peers.")
    if settings["experts"] and not settings["linear"]:
        raise ConfigError("experts=('boosting',) needs linear=True: trees are grown from what that leaves.")
    if settings["experts"] and settings["adapt"] is None:
        raise ConfigError(
            "experts=('boosting',) needs adapt='constant-gain': with adapt=None no expert is weighted."
        )


def wrong_value(name: str, value: Any) -> str | None:
    """Say what is wrong with a value of one setting, whatever the others are; None if nothing is.

    Examples
    --------
    >>> wrong_value("details__patience", -1)
    'details.patience must be a whole number, at least 1, or None; got -1.'
    """
    rules, field = (_DETAILS, name.removeprefix("details__")) if "__" in name else (_FLAT, name)
    return rules[field].broken(name.replace("__", "."), value) if field in rules else None


def checked_details(details: Any) -> Details:
    """Details as given, or the default ones for None; other things are refused."""
    if wrong := _FLAT["details"].broken("details", details):
        raise ConfigError(wrong)
    return Details() if details is None else details


def _check(rules: Mapping[str, Rule], values: Mapping[str, Any], where: str = "") -> None:
    for name, value in values.items():
        if name in rules and (wrong := rules[name].broken(f"{where}{name}", value)):
            raise ConfigError(wrong)


def with_details(params: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters to set, those of the details (``details__patience``) put together; unknown ones are refused.

    Examples
    --------
    >>> with_details({"details__patience": 3}, {"details": None, "details__patience": 8})
    {'details': Details(patience=3)}
    """
    for name in params:
        if name not in known and not name.startswith("details__"):
            raise ConfigError(
                f"Invalid parameter {name!r} of VARNNRegressor. Valid parameters are: {[*known]}."
            )
    flat = {name: value for name, value in params.items() if not name.startswith("details__")}
    seldom = {name.removeprefix("details__"): value for name, value in params.items() if name not in flat}
    if not seldom:
        return flat
    given = flat.get("details", known["details"])
    details = checked_details(given).changed(**seldom)
    # None stays None where nothing changes, so that set_params(**get_params()) changes nothing.
    return {**flat, "details": None if given is None and details == Details() else details}


def settings_of_file(settings: Mapping[str, Any], path: object) -> dict[str, Any]:
    """Undo :func:`plain_settings`; settings that no model has are refused."""
    known, details = dict(settings), settings.get("details")
    named = {*_DETAILS} if details is None else {*details} if isinstance(details, Mapping) else set()
    if known.keys() != _FLAT.keys() or named != _DETAILS.keys():
        raise ModelFileError(
            f"{str(path)!r} was written by another version of varnn: its settings are not those of a model "
            "here. Fit the model and save it again."
        )
    known["details"] = None if details is None else Details(**details)
    try:
        check_settings(known)
    except ConfigError as error:
        raise ModelFileError(f"{str(path)!r} holds settings that no model has: {error}") from None
    known["experts"] = tuple(known["experts"])  # JSON has no tuples
    return known


def plain_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as values that survive JSON, from which an equal estimator can be made again.

    Examples
    --------
    >>> plain_settings({"window": np.int64(5), "random_state": np.random.RandomState(0), "details": None})
    {'window': 5, 'random_state': None, 'details': None}
    """
    plain = {name: _plain(value) for name, value in settings.items() if name != "details"}
    for name in ("known_inputs", "experts"):
        if plain.get(name) is not None:
            plain[name] = list(plain[name])
    if not isinstance(plain["random_state"], int | None):
        plain["random_state"] = None  # a generator's state is no setting to come back to
    details = settings["details"]
    plain["details"] = None
    if details is not None:
        plain["details"] = {name: _plain(value) for name, value in details.get_params().items()}
    return plain


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
