"""Predict, observe, stop, go on elsewhere: python examples/live_stream.py [--rows 4000]."""

import argparse
from pathlib import Path

import varnn
from varnn import Stream, VARNNRegressor, datasets, evaluation

MODEL, STATE = Path("pump.varnn"), Path("pump.state")


def main() -> None:
    """Fit on the past, then live through the last fifth, with a restart in the middle."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4000)
    panel = datasets.load("synthetic", kind="level-shift", rows=parser.parse_args().rows, seed=3)
    parts = evaluation.cut(panel)
    VARNNRegressor().fit(parts.train, validation=parts.validation).save(MODEL)

    live = varnn.load(MODEL).stream()
    for x, y in zip(parts.validation.inputs, parts.validation.target, strict=True):
        live.predict(x)  # the rows just before now: the stream starts warm
        live.observe(y)

    largest, when = 0.0, 0
    half = len(parts.test) // 2
    for step, (x, y) in enumerate(zip(parts.test.inputs, parts.test.target, strict=True)):
        if step == half:  # as after a restart: another process, the same numbers
            STATE.write_bytes(live.snapshot())
            live = Stream.restore(varnn.load(MODEL), STATE.read_bytes())
        live.predict(x)
        innovation = live.observe(None if step % 50 == 0 else y)  # now and then a label is lost
        if abs(innovation) > largest:  # never so for NaN, the innovation of a lost label
            largest, when = abs(innovation), step

    print(f"{live.steps} steps; the largest error was {largest:.2f}, {when} steps into the test rows.")
    print(f"Wrote {MODEL} and {STATE}.")


if __name__ == "__main__":
    main()
