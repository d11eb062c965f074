"""Whether chance may explain a difference: also where there are hardly any rows."""

import numpy as np
import pytest

from varnn.evaluation.significance import difference


@pytest.mark.parametrize("rows", [4, 6, 12])
def test_few_rows_prove_little(rows: int) -> None:
    """Of models that are equally good, the bootstrap calls few different, though more than the 5 % it names.

    A block as long as the rows made all resamples the same: it called all of them different up to 8 rows.
    """
    losses = np.random.default_rng(1).chisquare(1, size=(200, 2, rows))
    found = [difference(first, second) for first, second in losses]
    assert all(one.low < one.high for one in found)
    assert np.mean([one.p_bootstrap < 0.05 for one in found]) < 0.35


def test_one_row_proves_nothing() -> None:
    found = difference(np.array([1.0]), np.array([2.0]))
    assert found.change == -0.5 and found.p == found.p_bootstrap == 1 and not found.significant
