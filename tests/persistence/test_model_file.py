"""A model file comes back whole, without torch, or is refused in words."""

import json
import os
import pickle
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import varnn
from tests.cases import random_panel
from varnn import Details, Panel, VARNNRegressor
from varnn.errors import ModelFileError, OutputError
from varnn.persistence import model_file

DETAILS = Details().get_params()


@pytest.fixture(scope="module")
def panel() -> Panel:
    return random_panel([60, 40], missing=0.1)


@pytest.fixture(scope="module")
def model(panel: Panel) -> VARNNRegressor:
    return VARNNRegressor("ARM+AM", hidden_size=8, epochs=2, ensemble=2, device="cpu").fit(panel)


@pytest.fixture
def path(model: VARNNRegressor, tmp_path: Path) -> Path:
    model.save(tmp_path / "m.varnn")
    return tmp_path / "m.varnn"


def test_everything_comes_back(model: VARNNRegressor, panel: Panel, path: Path) -> None:
    loaded = varnn.load(path)
    np.testing.assert_array_equal(loaded.predict(panel), model.predict(panel))
    np.testing.assert_array_equal(
        loaded.predict(panel.inputs[:5], series=["s1"] * 5),
        model.predict(panel.inputs[:5], series=["s1"] * 5),
    )
    assert loaded.get_params() == model.get_params()
    assert loaded.history_ == model.history_
    assert loaded.fitted_.fingerprint == model.fitted_.fingerprint
    live = varnn.Stream.restore(loaded, model.stream().snapshot())
    assert live.predict(panel.inputs[0]) == model.stream().predict(panel.inputs[0])
    loaded.save(path)
    assert varnn.load(path).fitted_.fingerprint == model.fitted_.fingerprint


def test_loading_predicting_and_streaming_need_no_torch(
    model: VARNNRegressor, panel: Panel, path: Path, tmp_path: Path
) -> None:
    np.savez(tmp_path / "rows.npz", X=panel.inputs[:60], y=panel.target[:60])
    script = f"""
import sys

class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, NotInstalled())
import numpy, varnn
rows = numpy.load({str(tmp_path / "rows.npz")!r})
model = varnn.load({str(path)!r})
predictions = model.predict(rows["X"], rows["y"])
live = model.stream()
for x, y, expected in zip(rows["X"], rows["y"], predictions):
    assert abs(live.predict(x) - expected) < 1e-4
    live.observe(y)
numpy.save({str(tmp_path / "out.npy")!r}, predictions)
try:
    varnn.VARNNRegressor().fit(rows["X"], rows["y"])
except varnn.errors.MissingExtraError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "[train]'" in done.stdout
    expected = model.predict(panel.inputs[:60], panel.target[:60])
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), expected)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_truncated_file_is_refused(path: Path, data: st.DataObject) -> None:
    whole = path.read_bytes()
    broken = path.with_suffix(".broken")
    broken.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    with pytest.raises(ModelFileError):
        varnn.load(broken)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_changed_byte_is_noticed(path: Path, data: st.DataObject) -> None:
    whole = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] ^= data.draw(st.integers(1, 255))
    broken = path.with_suffix(".broken")
    broken.write_bytes(whole)
    try:
        loaded = varnn.load(broken)
    except ModelFileError:
        return
    # The only byte that may change unnoticed is white space that pads the header.
    assert loaded.fitted_.fingerprint == varnn.load(path).fitted_.fingerprint


def test_foreign_files_are_refused_and_nothing_is_unpickled(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (Path.touch, (Path(tmp_path / "exploded"),))  # type: ignore[return-value]  # a trap

    foreign = {
        "pickle.varnn": pickle.dumps(Bomb()),
        "text.varnn": b"hello",
        "empty.varnn": b"",
        "long.varnn": struct.pack("<Q", 2**62) + b"{}",
        "other.varnn": struct.pack("<Q", 2) + b"{}",
        "nested.varnn": struct.pack("<Q", 100_000) + b"[" * 100_000,
    }
    for name, blob in foreign.items():
        (tmp_path / name).write_bytes(blob)
        with pytest.raises(ModelFileError, match="not a file of this library"):
            varnn.load(tmp_path / name)
    assert not (tmp_path / "exploded").exists()
    with pytest.raises(ModelFileError, match="there is no model file"):
        varnn.load(tmp_path / "absent.varnn")


@pytest.mark.parametrize("change", [-3, -1, 1, 0.0])
def test_a_file_of_another_version_says_to_fit_again(path: Path, change: float) -> None:
    tensors, header = model_file.from_bytes(path.read_bytes(), "it")
    other = model_file.FORMAT + change
    path.write_bytes(model_file.to_bytes(tensors, {**header, "format": other}))
    words = rf"written by another version of varnn: it has format {other}.*Fit the model and save it again"
    with pytest.raises(ModelFileError, match=words):
        varnn.load(path)


@pytest.mark.parametrize(
    "other",
    [{"graded": 2}, {"details": {"patience": 3}}, {"details": {**DETAILS, "graded": 2}}, {"details": 3}],
)
def test_settings_of_other_names_are_those_of_another_version(path: Path, other: dict[str, Any]) -> None:
    tensors, header = model_file.from_bytes(path.read_bytes(), "it")
    header["settings"] |= {"details": DETAILS}
    path.write_bytes(model_file.to_bytes(tensors, header))
    assert varnn.load(path).details == Details()
    less = {name: value for name, value in header["settings"].items() if name != "linear"}
    for wrong in (header["settings"] | other, less):
        path.write_bytes(model_file.to_bytes(tensors, {**header, "settings": wrong}))
        with pytest.raises(ModelFileError, match=r"another version of varnn: its settings are not those"):
            varnn.load(path)


def test_a_header_that_contradicts_the_weights_is_refused(path: Path) -> None:
    tensors, header = model_file.from_bytes(path.read_bytes(), "it")
    path.write_bytes(
        model_file.to_bytes(tensors, {**header, "architecture": {**header["architecture"], "hidden_size": 9}})
    )
    with pytest.raises(ModelFileError, match=r"'weights.fusion' must hold float32 of shape \(2, 62, 9\)"):
        varnn.load(path)
    path.write_bytes(
        model_file.to_bytes(tensors, {key: value for key, value in header.items() if key != "window"})
    )
    with pytest.raises(ModelFileError, match="'window' is missing in its header"):
        varnn.load(path)


def test_the_header_is_json_that_people_can_read(path: Path) -> None:
    blob = path.read_bytes()
    size = struct.unpack("<Q", blob[:8])[0]
    header = json.loads(json.loads(blob[8 : 8 + size])["__metadata__"]["varnn"])
    assert header["format"] == model_file.FORMAT
    assert header["input_names"] == ["x0", "x1", "x2"]
    assert header["settings"]["variant"] == "ARM+AM"
    assert header["summary"]["rows"] == 80


def test_an_interrupted_save_leaves_the_old_file(
    model: VARNNRegressor, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match="No space left on device"):
        model.save(path)
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_a_missing_folder_is_one_clear_error(model: VARNNRegressor, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="No such file or directory"):
        model.save(tmp_path / "absent" / "m.varnn")


def test_settings_from_a_search_may_be_numpy_numbers(panel: Panel, tmp_path: Path) -> None:
    found: dict[str, Any] = {"window": np.int64(4), "hidden_size": np.int32(6), "random_state": np.int64(5)}
    found["learning_rate"] = np.float32(1e-3)
    seldom: dict[str, Any] = {"memory_size": np.int64(3)}
    model = VARNNRegressor(**found, epochs=1, details=Details(**seldom)).fit(panel)
    model.save(tmp_path / "m.varnn")
    loaded = varnn.load(tmp_path / "m.varnn")
    assert loaded.get_params() == {**model.get_params(), "learning_rate": float(np.float32(1e-3))}
    np.testing.assert_array_equal(loaded.predict(panel), model.predict(panel))
