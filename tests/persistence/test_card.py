"""Each model file tells people what it is."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import varnn
from varnn import Panel, VARNNRegressor
from varnn.cli.app import app
from varnn.errors import ConfigError, ModelFileError
from varnn.persistence import model_file
from varnn.persistence.card import card, period


@pytest.fixture(scope="module")
def model() -> VARNNRegressor:
    generator = np.random.default_rng(0)
    heat = generator.normal(size=(200, 1))
    panel = Panel.from_arrays(
        heat,
        np.cumsum(generator.normal(size=200)) + 3 * heat[:, 0],
        time=np.datetime64("2026-01-01T00:00") + np.arange(200) * np.timedelta64(10, "m"),
        input_names=["heat [K]"],
        target_name="load",
    )
    return VARNNRegressor(epochs=1, hidden_size=8, ensemble=2).fit(panel)


@pytest.fixture
def path(model: VARNNRegressor, tmp_path: Path) -> Path:
    model.save(tmp_path / "m.varnn")
    return tmp_path / "m.varnn"


def test_the_card_says_what_a_user_asks_first(model: VARNNRegressor, path: Path) -> None:
    text = model_file.read_card(path)
    errors = model.fitted_.training.validation
    for part in (
        "Predicts 'load' one row ahead, from the labels before it and 1 input: 'heat [K]'.",
        "Trained on 200 rows of 1 series. Rows given: 2026-01-01 to 2026-01-02T09:10.",
        f"this model {errors['model'] ** 0.5:.4g}, persistence {errors['persistence'] ** 0.5:.4g}, "
        f"its linear part alone {errors['linear part'] ** 0.5:.4g}.",
        "window of 24 rows, 8 hidden units, memory of 48, 2 members",
        "Limits: one step ahead",
        "variant='ARM+AM'",
        f"Written by varnn {varnn.__version__}.",
    ):
        assert part in text
    assert len(text.splitlines()) < 10


def test_the_checksum_covers_the_card(path: Path) -> None:
    blob = path.read_bytes()
    assert blob.count(b"one row ahead") == 1
    path.write_bytes(blob.replace(b"one row ahead", b"two row ahead"))
    with pytest.raises(ModelFileError, match="changed after it was written"):
        varnn.load(path)


def test_inspect_shows_the_card_as_it_stands(path: Path) -> None:
    shown = CliRunner().invoke(app, ["inspect", str(path)]).output
    assert "1 input: 'heat [K]'." in shown  # brackets are no markup
    facts = json.loads(CliRunner().invoke(app, ["inspect", str(path), "--json"]).output)
    assert facts["card"] == model_file.read_card(path)


def test_a_file_from_before_there_were_cards_still_loads(model: VARNNRegressor, path: Path) -> None:
    tensors, header = model_file.from_bytes(path.read_bytes(), "the file")
    del header["card"], header["summary"]["period"]
    path.write_bytes(model_file.to_bytes(tensors, {**header, "format": 1}))
    assert model_file.read_card(path) == ""
    old = varnn.load(path)
    rows = Panel.from_arrays(np.ones((5, 1)), np.ones(5), input_names=["heat [K]"])
    np.testing.assert_array_equal(old.predict(rows), model.predict(rows))
    with pytest.raises(ConfigError, match="intervals"):  # which were another kind then
        old.predict(rows, interval=0.9)
    assert CliRunner().invoke(app, ["inspect", str(path)]).exit_code == 0
    old.save(path)  # which gives it one
    assert "Trained on 200 rows of 1 series.\n" in model_file.read_card(path)


def test_the_card_is_text_in_the_header(path: Path) -> None:
    blob = path.read_bytes()
    size = struct.unpack("<Q", blob[:8])[0]
    header = json.loads(json.loads(blob[8 : 8 + size])["__metadata__"]["varnn"])
    assert header["card"] == model_file.read_card(path)


def test_a_model_without_linear_part_and_validation_has_a_shorter_one() -> None:
    X = np.random.default_rng(1).normal(size=(30, 14))
    paper = VARNNRegressor.paper("RM", epochs=1, validation_fraction=0).fit(X, np.arange(30.0))
    text = card(paper.fitted_, {})
    assert "14 inputs: 'x0', " in text and "'x11', ..." in text
    assert "held out" not in text and "linear part" not in text


def test_periods() -> None:
    assert period(None) is None
    assert period(np.array([], dtype=np.int64)) is None
    assert period(np.array([3.5, 1.0])) == ["1.0", "3.5"]
