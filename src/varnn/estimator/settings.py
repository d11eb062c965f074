"""An estimator's settings: refused where they make no sense, and as plain values for a file."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from varnn.adaptation import check_forgetting
from varnn.clock import CYCLES
from varnn.errors import ConfigError, check_choice
from varnn.preparation import FILLS, SCALES


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse settings of :class:`varnn.VARNNRegressor` that no later stage would refuse.

    Examples
    --------
    >>> from varnn import VARNNRegressor
    >>> check_settings(VARNNRegressor(ensemble=0).get_params())
    Traceback (most recent call last):
    ...
    varnn.errors.ConfigError: ensemble must be at least 1; got 0.
    """
    check_choice("scale", settings["scale"], SCALES)
    check_choice("fill", settings["fill"], FILLS)
    fraction, ensemble, calendar = (settings[one] for one in ("validation_fraction", "ensemble", "calendar"))
    if not 0 <= fraction < 1:
        raise ConfigError(f"validation_fraction must be in [0, 1); got {fraction}.")
    if ensemble < 1:
        raise ConfigError(f"ensemble must be at least 1; got {ensemble}.")
    most = settings["max_rows"]
    if most is not None and (not isinstance(most, int | np.integer) or most < 1):
        raise ConfigError(f"max_rows must be a whole number, at least 1, or None; got {most!r}.")
    if settings["peers"] and not settings["linear"]:
        raise ConfigError("peers=True needs linear=True: a row sees what the linear part left to its peers.")
    if calendar is not None and calendar != "auto":
        for cycle in calendar:
            check_choice("calendar", cycle, CYCLES)
    horizon = settings["horizon"]
    if not isinstance(horizon, int | np.integer) or horizon < 1:
        raise ConfigError(f"horizon must be a whole number, at least 1; got {horizon!r}.")
    if isinstance(settings["known_inputs"], str):
        raise ConfigError(f"known_inputs must be a list of names; got {settings['known_inputs']!r}.")
    if settings["adapt"] is not None:
        check_choice("adapt", settings["adapt"], ("rls",))
    check_forgetting(settings["forgetting"])


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
