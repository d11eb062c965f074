"""The card for a hub: its front matter is YAML with the fields that the hub knows."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import varnn
from varnn import Panel, VARNNRegressor, datasets
from varnn.adapters import hub
from varnn.errors import OutputError

yaml = pytest.importorskip("yaml", reason="PyYAML reads the front matter")


@pytest.fixture(scope="module")
def model() -> VARNNRegressor:
    return VARNNRegressor(epochs=1, hidden_size=4, ensemble=1).fit(datasets.load("synthetic", rows=300))


def parted(text: str) -> tuple[dict[str, Any], str]:
    nothing, front, body = text.split("---\n", 2)
    assert nothing == ""
    return yaml.safe_load(front), body


def test_the_front_matter_is_what_a_hub_reads(model: VARNNRegressor) -> None:
    facts, body = parted(
        hub.model_card(model, "A house", licence="cc-by-4.0", tags=["energy"], words="Why: so.")
    )
    assert list(facts) == ["library_name", "license", "pipeline_tag", "tags", "model-index"]
    assert facts["library_name"] == "varnn" and facts["license"] == "cc-by-4.0" and "energy" in facts["tags"]
    (result,) = facts["model-index"][0]["results"]
    ours = model.fitted_.training.validation["model"] ** 0.5
    assert result["metrics"][0]["value"] == pytest.approx(ours, abs=1e-6)
    assert body.startswith("\n# A house\n") and "Predicts 'load' one row ahead" in body and "Why: so." in body
    assert "epochs=1" in body and "learning_rate" not in body  # settings that are the default's are not said


def test_without_validation_rows_no_figures_are_claimed() -> None:
    panel = datasets.load("synthetic", rows=300)
    model = VARNNRegressor(epochs=1, hidden_size=4, ensemble=1, validation_fraction=0.0).fit(panel)
    facts, _ = parted(hub.model_card(model, "A house"))
    assert "model-index" not in facts and "license" not in facts


def test_no_name_breaks_it() -> None:
    name = 'a: "b"\n---\n- [c] #d \u00e4'
    panel = Panel.from_arrays(None, np.sin(np.arange(200.0)), target_name=name)
    model = VARNNRegressor(epochs=1, hidden_size=4, ensemble=1).fit(panel)
    text = hub.model_card(model, "A: house # 1", data=name)
    facts, _ = parted(text)
    assert facts["model-index"][0]["name"] == "A: house # 1"
    assert facts["model-index"][0]["results"][0]["dataset"]["name"] == name


def test_a_folder_holds_card_and_model(model: VARNNRegressor, tmp_path: Path) -> None:
    hub.save_folder(model, tmp_path / "house", "A house")
    again = varnn.load(tmp_path / "house" / "model.varnn")
    assert again.fitted_.fingerprint == model.fitted_.fingerprint
    (tmp_path / "file").write_text("")
    with pytest.raises((OutputError, FileExistsError)):
        hub.save_folder(model, tmp_path / "file", "A house")


def test_the_library_of_the_hub_reads_it(model: VARNNRegressor) -> None:
    """As far as it can without asking the hub."""
    library = pytest.importorskip(
        "huggingface_hub", reason="huggingface_hub is not here; make adapters has it"
    )
    found = library.ModelCard(hub.model_card(model, "A house", licence="mit"), ignore_metadata_errors=False)
    assert found.data.library_name == "varnn" and found.data.license == "mit"
    assert found.data.model_name == "A house"
    assert [one.metric_type for one in found.data.eval_results] == ["rmse", "rmse"]
    assert yaml.safe_load(found.data.to_yaml())["pipeline_tag"] == "time-series-forecasting"
