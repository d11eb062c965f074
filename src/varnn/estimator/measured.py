"""Whether scikit-learn is about to compare predictions with labels that it did not hand over.

Its scorers by name (``scoring="neg_mean_squared_error"``), its displays, and the ``score`` of its own
meta-estimators call ``predict(X)``. Without labels this model goes on after its training rows, fed with its
own predictions; a figure measured so looks like one of one-step predictions and is none: a good model gets an
R² of 0.94 on one fold and an error that only grows on the next. No protocol of scikit-learn's tells an
estimator who asks, or hands it the labels. So the stack is looked at: only the frames right above, as long as
they are scikit-learn's, so that whoever calls ``predict(X)`` by himself is never meant.
"""

import sys
from types import FrameType

from varnn.errors import ConfigError

_LIBRARY = ("sklearn.", "joblib.")
_MEASURES = "sklearn.metrics."


def refuse_to_be_measured() -> None:
    """Refuse to predict without labels for somebody who compares with them.

    Raises
    ------
    ConfigError
        With what to use instead.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _module(frame).startswith("varnn."):
        frame = frame.f_back
    while frame is not None and _module(frame).startswith(_LIBRARY):
        if _module(frame).startswith(_MEASURES) or frame.f_code.co_name == "score":
            raise ConfigError(
                "scikit-learn compares predictions with labels here, and calls predict(X) without them: that "
                "would measure the model fed with its own predictions, not one step ahead. Give "
                "scoring=varnn.evaluation.one_step_scorer('neg_mean_squared_error'), which takes any name, "
                "scorer or metric; or leave scoring out: score(X, y) is R² one step ahead. (To measure the "
                "closed loop itself, give a function of your own: lambda model, X, y: ...)"
            )
        frame = frame.f_back


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")) + "."
