"""Models of all kinds say of their rows what the golden record says, in NumPy and in compiled code."""

import numpy as np
import pytest

from tests.step.golden import KINDS, outputs, recorded

# Largest differences, in standard deviations of the labels; weights of experts are compared as they are.
TOLERANCE = {"plain": 1e-9, "compiled": 1e-6}

# Where more is allowed, and why: by code and ``kind/way``, such as ("compiled", "timed/stream").
ALLOWED: dict[tuple[str, str], float] = {}


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
        if not difference <= ALLOWED.get((code, f"{kind}/{way}"), TOLERANCE[code]):  # NaN is none
            beyond[name] = difference
    assert not beyond
