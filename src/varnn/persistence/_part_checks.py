"""Do the parts that were made of a file give finite numbers? What no look at single arrays tells."""

import numpy as np

from varnn.model.fitted import Fitted
from varnn.model.intervals import Calibrator
from varnn.network import cell
from varnn.persistence.model_checks import Checks

_OVERFLOW = 1e30  # float32 ends at 3e38, and inputs may be some millions of times those tried here


def check_steady(fitted: Fitted, what: str) -> None:
    """Refuse a network whose memory grows beyond all bounds within one window of ordinary rows.

    Or, where a state is carried, one that a state within its limit could drive there.
    """
    if fitted.carried:
        if _most_carried(fitted) > _OVERFLOW:
            Checks(what).fail("a state as large as its limit drives its network beyond all bounds")
        return
    architecture, weights, rows = fitted.architecture, fitted.weights, 8
    generator = np.random.default_rng(0)
    limit = min(3.0, fitted.pipeline.scaling.input_limit)
    state = cell.initial_state(architecture, like=np.zeros((fitted.n_members, rows, 1), np.float32))
    largest = 0.0
    with np.errstate(all="ignore"):
        for _ in range(fitted.window):
            x = generator.uniform(-limit, limit, (rows, architecture.n_inputs)).astype(np.float32)
            predicted, hidden = cell.predict(
                architecture, weights, cell.project(architecture, weights, x), state
            )
            error = generator.uniform(-3, 3, (rows, 1)).astype(np.float32) - predicted
            state = cell.update(architecture, weights, error, hidden, state)
            largest = np.maximum(largest, np.abs(error).max() + hidden.max())  # keeps NaN
    if not largest <= _OVERFLOW:
        Checks(what).fail("the memory of its network grows beyond all bounds within a window")


def _most_carried(fitted: Fitted) -> float:
    """Largest number a hidden layer or an output can be, whatever the rows and whatever the state."""
    weights, inputs = fitted.weights, fitted.architecture.n_inputs
    most = np.full(weights.fusion.shape[1], fitted.state_limit)
    most[:inputs] = fitted.pipeline.scaling.input_limit
    hidden = most @ np.abs(weights.fusion) + np.abs(weights.fusion_bias)[:, 0]  # (E, K), in double precision
    outputs = hidden[:, None] @ np.abs(weights.readout) + np.abs(weights.readout_bias)
    return float(max(hidden.max(), outputs.max()))


def check_intervals(calibrator: Calibrator | None, features: int, steps: tuple[int, ...], what: str) -> None:
    """Refuse what knows no finite bounds, for rows of so many features and so many steps (none: one)."""
    if calibrator is None:
        return
    try:
        tracker = calibrator.tracker(1)
        tracker.expect(np.ones((1, features)))
        bounds = np.stack(tracker.bounds(np.array([0.5, 0.9])))
    except (ValueError, IndexError) as error:
        Checks(what).fail(f"its intervals are not those of this model ({error})")
    if bounds.shape != (2, 1, *steps, 2) or not np.isfinite(bounds).all():
        Checks(what).fail("its intervals are not those of this model")
