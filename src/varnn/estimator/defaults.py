"""Defaults of the estimator, for Python and for the command alike; those of its details are in `Details`."""

from typing import Any, Final

VARIANT: Final = "ARM+AM"
HIDDEN_SIZE = 64
LEARNING_RATE = 4e-3
ENSEMBLE = 4
VALIDATION_FRACTION = 0.2
SEED = 2025
MAX_ROWS = 2_000_000

# What the paper's models have, where it is not the default.
PUBLISHED: dict[str, Any] = {
    "window": 5,
    "hidden_size": 128,
    "epochs": 50,
    "learning_rate": 3e-3,
    "refit": False,
    "ensemble": 1,
    "linear": False,
    "calendar": None,
    "adapt": None,
    "intervals": False,
    "scale": "minmax",
}
