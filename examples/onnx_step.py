"""One streamed step as ONNX, run without varnn: python examples/onnx_step.py [--rows 2000]."""

import argparse
from pathlib import Path

import numpy as np
import onnxruntime  # any other runtime will do

from varnn import VARNNRegressor, datasets, evaluation

STEP = Path("pump.onnx")
TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64}


def main() -> None:
    """Fit and export; then run the test rows in onnxruntime, and beside it in a stream."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2000)
    panel = datasets.load("synthetic", kind="level-shift", rows=parser.parse_args().rows, seed=3)
    parts = evaluation.cut(panel)
    model = VARNNRegressor().fit(parts.train, validation=parts.validation)
    model.to_onnx(STEP)

    session = onnxruntime.InferenceSession(STEP)
    states = {  # of one series; all begin at zero
        one.name: np.zeros([1, *one.shape[1:]], TYPES[one.type])
        for one in session.get_inputs()
        if one.name not in ("x", "y_previous")
    }
    live, label, apart = model.stream(), np.nan, 0.0
    for x, y in zip(parts.test.inputs, parts.test.target, strict=True):
        row = {"x": x[None].astype(np.float64), "y_previous": np.array([label])}
        prediction, *following = session.run(None, row | states)
        states, label = dict(zip(states, following, strict=True)), y
        apart = max(apart, abs(prediction.item() - live.predict(x)))
        live.observe(y)

    print(f"{live.steps} steps; ONNX and stream were never further apart than {apart:.0e}.")
    print(f"Wrote {STEP}, {STEP.stat().st_size / 1e3:.0f} kB.")


if __name__ == "__main__":
    main()
