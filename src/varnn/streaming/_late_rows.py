"""A row whose label may come late."""

from dataclasses import dataclass

import numpy as np

from varnn._types import FloatArray


@dataclass(slots=True)
class Row:
    """A row that may be done again."""

    x: FloatArray  # (D,), as it was given
    time: np.datetime64 | None
    prediction: float  # as it was answered
    label: float | None = None  # None while it waits, or is open; NaN where none will come
