"""The bench of tuning: its tables, and the page that quotes what it left."""

from pathlib import Path

import numpy as np

from benchmarks.accuracy.tune import tables
from benchmarks.record import read, save
from varnn import Panel, VARNNRegressor
from varnn.scale import VARNNTuner

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "tune-appliances.json"


def test_tables_are_saved_and_read_back(tmp_path: Path) -> None:
    labels = np.sin(np.arange(200) / 9) + np.random.default_rng(0).normal(size=200) / 5
    model = VARNNRegressor(ensemble=1, epochs=1, hidden_size=4)
    tuner = VARNNTuner(model, trials=3, origins=1, seeds=1, space={"window": (4, 9), "memory_size": [4, 8]})
    found = tables(tuner.fit(Panel.from_arrays(None, labels)), "made", 1, 90.0)
    save(tmp_path / "tune.json", found, "a command")
    assert read(tmp_path / "tune.json").measured == found
    outcome = {row["what"]: row["value"] for row in found[0].rows}
    assert outcome["minutes"] == 1.5 and outcome["trials"] == 3
    assert [row["model"] for row in found[1].rows][-2:] == ["persistence", "linear ARX"]
    assert found[2].rows[0]["settings"] == "default"


def test_the_page_quotes_the_committed_search() -> None:
    saved = read(RESULTS)
    outcome = {row["what"]: row["value"] for row in saved.measured[0].rows}
    page = (ROOT / "docs" / "how-to" / "tuning.md").read_text()
    assert saved.complete and outcome["trials"] == 30
    for name in ("minutes", "validation ratio", "test ratio", "p (DM)", "p (bootstrap)"):
        assert f"{outcome[name]:g}" in page
    assert f"The {outcome['kept']} is kept" in page
    assert saved.command in page
