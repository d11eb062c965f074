"""The default, trained once on made rows and kept in a temporary folder for all benches that follow.

It is `VARNNRegressor()` with the calendar given instead of chosen: time of day and week, as validation
chooses them here and on the Appliances set. That its form is the same is then no matter of a draw.
"""

import getpass
import hashlib
import tempfile
from pathlib import Path
from typing import Any

import varnn
from benchmarks.cost import house
from varnn.data.panel import Panel
from varnn.estimator.loading import load
from varnn.estimator.regressor import VARNNRegressor
from varnn.model.fitted import Fitted

LEVEL = 0.9  # of every interval that is timed
TRAINING = house.APPLIANCES_ROWS * 4 // 5
CALENDAR = ("day", "week")


def trained_default(rows: int = TRAINING, **settings: Any) -> VARNNRegressor:
    """The default trained on the first rows of a made house; kept, until a line of the package changes.

    Parameters
    ----------
    rows
        Training rows.
    settings
        Of the model, for tests that have no time; and ``inputs``, their number.
    """
    inputs = settings.pop("inputs", len(house.INPUT_NAMES))
    path = _kept_at((rows, inputs, sorted(settings.items())))
    if path.exists():
        return load(path)
    model = VARNNRegressor(calendar=CALENDAR, **settings).fit(house.rows_like_appliances(rows, inputs=inputs))
    path.parent.mkdir(mode=0o700, exist_ok=True)
    model.save(path)
    return model


def rows_after_training(rows: int, model: VARNNRegressor, *, trained_on: int = TRAINING) -> Panel:
    """Rows of the same house that follow those the model was trained on."""
    panel = house.rows_like_appliances(trained_on + rows, inputs=len(model.fitted_.input_names))
    return panel.between(trained_on, trained_on + rows)


def form(fitted: Fitted) -> str:
    """Say what a model is made of, as far as it costs time.

    Examples
    --------
    >>> model = VARNNRegressor(epochs=1, hidden_size=4, ensemble=2).fit(house.rows_like_appliances(500))
    >>> form(model.fitted_)
    '26 inputs, ... members of 4 hidden units over 24 rows, ... experts, intervals'
    """
    pipeline, linear = fitted.pipeline, fitted.pipeline.linear
    members = len(fitted.weights.fusion)
    parts = [f"{len(fitted.input_names)} inputs"]
    parts.append(
        f"{members} members of {fitted.architecture.hidden_size} hidden units over {fitted.window} rows"
    )
    if pipeline.calendar:
        parts.append(f"time of {' and '.join(pipeline.calendar)}")
    if linear is not None and len(linear.periods):
        parts.append(f"seasons of {' and '.join(f'{period:.0f}' for period in linear.periods)} rows")
    if fitted.experts is not None:
        parts.append(f"{len(fitted.experts.names)} experts")
    if fitted.calibrator is not None:
        parts.append("intervals")
    return ", ".join(parts)


def _kept_at(what: object) -> Path:
    """File for a model, named by what it is made with: the package's own lines, too."""
    digest = hashlib.sha256(repr(what).encode())
    package = Path(varnn.__file__).parent
    for source in [Path(house.__file__), *sorted(package.rglob("*.py"))]:
        digest.update(source.read_bytes())
    folder = Path(tempfile.gettempdir()) / f"varnn-benchmarks-{getpass.getuser()}"
    return folder / f"default-{digest.hexdigest()[:16]}.varnn"
