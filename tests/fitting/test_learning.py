"""What a model learns and forecasts does not depend on the units of its target and inputs."""

import numpy as np
import pytest

from varnn import VARNNRegressor
from varnn.model.experts import NEVER


@pytest.mark.parametrize("exponent", [-60, -40, 40])
def test_units_do_not_matter(exponent: int) -> None:
    """Powers of two change no digit, so that nothing may change but the size."""
    generator = np.random.default_rng(0)
    inputs = generator.normal(size=(300, 2))
    inputs[:, 1] = 1.5  # it never changes
    labels = generator.normal(size=300).cumsum() + inputs[:, 0]
    unit, found = 2.0**exponent, []
    for factor in (1.0, unit):
        model = VARNNRegressor(epochs=1, hidden_size=4, ensemble=1, random_state=0, horizon=4)
        model.fit(factor * inputs[:200], factor * labels[:200])
        experts = model.fitted_.experts
        assert experts is not None
        seen = model.predict(factor * inputs[200:], factor * labels[200:])
        ahead = model.forecast().prediction
        found.append((seen / factor, ahead / factor, experts.deviation == NEVER))
    np.testing.assert_array_equal(found[1][2], found[0][2])
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-9)
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-9)
