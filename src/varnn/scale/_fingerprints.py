"""Settings and rows -> what tells whether a model was fitted with the same."""

import hashlib
import json
from typing import Any

import numpy as np

from varnn.data.panel import Panel
from varnn.estimator.elsewhere import checked_settings
from varnn.estimator.regressor import VARNNRegressor

_NO_MATTER = ("device", "verbose")  # where a model is trained, and what is printed, is nothing of the model


def settings_of(regressor: VARNNRegressor) -> str:
    """Settings as JSON, always in the same order; those that no model has are refused.

    Examples
    --------
    >>> settings_of(VARNNRegressor(device="cpu")) == settings_of(VARNNRegressor())
    True
    """
    plain = checked_settings(regressor)
    for name in _NO_MATTER:
        plain.pop(name, None)
    return json.dumps(plain, sort_keys=True, default=list)


def fingerprint(panel: Panel, settings: str) -> str:
    """Hash of all that a fit depends on: a changed cell, column, series or setting gives another.

    Examples
    --------
    >>> rows = [Panel.from_arrays(None, [1.0, 2.0, last]) for last in (3.0, 4.0)]
    >>> fingerprint(rows[0], "{}") == fingerprint(rows[1], "{}")
    False
    """
    digest = hashlib.sha256(settings.encode())
    texts = panel.texts
    names = [
        list(panel.ids),
        panel.starts.tolist(),
        list(panel.input_names),
        panel.target_name,
        panel.time_name,
        panel.series_name,
        dict(panel.read_as),
        panel.categories,
        None if texts is None else texts.values,
    ]
    digest.update(json.dumps(names, default=str).encode("utf-8", "surrogatepass"))
    for array in (panel.inputs, panel.target, panel.time, None if texts is None else texts.codes):
        _add(digest, array)
    return digest.hexdigest()


def _add(digest: Any, array: Any) -> None:
    if array is None:
        digest.update(b"none")
        return
    digest.update(f"{array.dtype.str} {array.shape}".encode())
    plain = array.view(np.int64) if array.dtype.kind in "mM" else array
    digest.update(np.ascontiguousarray(plain).data)
