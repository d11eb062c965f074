"""A small model for tests of the service, and a folder that serves it."""

from pathlib import Path

import numpy as np

from varnn import Panel, VARNNRegressor
from varnn.service.service import Service


def save_model(path: Path) -> Path:
    """Fit a small model with intervals on two inputs, heat and wind, and save it."""
    random = np.random.default_rng(0)
    inputs = random.normal(size=(300, 2))
    target = inputs[:, 0] + 0.1 * random.normal(size=300)
    panel = Panel.from_arrays(inputs, target, input_names=["heat", "wind"], target_name="load")
    VARNNRegressor(ensemble=1, epochs=1, hidden_size=4).fit(panel).save(path)
    return path


def make_folder(place: Path, model: Path) -> Path:
    """Make a folder with a stream of the model's name."""
    with Service(place) as service:
        service.serve(model)
    return place
