"""Compile ahead what the default model is quick by: all of a step, and a batch of rows.

``python -m varnn.estimator.warm_up`` does so at once, for example where an image is made. A fit does so in a
process beside it, unless it was done before: by the time a model is there, so is its compiled code.
"""

import os
import time
from pathlib import Path

import numpy as np

from varnn.data.panel import Panel
from varnn.model.adaptation import Adaptation
from varnn.model.experts import FORGETTING, LINEAR_FORGETTING, Experts, names_of
from varnn.model.fitted import Fitted
from varnn.model.intervals.error_scale import ErrorScale
from varnn.model.intervals.levels import TAUS
from varnn.model.pipeline import FeaturePipeline
from varnn.model.prediction import predict_intervals
from varnn.network import compiled_code
from varnn.network.cell import Architecture, Weights, initial_weights
from varnn.streaming.stream import Stream

SWITCH = "VARNN_WARM_UP"  # variable of the environment; 0 never begins a process
_LONGEST = 300.0  # seconds after which one that began is not waited for
_begun: list[bool] = []  # whether this process looked already


def begin() -> None:
    """Compile in a process beside this one, unless that was done, or is being done, or would not be kept."""
    if _begun or os.environ.get(SWITCH) == "0" or not compiled_code.is_there():
        return
    _begun.append(True)
    from varnn.model.intervals.compiled_error_scale import tracked_rows
    from varnn.network.jit import is_kept
    from varnn.streaming.compiled_kernel import predict_rows

    folder = predict_rows.stats.cache_path  # type: ignore[attr-defined]  # numba's
    if folder is not None and not is_kept(tracked_rows) and _is_first(Path(folder)):  # it is compiled last
        compiled_code.compile_beside(__name__)


def _is_first(folder: Path) -> bool:
    """Tell whether no other process said lately that it compiles; say so."""
    mark = folder / "begun"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if mark.exists() and time.time() - mark.stat().st_mtime > _LONGEST:
            mark.unlink(missing_ok=True)
        mark.touch(exist_ok=False)
    except OSError:
        return False
    return True


def compile_now() -> None:
    """Compile: go through some rows of a model that was never trained."""
    model, panel = _untrained()
    live = Stream(model)
    live.predict(panel.inputs[0], interval=0.9)
    live.observe(panel.target[0])
    predict_intervals(model, panel, 0.9)
    sum(live.weights.values())


def _untrained() -> tuple[Fitted, Panel]:
    """A small model of the default's kind, and rows enough for compiled code."""
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(compiled_code.ROWS_WORTH_IT, 2))
    panel = Panel.from_arrays(rows[:, :1], rows[:, 1].cumsum())
    pipeline = FeaturePipeline.fit(panel, None, scale="standard", fill="forward", linear=True)
    cell = Architecture.of("ARM+AM", n_inputs=len(pipeline.scaling.input_offset), hidden_size=4)
    drawn = initial_weights(cell, seed=0).as_dict()
    regressors = pipeline.linear.form.width if pipeline.linear is not None else 0
    gains = [
        np.stack(members * [np.eye(size)]) for members, size in ((2, 5 + regressors), (1, 1 + regressors))
    ]
    names = names_of(FORGETTING, linear=True, season=False)
    model = Fitted(
        architecture=cell,
        weights=Weights(**{name: np.stack([matrix, matrix]) for name, matrix in drawn.items()}),
        pipeline=pipeline,
        window=2,
        context="series",
        state_limit=1e3,
        input_names=panel.input_names,
        target_name=panel.target_name,
        experts=Experts(
            readout=Adaptation(forgetting=FORGETTING, gain=gains[0], noise=1.0, common=1 + regressors),
            linear=Adaptation(forgetting=LINEAR_FORGETTING, gain=gains[1], noise=1.0),
            centre=np.zeros(regressors),
            deviation=np.ones(regressors),
            unit=1.0,
            season=None,
            noise=1.0,
            prior=np.full(len(names), 1 / len(names)),
        ),
        calibrator=ErrorScale(weights=np.zeros(8), unit=1.0, quantiles=4 * (TAUS - 0.5)),
    )
    return model, panel


if __name__ == "__main__":
    compile_now()
