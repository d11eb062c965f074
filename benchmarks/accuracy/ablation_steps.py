"""The steps from the paper's model to the default, and the models beside them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from varnn import baselines, evaluation
from varnn._types import FloatArray
from varnn.data.panel import Panel
from varnn.estimator.details import Details
from varnn.estimator.regressor import VARNNRegressor
from varnn.network.cell import Variant

DATA = ("appliances", "bidmc", "beijing", "beijing, causal")
_NARROW = ("appliances", "beijing", "beijing, causal")
BARE: dict[str, Any] = {"linear": False, "ensemble": 1, "calendar": None, "adapt": None}
PLAIN: dict[str, Any] = {
    **BARE,
    "learning_rate": 2e-3,
    "details": Details(weight_ema=0.0, patience=None),
}


@dataclass(frozen=True)
class Step:
    """One step: a name, what it adds in words, and how to make its model from a seed."""

    name: str
    adds: str
    make: Callable[[int], evaluation.Model]
    only: tuple[str, ...] = DATA  # data sets it makes sense on


def _baseline(name: str, **settings: Any) -> Callable[[int], evaluation.Model]:
    return lambda seed: baselines.make(name, random_state=seed, **settings)


def _paper(variant: Variant) -> Callable[[int], evaluation.Model]:
    return lambda seed: VARNNRegressor.paper(variant, random_state=seed)


def _varnn(**settings: Any) -> Callable[[int], evaluation.Model]:
    return lambda seed: VARNNRegressor(random_state=seed, **settings)


class _OnAllRows(VARNNRegressor):
    """The default, trained again on training and validation rows once everything is chosen."""

    def fit(self, X: Any, y: Any = None, *, validation: Panel | None = None, **more: Any) -> "_OnAllRows":
        if validation is None:
            super().fit(X, y, **more)
            return self
        from varnn import fitting

        rows, seed = joined(X, validation), cast(int, self.random_state)  # as the step sets it
        self.fitted_, self.forecaster_ = fitting.fit(
            self.settings(), X, validation, rows=rows, refit=True, seed=seed, **more
        )
        self.history_ = self.fitted_.training.history
        return self


class _ARXOnAllRows:
    """Correct ARX, fitted to the same rows."""

    def __init__(self) -> None:
        self.model = baselines.make("arx-lr")

    def fit(self, panel: Panel, *, validation: Panel | None = None) -> "_ARXOnAllRows":
        self.model.fit(panel if validation is None else joined(panel, validation))
        return self

    def predict(self, panel: Panel) -> FloatArray:
        return self.model.predict(panel)


def joined(before: Panel, after: Panel) -> Panel:
    """Put the rows of two panels together, series by series.

    Examples
    --------
    >>> first = Panel.from_arrays(None, [1.0, 2.0], series=["a", "b"])
    >>> joined(first, Panel.from_arrays(None, [3.0, 4.0], series=["a", "c"])).target.tolist()
    [1.0, 3.0, 2.0, 4.0]
    """
    ids = (*before.ids, *(one for one in after.ids if one not in before.ids))
    pieces, lengths = [], []
    for name in ids:
        own = [
            (panel, slice(*panel.starts[panel.ids.index(name) :][:2].tolist()))
            for panel in (before, after)
            if name in panel.ids
        ]
        pieces += own
        lengths.append(sum(rows.stop - rows.start for _, rows in own))
    timed = before.time is not None and after.time is not None
    return replace(
        before,
        inputs=np.concatenate([panel.inputs[rows] for panel, rows in pieces]),
        target=np.concatenate([panel.target[rows] for panel, rows in pieces]),
        starts=np.cumsum([0, *lengths]),
        ids=ids,
        time=np.concatenate([np.asarray(panel.time)[rows] for panel, rows in pieces]) if timed else None,
        rows=np.arange(sum(lengths)),
    )


def _last(**settings: Any) -> Callable[[int], evaluation.Model]:
    return lambda seed: _OnAllRows(random_state=seed, **settings)


# 24 lags of BIDMC's 375 inputs are 9,400 columns: boosting sees 4 there.
ABLATION_STEPS = (
    Step("persistence", "the last value", _baseline("persistence")),
    Step("ARX", "linear, 4 lags", _baseline("arx-lr")),
    Step("boosting", "gradient boosting on 24 lags", _baseline("narx-gbm", window=25), only=_NARROW),
    Step("boosting, 4 lags", "gradient boosting on 4 lags", _baseline("narx-gbm"), only=("bidmc",)),
    Step("RM", "the paper's model", _paper("RM")),
    Step("ARM+AM", "the paper's best", _paper("ARM+AM")),
    Step("longer", "window 24, half of it in the loss, standard scaling, cosine", _varnn(**PLAIN)),
    Step("averaged", "a running mean of the weights, twice the learning rate", _varnn(**BARE)),
    Step("linear part", "starts from a seasonal ridge ARX, corrects it", _varnn(**{**BARE, "linear": True})),
    Step("four members", "mean of 4 seeds", _varnn(calendar=None, adapt=None)),
    Step("calendar", "time of day and week, where validation says so", _varnn(adapt=None)),
    Step("adapting", "experts that learn on, aggregated: the default", _varnn()),
    Step("peers", "what the other series just did", _varnn(peers=True), only=("beijing", "beijing, causal")),
    Step("all rows", "validation rows too, once all is chosen", _last(), only=("appliances", "bidmc")),
    Step("peers, all rows", "the same", _last(peers=True), only=("beijing", "beijing, causal")),
    Step("ARX, all rows", "linear, 4 lags, fitted to the same rows", lambda _: _ARXOnAllRows()),
)  # fmt: skip

DRAW_NOTHING = ("persistence", "ARX", "boosting", "boosting, 4 lags", "ARX, all rows")
