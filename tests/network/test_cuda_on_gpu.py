"""The kernel on a real GPU: the checks of ``python -m benchmarks.gpu.check``, and whole fits."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from benchmarks.gpu.checks import CHECKS, Checked, why_not
from varnn import VARNNRegressor
from varnn.datasets import load

pytestmark = pytest.mark.skipif(bool(why_not()), reason=f"the kernel does not handle {why_not()}")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_kernel_is_right(check: Callable[[], Iterator[Checked]]) -> None:
    found = list(check())
    assert found
    assert [one for one in found if not one.holds] == []


def test_a_model_fitted_there_is_as_good_as_one_of_the_cpu() -> None:
    panel = load("synthetic", kind="regimes", rows=3000, seed=1)
    scores = [VARNNRegressor(device=device, epochs=10).fit(panel).score(panel) for device in ("auto", "cpu")]
    assert scores[0] == pytest.approx(scores[1], abs=0.02)


def test_one_seed_is_one_model() -> None:
    panel = load("synthetic", kind="regimes", rows=1500, seed=1)
    first, second = (VARNNRegressor(epochs=5).fit(panel).predict(panel) for _ in range(2))
    np.testing.assert_array_equal(first, second)
