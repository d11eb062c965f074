"""The flavour for MLflow, against a real MLflow with its store in a file; no server."""

import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import varnn
from varnn import Panel, VARNNRegressor, datasets
from varnn.errors import DataError, MissingExtraError

mlflow = pytest.importorskip("mlflow", reason="the flavour needs varnn[mlflow]; make adapters has it")
pd = pytest.importorskip("pandas")

pytestmark = pytest.mark.filterwarnings("ignore")  # MLflow's own


@pytest.fixture(scope="module")
def model() -> VARNNRegressor:
    return VARNNRegressor(epochs=1, hidden_size=4, ensemble=1).fit(datasets.load("synthetic", rows=300))


@pytest.fixture(scope="module")
def house() -> Any:
    """Rows with time, series, texts and gaps."""
    generator, hours = np.random.default_rng(0), pd.date_range("2026-01-01", periods=200, freq="h")
    frame = pd.DataFrame(
        {
            "when": [*hours, *hours],
            "meter": ["north"] * 200 + ["south"] * 200,
            "sky": np.where(np.arange(400) % 5 < 3, "sun", "rain"),
            "heat": generator.normal(size=400),
            "load": np.sin(np.arange(400) / 4),
        }
    )
    frame.loc[7, "load"] = math.nan
    return frame


@pytest.fixture(params=["sqlite", "files"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    place = f"sqlite:///{tmp_path}/runs.db" if request.param == "sqlite" else f"file://{tmp_path}/runs"
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(place)
    mlflow.set_registry_uri(place)
    yield place
    mlflow.set_tracking_uri(before)
    mlflow.set_registry_uri(before)


def test_a_logged_model_comes_back_and_predicts_the_same(store: str, model: VARNNRegressor) -> None:
    panel = datasets.load("synthetic", rows=300)
    with mlflow.start_run() as run:
        logged = varnn.mlflow.log_model(model, "house", registered_model_name="house", params={"rows": 300})
    again = varnn.mlflow.load_model(logged.model_uri)
    np.testing.assert_array_equal(again.predict(panel), model.predict(panel))
    registered = varnn.mlflow.load_model("models:/house/1")
    np.testing.assert_array_equal(registered.predict(panel), model.predict(panel))
    assert logged.flavors["varnn"]["varnn_version"] == varnn.__version__
    assert mlflow.get_run(run.info.run_id).info.status == "FINISHED"


def test_pyfunc_predicts_a_table_by_name(tmp_path: Path, house: Any) -> None:
    panel = Panel.from_frame(house, target="load", time="when", series="meter")
    model = VARNNRegressor(epochs=1, hidden_size=4, ensemble=1).fit(panel)
    varnn.mlflow.save_model(model, tmp_path / "house")
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "house"))
    found = loaded.predict(house)
    expected = model.predict_frame(house, interval=0.9)
    assert list(found.columns) == ["prediction"]
    np.testing.assert_array_equal(found["prediction"], expected["prediction"])
    bounded = loaded.predict(house, params={"interval": 0.9})
    assert list(bounded.columns) == ["prediction", "lower_90", "upper_90"]
    np.testing.assert_array_equal(bounded["upper_90"], expected["upper_90"])
    without = house.drop(columns="load").iloc[:3]
    assert np.isfinite(loaded.predict(without)["prediction"]).all()
    with pytest.raises(Exception, match="heat"):  # its signature says what must be there
        loaded.predict(house.drop(columns="heat"))
    assert isinstance(loaded.get_raw_model(), VARNNRegressor)


def test_signature_and_example_are_those_of_the_model(tmp_path: Path, house: Any) -> None:
    panel = Panel.from_frame(house, target="load", time="when", series="meter")
    model = VARNNRegressor(epochs=1, hidden_size=4, ensemble=1).fit(panel)
    varnn.mlflow.save_model(model, tmp_path / "house", metadata={"site": "attic"})
    described = mlflow.models.Model.load(tmp_path / "house")
    kinds = {one.name: (one.type.name, one.required) for one in described.signature.inputs.inputs}
    assert kinds == {
        "heat": ("double", True),
        "sky": ("string", True),
        "load": ("double", False),
        "when": ("datetime", False),
        "meter": ("string", False),
    }
    assert described.signature.outputs.input_names() == ["prediction"]
    assert described.metadata == {"site": "attic"}
    example = described.load_input_example(str(tmp_path / "house"))
    assert len(example) == 5 and set(example.columns) == set(kinds)
    assert set(example["sky"]) <= {"sun", "rain"}
    served = mlflow.pyfunc.load_model(str(tmp_path / "house")).predict(varnn.mlflow.example_of(model))
    assert np.isfinite(served["prediction"]).all()


def test_what_it_needs_is_written_down(tmp_path: Path, model: VARNNRegressor) -> None:
    varnn.mlflow.save_model(model, tmp_path / "one")
    needed = (tmp_path / "one" / "requirements.txt").read_text().split()
    assert f"varnn=={varnn.__version__}" in needed and not any(one.startswith("torch") for one in needed)
    varnn.mlflow.save_model(
        model, tmp_path / "two", pip_requirements=["./varnn.whl"], input_example=False, signature=False
    )
    assert "./varnn.whl" in (tmp_path / "two" / "requirements.txt").read_text()
    assert mlflow.models.Model.load(tmp_path / "two").signature is None
    assert varnn.load(tmp_path / "two" / "model.varnn").get_params() == model.get_params()


def test_code_of_a_clone_goes_with_the_model(tmp_path: Path, model: VARNNRegressor) -> None:
    """Where no index has this library: the model is predicted by the code beside it."""
    source = Path(varnn.__file__).parent
    varnn.mlflow.save_model(model, tmp_path / "house", code_paths=[str(source)])
    program = (
        "import sys, mlflow\n"
        f"found = mlflow.pyfunc.load_model({str(tmp_path / 'house')!r})\n"
        "import varnn; print(varnn.__file__)\n"
        "print('torch' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": "", "PATH": "", "HOME": str(tmp_path)},
        cwd=tmp_path,
    )
    assert str(tmp_path / "house") in done.stdout and done.stdout.endswith("False\n")


def test_rows_without_names_are_refused(model: VARNNRegressor) -> None:
    with pytest.raises(DataError, match=r"takes a table with columns by name; got ndarray"):
        varnn.mlflow.Predictor(model).predict(np.zeros((3, 5)))


def test_without_mlflow_it_is_named(
    model: VARNNRegressor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(MissingExtraError, match=r"varnn.mlflow needs the package 'mlflow'"):
        varnn.mlflow.save_model(model, tmp_path / "house")
    assert list(tmp_path.iterdir()) == []
