"""Settings that are seldom changed, in one record."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from varnn.errors import ConfigError
from varnn.estimator import defaults
from varnn.network.cell import MemoryActivation, Residual


@dataclass(frozen=True, kw_only=True, repr=False)
class Details:
    """Details of the network and of its training, for the ``details`` of :class:`varnn.VARNNRegressor`.

    Parameters
    ----------
    memory_size : int or None, default=48
        Width of the residual memory; None is as wide as the inputs, as in the paper.
    memory_activation : {"relu", "tanh"}, default="relu"
        Nonlinearity of the memory.
    residual : {"projected", "scalar", "none"}, default="projected"
        The paper's memory, or one of its ablations.
    loss_rows : int or None, default=None
        Rows at the end of a training window whose errors make the loss. The paper takes the last one; None
        takes the second half, which learns nearly as much from a tenth of the windows.
    batch_size : int or None, default=None
        Windows in a batch; None is chosen for about a hundred steps an epoch.
    schedule : {"constant", "cosine"}, default="cosine"
        Of the learning rate; "cosine" goes down to zero.
    patience : int or None, default=5
        Epochs without a better validation loss after which training ends; None never ends early.
    weight_ema : float, default=0.99
        Decay of the exponential moving average of the weights, which is what is validated and kept. 0 keeps
        the weights themselves.
    gradient_clip : float or None, default=1.0
        Longest gradient allowed.
    context : {"auto", "series", "window"}, default="auto"
        What a row is predicted from: a state that is carried through all rows before it in its series, or
        the rows of one window, as in the paper, which takes many times as long. Training is on windows
        either way. "auto" carries the state, unless that is worse on the validation rows.
    forgetting : float or "auto", default="auto"
        Weight that a label keeps with each one after it while the readout goes on learning, from 0.9 to below
        1; "auto" has two readouts, of 0.9999 and 0.999.
    positive : bool or "auto", default="auto"
        Whether the target cannot be negative: predictions and bounds then stop at zero, until a label of the
        series is below it. "auto" takes that from the labels.
    max_rows : int or None, default=2_000_000
        Latest rows to learn from, about so many over all series: more would cost memory and time for
        little. None takes all of them.
    engine : {"auto", "cuda", "reference", "fused", "unrolled", "compiled"}, default="auto"
        How gradients are computed: "auto" takes the fastest that handles the cell; "reference" is the
        readable one. They agree to rounding. "cuda" is the kernel that trains whole networks on a GPU, which
        "auto" takes where it can, and an error that says why where it cannot.

    Examples
    --------
    >>> Details(patience=20)
    Details(patience=20)
    >>> from varnn import VARNNRegressor
    >>> VARNNRegressor(details=Details(patience=20)).get_params()["details__patience"]
    20
    """

    memory_size: int | None = 48
    memory_activation: MemoryActivation = "relu"
    residual: Residual = "projected"
    loss_rows: int | None = None
    batch_size: int | None = None
    schedule: Literal["constant", "cosine"] = "cosine"
    patience: int | None = 5
    weight_ema: float = 0.99
    gradient_clip: float | None = 1.0
    context: Literal["auto", "series", "window"] = "auto"
    forgetting: float | Literal["auto"] = "auto"
    positive: bool | Literal["auto"] = "auto"
    max_rows: int | None = defaults.MAX_ROWS
    engine: str = "auto"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Fields by name, as scikit-learn asks a part for them: a search may vary ``details__patience``."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def changed(self, **changes: Any) -> "Details":
        """The same but for some fields; unknown ones are refused as scikit-learn refuses parameters."""
        for name in changes:
            if name not in NAMES:
                raise ConfigError(
                    f"Invalid parameter {name!r} for the details. Valid parameters are "
                    f"{[f'details__{one}' for one in NAMES]}."
                )
        return replace(self, **changes)

    def __repr__(self) -> str:
        given = [
            f"{one.name}={getattr(self, one.name)!r}"
            for one in fields(self)
            if repr(getattr(self, one.name)) != repr(one.default)  # of arrays, too
        ]
        return f"Details({', '.join(given)})"


NAMES = tuple(one.name for one in fields(Details))
_PUBLISHED = Details(
    memory_size=None,
    loss_rows=1,
    batch_size=128,
    schedule="constant",
    patience=50,
    weight_ema=0.0,
    gradient_clip=None,
    context="window",
    positive=False,
    max_rows=None,
)


def published(variant: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of the paper's models but for some changes, of the estimator and of its details alike.

    Examples
    --------
    >>> published("RM", {"loss_rows": 2})["details"].loss_rows
    2
    """
    flat = {**defaults.PUBLISHED, "variant": variant, **changes}
    if flat.pop("details", None) is not None:
        raise ConfigError("paper() has details of its own; change them by name: paper('RM', loss_rows=2).")
    seldom = {name: flat.pop(name) for name in NAMES if name in flat}
    return {**flat, "details": _PUBLISHED.changed(**seldom)}


def flattened(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of an estimator with those of its details beside the others, for people to read.

    Examples
    --------
    >>> flattened({"window": 5, "details": Details(patience=3)})["patience"]
    3
    """
    details = settings.get("details") or Details()
    plain = {name: value for name, value in settings.items() if name != "details"}
    return {**plain, **details.get_params()}
