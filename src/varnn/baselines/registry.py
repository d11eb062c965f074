"""Models to compare with, by name: history -> lagged -> regression, and three that are not one.

All share the contract of VARNN: ``fit(panel, validation=None)``, then ``predict(panel)`` gives every
row one step ahead from labels before that row only.
"""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from varnn._types import FloatArray
from varnn.baselines._lagged import LAG_CHOICES, LagChoice, Lags
from varnn.baselines._regression import LaggedModel
from varnn.baselines._seasonal import SeasonalLags
from varnn.baselines.armax import RegressionARMA
from varnn.baselines.boosting import Boosting
from varnn.baselines.forest import Forest
from varnn.baselines.linear import LeastSquares
from varnn.baselines.neural import Network
from varnn.baselines.persistence import Persistence
from varnn.baselines.rls import RecursiveLeastSquares
from varnn.data.panel import Panel
from varnn.errors import ConfigError, check_choice, nearest

__all__ = ["NAMES", "Baseline", "make", "options"]


class Baseline(Protocol):
    """What every model to compare with can do."""

    def fit(self, panel: Panel, *, validation: Panel | None = None) -> "Baseline":
        """Learn from rows whose label is known; validation rows only decide when to stop."""
        ...

    def predict(self, panel: Panel) -> FloatArray:
        """Predict every row one step ahead, (n_rows,) in panel order and the target's units."""
        ...


_REGISTRY: dict[str, Callable[..., Baseline]] = {
    "persistence": Persistence,
    "lr": LaggedModel(LeastSquares, Lags.static),
    "rf": LaggedModel(Forest, Lags.static),
    "mlp": LaggedModel(partial(Network, "mlp"), Lags.static),
    "arx-lr": LaggedModel(LeastSquares, Lags.of),
    "narx-rf": LaggedModel(Forest, Lags.of),
    "narx-mlp": LaggedModel(partial(Network, "mlp"), Lags.of),
    "narx-gbm": LaggedModel(Boosting, Lags.of),
    "seasonal-arx": LaggedModel(LeastSquares, SeasonalLags),
    "seasonal-gbm": LaggedModel(Boosting, SeasonalLags),
    "rls-arx": RecursiveLeastSquares,
    "armax": RegressionARMA,
    "rnn": LaggedModel(partial(Network, "rnn"), Lags.sequence),
    "lstm": LaggedModel(partial(Network, "lstm"), Lags.sequence),
    "gru": LaggedModel(partial(Network, "gru"), Lags.sequence),
}
NAMES: tuple[str, ...] = tuple(_REGISTRY)


def make(name: str, *, lags: LagChoice = "correct", random_state: int = 2025, **settings: Any) -> Baseline:
    """Unfitted baseline of a name.

    Parameters
    ----------
    name : str
        One of ``baselines.NAMES``. Static: ``lr``, ``rf``, ``mlp`` see the row's own inputs. Lagged:
        ``arx-lr``, ``narx-rf``, ``narx-mlp``, ``narx-gbm``, ``rls-arx`` also see the labels and inputs
        of the ``window - 1`` rows before. Seasonal: ``seasonal-arx`` is least squares and ``seasonal-gbm``
        boosting on the last 24 labels, those around this hour a day and a week ago, inputs as ``arx-lr``
        sees them, and the calendar; without times, on the last labels and inputs alone. Sequences: ``rnn``,
        ``lstm``, ``gru`` see past inputs only, as published, or with ``fair=True`` what the lagged ones
        see. ``armax`` is a regression with ARMA errors, ``persistence`` the last label.
    lags : {"correct", "as-published"}, default "correct"
        ``"correct"``, or ``"as-published"``: the paper's lagged rows leave out y[t-1]. Models without
        such lags take no notice.
    random_state : int, default 2025
        Seed; models that draw nothing take no notice.
    **settings : Any
        Further options of the model, such as ``window``; :func:`options` lists them.

    Returns
    -------
    Baseline
        With ``fit(panel)`` and ``predict(panel)``.

    Examples
    --------
    >>> import numpy as np
    >>> from varnn import Panel, baselines
    >>> level = np.sin(np.arange(300) / 30)
    >>> panel = Panel.from_arrays(None, level)
    >>> error = baselines.make("arx-lr").fit(panel).predict(panel) - level
    >>> bool(np.abs(error[4:]).max() < 1e-6)
    True
    """
    if name not in _REGISTRY:
        raise ConfigError(f"there is no baseline {name!r}. {nearest(name, NAMES)}")
    check_choice("lags", lags, LAG_CHOICES)
    known = options(name)
    for setting in settings:
        if setting not in known:
            raise ConfigError(f"the baseline {name!r} has no option {setting!r}. {nearest(setting, known)}")
    shared = {"lags": lags, "random_state": random_state}
    settings |= {setting: value for setting, value in shared.items() if setting in known}
    return _REGISTRY[name](**settings)


def options(name: str) -> tuple[str, ...]:
    """Names of what :func:`make` accepts for a baseline, beside its name.

    Parameters
    ----------
    name : str
        One of ``baselines.NAMES``.

    Examples
    --------
    >>> options("rls-arx")
    ('lags', 'window', 'forgetting', 'ridge')
    """
    if name not in _REGISTRY:
        raise ConfigError(f"there is no baseline {name!r}. {nearest(name, NAMES)}")
    return tuple(inspect.signature(_REGISTRY[name]).parameters)
