"""Models of all kinds say of their rows what the golden record says, in NumPy and in compiled code."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from tests.step.golden import KINDS, outputs, recorded

# Largest differences, in standard deviations of the labels; weights of experts are compared as they are.
TOLERANCE = {"plain": 1e-9, "compiled": 1e-6}

# The network computes in single precision, so sums in another order differ by up to 1e-6. Plain code sums in
# the order of the record in a stream of a model that carries its state. It does not where the recorded code
# went another way: batches (now bit-equal to streams, which they were not), fleets, closed loops, and
# windows, whose inputs were projected apart from their memory.
REORDERED_WAYS = {"batch", "resumed", "fleet", "closed loop"}
REORDERED_KINDS = {"windows", "RM", "ARM+AM"}

# BLAS sums in another order on another kind of processor: this is the kind of the record.
RECORDED_ON = "Haswell"
OTHER_PROCESSOR = 5e-6


def allowed(code: str, kind: str, way: str) -> float:
    """Return the largest difference that rounding explains."""
    if {library.get("architecture") for library in threadpool_info()} - {None, RECORDED_ON}:
        return OTHER_PROCESSOR
    if way in REORDERED_WAYS or kind in REORDERED_KINDS:
        return max(TOLERANCE.values())
    return TOLERANCE[code]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("code", TOLERANCE)
def test_a_kind_of_model_says_what_is_recorded(kind: str, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if code == "plain":
        monkeypatch.setenv("VARNN_COMPILED", "0")
    else:
        pytest.importorskip("numba")
        monkeypatch.delenv("VARNN_COMPILED", raising=False)
    model, rows, deviation, expected = recorded(kind)
    found = outputs(kind, model, rows)
    assert list(found) == list(expected)
    beyond = {}
    for name, values in expected.items():
        assert found[name].shape == values.shape, name
        way, _, what = name.partition("/")
        unit = 1.0 if what == "weights" else deviation
        difference = float(np.abs(found[name] - values).max()) / unit
        if not difference <= allowed(code, kind, way):  # NaN is none
            beyond[name] = difference
    assert not beyond
