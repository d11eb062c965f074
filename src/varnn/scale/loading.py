"""What `varnn.load` does: a file of one model, or of many."""

from pathlib import Path
from typing import Any

from varnn.estimator import loading
from varnn.scale.models import Models, is_of_many


def load(path: str | Path) -> Any:
    """Read a model that :meth:`VARNNRegressor.save` wrote, or open the many of `varnn.scale.fit_many`.

    Parameters
    ----------
    path : str or Path
        A ``.varnn`` file; or a ``.varnns`` file or a folder of ``.varnn`` files, of which each model is read
        when it is asked for.

    Returns
    -------
    VARNNRegressor, or Models
        Fitted; torch is not needed to predict with it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import varnn
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = varnn.VARNNRegressor(epochs=1, hidden_size=4).fit(X, X[:, 0])
    >>> path = pathlib.Path(tempfile.mkdtemp(), "house.varnn")
    >>> model.save(path)
    >>> bool((varnn.load(path).predict(X, X[:, 0]) == model.predict(X, X[:, 0])).all())
    True
    """
    return Models.open(path) if is_of_many(Path(path)) else loading.load(path)
