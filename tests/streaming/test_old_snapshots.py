"""Snapshots of before what learns on was whitened go on as they would have."""

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.cases import random_panel
from varnn import Details, Panel, Stream, VARNNRegressor
from varnn._types import DoubleArray
from varnn.errors import ModelFileError
from varnn.model.adaptation import Adaptation
from varnn.persistence import model_file

ROWS = 120  # before the snapshot, and after it


def old_changes(new: DoubleArray, adaptation: Adaptation) -> list[float]:
    """Lay out one series' changes as they were: d = U c, and for each rate the members one by one."""
    members, size, _ = adaptation.gain.shape
    rates = len(adaptation.forgetting)
    white = new.reshape(members, rates, size)
    return [
        number
        for rate in range(rates)
        for member in range(members)
        for number in adaptation.whitening[member] @ white[member, rate]
    ]


def old_array(model: VARNNRegressor, learning: DoubleArray) -> DoubleArray:
    """Make of an array "learning" what it was when it was called "experts"."""
    experts = model.fitted_.experts
    assert experts is not None
    parts = [experts.readout, *([] if experts.linear is None else [experts.linear])]
    widths = [len(one.forgetting) * one.gain.shape[0] * one.gain.shape[1] for one in parts]
    rows = []
    for series in learning:
        weights, *changes = np.split(series, len(series) - np.cumsum([0, *widths[::-1]])[:0:-1])
        converted = [old_changes(*both) for both in zip(changes, parts, strict=True)]
        rows.append([*weights, *(number for one in converted for number in one)])
    return np.array(rows)


def older(model: VARNNRegressor, blob: bytes, *, dropped: int = 0) -> bytes:
    tensors, header = model_file.from_bytes(blob, "it")
    old = old_array(model, tensors.pop("learning"))
    tensors["experts"] = old[:, : old.shape[1] - dropped]
    return model_file.to_bytes(tensors, header)


@pytest.fixture(scope="module", params=[True, False], ids=["with a linear part", "without"])
def model(request: Any) -> VARNNRegressor:
    settings: dict[str, Any] = {"epochs": 1, "hidden_size": 6, "ensemble": 3, "window": 5, "random_state": 0}
    details = Details(context="window")
    return VARNNRegressor(**settings, linear=request.param, details=details).fit(random_panel([400], seed=1))


def fleet_of(panel: Panel) -> tuple[Any, Any]:
    return panel.inputs.reshape(2, 2 * ROWS, -1).swapaxes(0, 1), panel.target.reshape(2, 2 * ROWS).T


def test_an_old_snapshot_goes_on_as_before(model: VARNNRegressor) -> None:
    X, y = fleet_of(random_panel([2 * ROWS] * 2, seed=2, missing=0.1))
    live = model.stream(2)
    for x, labels in zip(X[:ROWS], y[:ROWS], strict=True):
        live.predict(x)
        live.observe(labels)
    blob = older(model, live.snapshot())
    again, fresh = Stream.restore(model, blob), model.stream(2)
    wanted: list[Any] = []
    got: list[Any] = []
    unlearnt: list[Any] = []
    for x, labels in zip(X[ROWS:], y[ROWS:], strict=True):
        for stream, said in ((live, wanted), (again, got), (fresh, unlearnt)):
            said.append(stream.predict(x))
            stream.observe(labels)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-6 * float(np.std(wanted)))
    assert np.abs(np.subtract(unlearnt, wanted))[-20:].max() > 1e-3 * np.std(wanted)  # what was learnt counts


def test_an_old_snapshot_of_another_shape_is_refused(model: VARNNRegressor) -> None:
    live = model.stream()
    live.predict(np.zeros(3))
    with pytest.raises(ModelFileError, match="'learning' must hold float64 of shape"):
        Stream.restore(model, older(model, live.snapshot(), dropped=1))


def test_what_was_learnt_is_never_taken_for_old_where_there_is_no_old(model: VARNNRegressor) -> None:
    carried = copy(model)
    carried.fitted_ = replace(model.fitted_, context="series", state_limit=100.0)
    live = carried.stream()
    live.predict(np.zeros(3))
    with pytest.raises(ModelFileError, match="'learning' is missing"):
        Stream.restore(carried, older(carried, live.snapshot()))


@pytest.mark.parametrize("context", ["series", "window"])
def test_a_snapshot_that_does_not_say_which_inputs_are_known(context: Any, model: VARNNRegressor) -> None:
    other = copy(model)
    other.fitted_ = replace(model.fitted_, context=context, state_limit=100.0)
    live = other.stream()
    live.predict(np.ones(3))
    live.observe(0.5)
    tensors, header = model_file.from_bytes(live.snapshot(), "it")
    del tensors["known"]
    again = Stream.restore(other, model_file.to_bytes(tensors, header))
    assert again.predict(np.zeros(3)) == live.predict(np.zeros(3))
