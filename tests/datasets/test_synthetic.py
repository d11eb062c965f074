"""The best predictors are checked against brute force: no regression on the past can improve them."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from varnn.datasets import synthetic


@pytest.mark.parametrize("strength", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("kind", synthetic.KINDS)
def test_the_best_errors_cannot_be_predicted(kind: str, strength: float) -> None:
    """Errors of a conditional mean are uncorrelated with everything known before."""
    stream = synthetic.make(kind, rows=12_000, strength=strength, seed=3)
    errors = stream.panel.target - stream.best
    inputs = stream.panel.inputs
    known = np.column_stack(
        [inputs[2:], inputs[1:-1], errors[1:-1], errors[:-2], stream.best[2:], stream.panel.target[1:-1]]
    )
    late = errors[2:]
    products = (known - known.mean(axis=0)) * late[:, None]
    # Each row may have its own variance, so each product is judged by its own spread.
    scores = products.sum(axis=0) / np.sqrt((products**2).sum(axis=0))
    assert np.abs(scores).max() < 5
    assert abs(late.mean()) < 5 * late.std() / np.sqrt(len(late))


@pytest.mark.parametrize("kind", [one for one in synthetic.KINDS if one != "heavy-tails"])
def test_trouble_grows_with_strength(kind: str) -> None:
    def unexplained(strength: float) -> float:
        """Give the variance that the inputs of the same row leave open."""
        panel = synthetic.make(kind, rows=4000, seed=5, strength=strength).panel
        return float(
            panel.target.var()
            * (1 - LinearRegression().fit(panel.inputs, panel.target).score(panel.inputs, panel.target))
        )

    assert unexplained(2.0) > unexplained(1.0) > unexplained(0.0)


@pytest.mark.parametrize("kind", synthetic.KINDS)
def test_the_same_seed_gives_the_same_stream(kind: str) -> None:
    first, second = (synthetic.make(kind, rows=300, seed=9) for _ in range(2))
    assert np.array_equal(first.panel.target, second.panel.target)
    assert not np.array_equal(first.panel.target, synthetic.make(kind, rows=300, seed=10).panel.target)


def test_a_wrong_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="kind must be one of"):
        synthetic.make("storm")


@pytest.mark.parametrize("kind", [one for one in synthetic.KINDS if one != "hpc-write-time"])  # it multiplies
def test_without_strength_the_best_errors_are_the_noise_alone(kind: str) -> None:
    stream = synthetic.make(kind, rows=6000, strength=0.0, seed=2)
    assert (stream.panel.target - stream.best).std() == pytest.approx(0.3, rel=0.05)
