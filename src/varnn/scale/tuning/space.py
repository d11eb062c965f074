"""What a search may change: settings by name, each with a range or a list of choices.

Choices may be of any kind that a setting is, such as ``()`` and ``("boosting",)``; a study holds them as
texts.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from varnn.data.rules import shown
from varnn.errors import ConfigError, nearest, require
from varnn.estimator.details import NAMES
from varnn.estimator.elsewhere import wrong_value
from varnn.estimator.regressor import VARNNRegressor
from varnn.model.experts import BOOSTING

# Settings that have no part in the error of the next row, or that a trial has its own of.
NOT_SEARCHED = {
    "details": "search its fields by name",
    "random_state": "a seed is no setting to choose by: the verdict is over several",
    "verbose": "it changes no prediction",
    "intervals": "it changes no prediction",
    "device": "it changes no prediction",
    "details__engine": "it changes no prediction",
    "horizon": "trials are judged by the next row alone",
    "known_inputs": "trials are judged by the next row alone",
    "validation_fraction": "trials have validation rows of their own",
    "refit": "trials are not trained again on their validation rows",
    "details__max_rows": "give the tuner fewer rows",
}
# With these a network learns something else, and its loss cannot be set beside that of another trial.
OTHER_LOSS = frozenset({"linear", "scale", "fill", "peers", "calendar", "details__residual"})
_LOGARITHMIC = 8  # times its lower bound: a range that is drawn from by its logarithm


@dataclass(frozen=True)
class Choices:
    """A list of values, of which the model's own is the first."""

    values: tuple[Any, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """The values as a study holds them."""
        return tuple(json.dumps(one, default=_plain) for one in self.values)

    def own(self, value: Any) -> str:
        """What a study holds for a value."""
        return json.dumps(value, default=_plain)

    def value(self, text: str) -> Any:
        """Value that a study holds as this text."""
        return self.values[self.texts.index(text)]


class Space:
    """What a search may change.

    Parameters
    ----------
    model : VARNNRegressor
        Whose settings they are.
    given : mapping or None, default None
        Settings by name, as in ``model.get_params()``; fields of the details also without ``details__``. Each
        has a pair (low, high), a list of values, or a distribution of Optuna. None is :func:`default_space`.

    Examples
    --------
    >>> space = Space(VARNNRegressor(), {"window": (6, 48), "adapt": ["constant-gain", None]})
    >>> space.names, space.settings({"window": 12, "adapt": "null"})
    (('window', 'adapt'), {'window': 12, 'adapt': None})
    """

    def __init__(self, model: VARNNRegressor, given: Any = None) -> None:
        if given is None:
            given = default_space(model)
        if not (isinstance(given, Mapping) and given):
            raise ConfigError(
                "space must be a mapping from settings to what they may be, such as {'window': (6, 48), "
                f"'variant': ['RM', 'ARM+AM']}}; got {shown(given)}."
            )
        own = model.get_params()
        self.choices: dict[str, Choices] = {}
        self.distributions: dict[str, Any] = {}
        for name, values in given.items():
            known = _known(name, own)
            if known in self.distributions:
                raise ConfigError(f"space must name each setting once; {known!r} is there twice.")
            self.distributions[known] = self._distribution(known, values, own[known])
            for value in values if isinstance(values, list | tuple) else ():
                if wrong := wrong_value(known, value):  # else every trial with it would fail
                    raise ConfigError(f"space[{name!r}] holds a value that is none: {wrong}")

    @property
    def names(self) -> tuple[str, ...]:
        """Settings that may change."""
        return tuple(self.distributions)

    @property
    def by_epoch(self) -> bool:
        """Whether losses of networks in training can be compared between trials."""
        return not OTHER_LOSS & set(self.distributions)

    def settings(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Settings of a regressor for what a study holds of a trial."""
        return {
            name: self.choices[name].value(value) if name in self.choices else value
            for name, value in params.items()
        }

    def own(self, model: VARNNRegressor, settled: Mapping[str, Any]) -> dict[str, Any]:
        """The model's own settings as a study holds them: where a search begins.

        A number that is left to the rows is what they come to, ``settled``; one outside its range is moved to
        the end of it: the study then holds what is nearest, and the model is measured as it is.
        """
        params, own = {}, model.get_params()
        for name, distribution in self.distributions.items():
            value = own[name]
            if name in self.choices:
                params[name] = self.choices[name].own(value)
            elif hasattr(distribution, "choices"):
                params[name] = value if value in distribution.choices else distribution.choices[0]
            else:
                value = settled.get(name.removeprefix("details__")) if value is None else value
                low, high = distribution.low, distribution.high
                params[name] = type(low)(min(max(value, low), high)) if _is_number(value) else low
        return params

    def described(self) -> dict[str, str]:
        """The space in words that are the same for equal ones."""
        return {name: repr(one) for name, one in sorted(self.distributions.items())}

    def _distribution(self, name: str, values: Any, own: Any) -> Any:
        distributions = require("optuna", extra="tune", purpose="tuning").distributions
        if isinstance(values, distributions.BaseDistribution):
            return values
        if isinstance(values, list) and values:
            mine = json.dumps(own, default=_plain)
            others = [one for one in values if json.dumps(one, default=_plain) != mine]
            self.choices[name] = Choices((own, *others))
            return distributions.CategoricalDistribution(self.choices[name].texts)
        if not (isinstance(values, tuple) and len(values) == 2 and all(map(_is_number, values))):
            raise ConfigError(
                f"space[{name!r}] must be a pair of numbers (low, high), a list of values, or a distribution "
                f"of Optuna; got {shown(values)}."
            )
        low, high = (one.item() if isinstance(one, np.generic) else one for one in values)
        if not low < high:
            raise ConfigError(f"space[{name!r}] must have low below high; got {shown(values)}.")
        logarithmic = low > 0 and high >= _LOGARITHMIC * low
        if isinstance(low, int) and isinstance(high, int):
            return distributions.IntDistribution(low, high, log=logarithmic)
        return distributions.FloatDistribution(float(low), float(high), log=logarithmic)


def default_space(model: VARNNRegressor) -> dict[str, Sequence[Any]]:
    """What is searched where nothing is said: shape of network and memory, step size, what learns on.

    Trees beside the network are tried where LightGBM is installed and the model can have them.

    Examples
    --------
    >>> sorted(default_space(VARNNRegressor.paper("RM")))[:3]
    ['details__memory_size', 'details__weight_ema', 'hidden_size']
    """
    space: dict[str, Sequence[Any]] = {
        "variant": ["ARM+AM", "RM+AM", "ARM", "RM"],
        "hidden_size": (16, 128),
        "details__memory_size": (8, 96),
        "window": (6, 48),
        "learning_rate": (1e-3, 2e-2),
        "details__weight_ema": [0.99, 0.95, 0.997],
    }
    if model.adapt is not None:
        space["details__forgetting"] = ["auto", 0.9999, 0.999]
        if model.linear and importlib.util.find_spec("lightgbm") is not None:
            space["experts"] = [(), (BOOSTING,)]
    return space


def read_space(text: str) -> dict[str, Any]:
    """A space written as JSON: a list of values, or an object with low and high.

    Examples
    --------
    >>> read_space('{"window": {"low": 6, "high": 48}, "variant": ["RM", "ARM+AM"]}')
    {'window': (6, 48), 'variant': ['RM', 'ARM+AM']}
    """
    expected = 'space must be JSON such as {"window": {"low": 6, "high": 48}, "variant": ["RM", "ARM+AM"]}'
    try:
        given = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{expected}; got {shown(text)}, which is none: {error}.") from None
    if not isinstance(given, dict):
        raise ConfigError(f"{expected}; got {shown(text)}.")
    space: dict[str, Any] = {}
    for name, values in given.items():
        if isinstance(values, dict):
            if set(values) != {"low", "high"}:
                raise ConfigError(f"{expected}; of {name!r} it gives {shown(values)}.")
            values = values["low"], values["high"]
        space[name] = values
    return space


def _known(name: Any, own: Mapping[str, Any]) -> str:
    """Full name of a setting; others are refused."""
    full = f"details__{name}" if name in NAMES else name
    if full not in own:
        raise ConfigError(f"space names {shown(name)}, which is no setting. {nearest(str(name), own)}")
    if full in NOT_SEARCHED:
        raise ConfigError(f"space must leave {name!r} out: {NOT_SEARCHED[full]}.")
    return str(full)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else repr(value)
