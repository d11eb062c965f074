"""An estimator's settings: refused where they make no sense, and as plain values for a file."""

from collections.abc import Mapping
from typing import Any, get_args

import numpy as np

from varnn.data.preparation import FILLS, SCALES
from varnn.data.rules import Rule, choice, either, flag, listed, names, number, optional, text, whole
from varnn.errors import ConfigError, ModelFileError
from varnn.model.adaptation import LEAST_FORGETTING
from varnn.model.calendar import CYCLES
from varnn.network.cell import VARIANTS, MemoryActivation, Residual

_FORGETTING = number(LEAST_FORGETTING, 1, below=True)
_SEED = either(whole(0, 2**32 - 1), Rule("a RandomState", lambda one: isinstance(one, np.random.RandomState)))

CONSTRAINTS: dict[str, Rule] = {
    "variant": choice(*VARIANTS),
    "window": optional(whole(1)),
    "loss_rows": optional(whole(1)),
    "hidden_size": whole(1),
    "memory_size": optional(whole(1)),
    "memory_activation": choice(*get_args(MemoryActivation)),
    "residual": choice(*get_args(Residual)),
    "epochs": optional(whole(1)),
    "batch_size": optional(whole(1)),
    "learning_rate": number(0, above=True),
    "schedule": choice("constant", "cosine"),
    "max_rows": optional(whole(1)),
    "validation_fraction": number(0, 1, below=True),
    "patience": optional(whole(1)),
    "weight_ema": number(0, 1, below=True),
    "refit": flag,
    "ensemble": whole(1),
    "linear": flag,
    "calendar": optional(
        either(choice("auto"), listed(choice(*CYCLES), f"a list of some of {list(CYCLES)}, each once"))
    ),
    "peers": flag,
    "adapt": optional(choice("constant-gain")),
    "forgetting": Rule(
        f"'auto' or a number from {LEAST_FORGETTING} to below 1",
        either(choice("auto"), _FORGETTING).holds,
    ),
    "intervals": flag,
    "horizon": whole(1),
    "known_inputs": optional(names),
    "scale": choice(*SCALES),
    "fill": choice(*FILLS),
    "device": text,
    "random_state": optional(_SEED),
    "verbose": either(flag, whole(0)),
    "gradient_clip": optional(number(0, above=True)),
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
    for name, rule in CONSTRAINTS.items():
        if wrong := rule.broken(name, settings[name]):
            raise ConfigError(wrong)
    if settings["peers"] and not settings["linear"]:
        raise ConfigError("peers=True needs linear=True: a row sees what the linear part left to its peers.")


def settings_of_file(
    settings: Mapping[str, Any], defaults: Mapping[str, Any], path: object
) -> dict[str, Any]:
    """Give the settings that a file holds, and that are known here; refuse those that no model has."""
    known = {name: value for name, value in _renamed(settings).items() if name in defaults}
    try:
        check_settings({**defaults, **known})
    except ConfigError as error:
        raise ModelFileError(f"{str(path)!r} holds settings that no model has: {error}") from None
    return known


_NEW_NAMES = {"graded": "loss_rows", "averaging": "weight_ema"}  # old -> new, of settings in files
_NEW_VALUES = {("adapt", "rls"): "constant-gain"}


def _renamed(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Translate settings of files written under names that have changed since."""
    named = {_NEW_NAMES.get(name, name): value for name, value in settings.items()}
    return {
        name: _NEW_VALUES.get((name, value), value) if isinstance(value, str) else value
        for name, value in named.items()
    }


def plain_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Give settings as values that survive JSON, from which an equal estimator can be made again.

    Examples
    --------
    >>> plain_settings({"window": np.int64(5), "random_state": np.random.RandomState(0)})
    {'window': 5, 'random_state': None}
    """
    plain = {
        name: value.item() if isinstance(value, np.generic) else value for name, value in settings.items()
    }
    if plain.get("known_inputs") is not None:
        plain["known_inputs"] = list(plain["known_inputs"])
    if not isinstance(plain["random_state"], int | None):
        plain["random_state"] = None  # a generator's state is no setting to come back to
    return plain
