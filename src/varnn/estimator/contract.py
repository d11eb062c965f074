"""What scikit-learn asks of an estimator, without scikit-learn.

scikit-learn works with any object that has the methods below; to derive from its `BaseEstimator` is not
needed, and to import it takes longer than all that a stream needs. What only scikit-learn asks for, tags and
the routing of metadata, is made of its own classes at that moment: whoever asks has imported it.
"""

import inspect
from copy import deepcopy
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from varnn.data.rules import shown
from varnn.errors import ConfigError, NotFittedError

T = TypeVar("T", bound="Regressor")

_NO_METADATA = ("self", "X", "y")
_UNCHANGED = "$UNCHANGED$"  # scikit-learn's word for a request that stays as it is


class Regressor:
    """Base of an estimator whose constructor stores its parameters, and that has ``fitted_`` once fitted.

    Examples
    --------
    >>> class Mean(Regressor):
    ...     def __init__(self, shrink: float = 0.0) -> None:
    ...         self.shrink = shrink
    >>> Mean(shrink=0.5), Mean().get_params()
    (Mean(shrink=0.5), {'shrink': 0.0})
    """

    n_features_in_: int
    feature_names_in_: npt.NDArray[np.object_]
    _estimator_type = "regressor"  # read by libraries older than scikit-learn's tags

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; deep, those of a part that has some too, as ``part__name``."""
        found = {name: getattr(self, name) for name in sorted(parameters(type(self)))}
        parts = {name: one for name, one in found.items() if deep and hasattr(one, "get_params")}
        for part, value in parts.items():
            found |= {f"{part}__{name}": one for name, one in value.get_params().items()}
        return found

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, those of a part as ``part__name``; unknown ones are refused."""
        known = parameters(type(self))
        of_parts: dict[str, dict[str, Any]] = {}
        for name, value in params.items():
            part, nested, inner = name.partition("__")
            if part not in known:
                raise ConfigError(
                    f"Invalid parameter {part!r} of {type(self).__name__}. Valid parameters are: {[*known]}."
                )
            if nested:
                of_parts.setdefault(part, {})[inner] = value
            else:
                setattr(self, name, value)
        for part, values in of_parts.items():
            getattr(self, part).set_params(**values)
        return self

    def __repr__(self) -> str:
        given = [
            f"{name}={shown(getattr(self, name))}"
            for name, default in parameters(type(self)).items()
            if repr(getattr(self, name)) != repr(default)  # of arrays, too
        ]
        return f"{type(self).__name__}({', '.join(given)})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fitted_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, RegressorTags, Tags, TargetTags

        return Tags(
            estimator_type="regressor",
            target_tags=TargetTags(required=True),
            transformer_tags=None,
            classifier_tags=None,
            regressor_tags=RegressorTags(),
            input_tags=InputTags(allow_nan=True),
        )

    def get_metadata_routing(self) -> Any:
        """What ``fit``, ``predict`` and ``score`` take beside X and y, as scikit-learn's routing asks."""
        from sklearn.utils.metadata_routing import MetadataRequest, get_routing_for_object

        if hasattr(self, "_metadata_request"):
            return get_routing_for_object(self._metadata_request)
        found = MetadataRequest(owner=type(self).__name__)
        for method in ("fit", "predict", "score"):
            for name in _metadata(type(self), method):
                getattr(found, method).add_request(param=name, alias=None)
        return found

    def set_fit_request(self, **requests: bool | str | None) -> Self:
        """Say which metadata a meta-estimator of scikit-learn is to hand to ``fit``: ``series=True``.

        Parameters
        ----------
        **requests : bool, str or None
            Of each argument of ``fit`` beside X and y: True to get it, False not to, None to refuse it, or
            the name under which it is given. Needs ``sklearn.set_config(enable_metadata_routing=True)``.
        """
        return self._with_requests("fit", requests)

    def set_predict_request(self, **requests: bool | str | None) -> Self:
        """Say which metadata is handed to ``predict``, as :meth:`set_fit_request`."""
        return self._with_requests("predict", requests)

    def set_score_request(self, **requests: bool | str | None) -> Self:
        """Say which metadata is handed to ``score``, as :meth:`set_fit_request`."""
        return self._with_requests("score", requests)

    def _with_requests(self, method: str, requests: dict[str, bool | str | None]) -> Self:
        from sklearn import get_config

        if not get_config()["enable_metadata_routing"]:
            raise RuntimeError(
                f"set_{method}_request() needs metadata routing, which is off. Turn it on with "
                "sklearn.set_config(enable_metadata_routing=True)."
            )
        known = _metadata(type(self), method)
        if unknown := [name for name in requests if name not in known]:
            raise TypeError(f"{method}() takes no {unknown[0]!r} to be routed; it takes {list(known)}.")
        routing = self.get_metadata_routing()
        for name, alias in requests.items():
            if alias != _UNCHANGED:
                getattr(routing, method).add_request(param=name, alias=alias)
        self._metadata_request = routing
        return self


def parameters(estimator: type) -> dict[str, Any]:
    """Parameters of a constructor and their defaults, in its order."""
    signature = inspect.signature(estimator.__init__)  # type: ignore[misc]  # of a class, not of an instance
    return {name: one.default for name, one in signature.parameters.items() if name != "self"}


def _metadata(estimator: type, method: str) -> tuple[str, ...]:
    """Names of what a method takes for each row, beside inputs and labels."""
    taken = inspect.signature(getattr(estimator, method)).parameters.values()
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return tuple(one.name for one in taken if one.kind in named and one.name not in _NO_METADATA)


def unfitted(estimator: T) -> T:
    """A copy with the same parameters, and nothing that was learnt: ``sklearn.base.clone``.

    Examples
    --------
    >>> from varnn import VARNNRegressor
    >>> unfitted(VARNNRegressor(window=5))
    VARNNRegressor(window=5)
    """
    fresh = type(estimator)(**deepcopy(estimator.get_params(deep=False)))
    if hasattr(estimator, "_metadata_request"):
        fresh._metadata_request = deepcopy(estimator._metadata_request)
    return fresh


def check_is_fitted(estimator: Regressor) -> None:
    """Refuse an estimator that is not fitted, in scikit-learn's words."""
    if not estimator.__sklearn_is_fitted__():
        raise NotFittedError(
            f"This {type(estimator).__name__} instance is not fitted yet. Call 'fit' with appropriate "
            "arguments before using this estimator."
        )
