"""The paper's protocol on the real Appliances data: published figures are reached."""

from pathlib import Path
from typing import Any

import pytest

from varnn import VARNNRegressor, datasets, evaluation


@pytest.mark.parametrize(("variant", "at_most"), [("RM", 0.00335), ("ARM", 0.00315)])
def test_appliances_reaches_the_published_error(variant: str, at_most: float, data_folder: Path) -> None:
    panel = datasets.load("appliances", paper=True, download=False)
    parts = evaluation.cut(panel, "paper")
    named: Any = variant
    model = VARNNRegressor.paper(named).fit(parts.train, validation=parts.validation)
    best = min(line["validation_loss"] for line in model.history_)
    assert 0.0025 < best <= at_most
