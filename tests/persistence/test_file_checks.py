"""Files that lie: with a checksum that fits, a damaged file is refused in words, or gives finite numbers."""

import json
import math
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import varnn
from benchmarks.__main__ import app
from benchmarks.robustness import fuzz
from benchmarks.robustness.damage import packed
from benchmarks.robustness.fuzz_case import Source
from varnn import Panel, Stream, VARNNRegressor
from varnn.errors import ModelFileError
from varnn.estimator._settings import plain_settings
from varnn.persistence import model_file
from varnn.persistence._parts import disassemble
from varnn.step.series import SeriesStep
from varnn.streaming.by_name import Streams
from varnn.streaming.linked import LinkedStreams

DEFAULT: dict[str, Any] = {}  # the model whose snapshots are changed
Change = Callable[[dict[str, Any], dict[str, Any]], object]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Source]]:
    folder = tmp_path_factory.mktemp("good")
    found = {name: Source(folder, name) for name in fuzz.write_sources(folder)}
    DEFAULT["default"] = found["default stream"].model
    yield found


def changed(source: Source, change: Change) -> bytes:
    """Change the arrays and the header of a file, and make its checksum fit."""
    tensors, header = model_file.from_bytes(source.blob, "it")
    arrays = {name: array.copy() for name, array in tensors.items()}
    change(arrays, header)
    return packed(arrays, header)


def put(key: str, value: Any) -> Change:
    """Change a value of the header, by its path."""
    *path, last = key.split("/")

    def change(_: dict[str, Any], header: dict[str, Any]) -> None:
        for one in path:
            header = header[one]
        header[last] = value

    return change


def fill(name: str, value: float) -> Change:
    return lambda arrays, _: arrays[name].fill(value)


def without(name: str) -> Change:
    return lambda arrays, _: arrays.pop(name)


def first(name: str, value: float) -> Change:
    return lambda arrays, _: arrays[name].reshape(-1).__setitem__(0, value)


def carried(field: str, value: float) -> Change:
    """Change the first numbers of a field that the default's series carry, in the bytes of a snapshot."""

    def change(arrays: dict[str, Any], _: dict[str, Any]) -> None:
        step = SeriesStep(DEFAULT["default"].fitted_.step)
        step.restore(arrays["step"])
        getattr(step.blocks[0].state, field).reshape(-1)[1 if field == "seen" else 0] = value
        arrays["step"] = step.snapshot()

    return change


def lost(gain: Any) -> Any:
    """Give a matrix with an upper factor in double precision, but without the lower one, which is taken."""
    made = np.eye(len(gain))
    made[:2, :2] = [[2.0**14 + 2.0**-38, 2.0**-13], [2.0**-13, 2.0**-40]]
    return made


MODELS: dict[str, tuple[str, Change, str]] = {
    "a window of a million": (
        "far model",
        put("window", 10**6),
        "'window' in its header must be a whole number",
    ),
    "a window longer than set": ("far model", put("window", 5000), "longer than its settings say"),
    "a window below one": ("far model", put("window", 0), "'window'"),
    "a window of words": ("far model", put("window", "5"), "got '5'"),
    "True as window": ("far model", put("window", True), "got True"),
    "a share above one": ("far model", put("share", 1.5), "'share'"),
    "a share without end": ("far model", put("share", 10**400), "more digits than can be shown"),
    "NaN as share": ("far model", put("share", math.nan), "not a file of this library"),
    "a name that is none": ("far model", put("input_names", ["x0", 1]), "each of them once"),
    "a name twice": ("far model", put("input_names", ["x0", "x0"]), "each of them once"),
    "more names than inputs": ("far model", put("input_names", ["x0", "x1", "x2"]), "of shape"),
    "a series twice": ("far model", put("series", ["a", "a"]), "each of them once"),
    "labels without an end": ("far model", without("recipe.labels.high"), "'recipe.labels.high' is missing"),
    "inputs without a bound": ("far model", without("recipe.linear.input_low"), "input_low' is missing"),
    "more series than rows": (
        "far model",
        put("series", ["a", "b", "c"]),
        "as many as the units of their times",
    ),
    "an hour as cycle": ("far model", put("recipe/clock", ["hour"]), "a list of"),
    "an unknown fill": ("far model", put("recipe/fill", "mean"), "'fill'"),
    "peers without a linear part": ("paper model", put("recipe/peers", True), "needs a linear part"),
    "too wide a layer": ("far model", put("architecture/hidden_size", 2**40), "'hidden_size'"),
    "an unknown field": ("far model", put("architecture/depth", 3), "'depth', which no network has"),
    "an unknown residual": ("far model", put("architecture/residual", "cubic"), "'residual'"),
    "no memory to accumulate": ("paper model", put("architecture/residual", "none"), "does not have"),
    "forgetting of two": ("far model", fill("experts.forgetting", 2.0), "'experts.forgetting'"),
    "forgetting nothing": ("far model", fill("experts.forgetting", 1.0), "factors below 1"),
    "no noise": ("far model", first("experts.numbers", 0.0), "'experts.numbers'"),
    "a season that is none": ("far model", fill("experts.numbers", 7.0), "'experts.numbers'"),
    "weights of two": ("far model", fill("experts.prior", 0.9), "does not add up to 1"),
    "no weight at all": ("far model", first("experts.prior", 0.0), "'experts.prior'"),
    "a deviation of nothing": ("far model", first("experts.deviation", 0.0), "'experts.deviation'"),
    "an error scale below zero": ("far model", put("spread", -1.0), "'spread'"),
    "a history of words": ("far model", put("summary/history", [{"loss": "low"}]), "'history'"),
    "a card of a thousand layers": ("far model", put("summary", json.loads("[" * 900 + "]" * 900)), "deep"),
    "settings of words": ("far model", put("settings", "none"), "'settings'"),
    "a setting that no model has": ("far model", put("settings/ensemble", -3), "ensemble must be"),
    "a forecaster of nothing": ("far model", put("forecaster", []), "'forecaster'"),
    "known inputs that are none": ("far model", put("forecaster/known", ["sun"]), "not one of these inputs"),
    "a forecaster of one row": ("far model", put("forecaster/architecture/horizon", 1), "forecaster"),
    "a horizon without end": ("far model", put("forecaster/architecture/horizon", 10**9), "'horizon'"),
    "a weight that is NaN": (
        "far model",
        first("weights.fusion", math.nan),
        "'weights.fusion' holds numbers",
    ),
    "a weight that is infinite": ("far model", first("weights.readout", math.inf), "'weights.readout'"),
    "weights that explode": (
        "paper model",
        lambda arrays, _: [arrays[f"weights.{name}"].fill(9e8) for name in ("carry", "error")],
        "grows beyond all bounds",
    ),
    "a context that is none": ("default model", put("context", "all"), "'context' in its header must be one"),
    "a context of no words": ("default model", put("context", None), "'context'"),
    "a limit below zero": ("default model", put("state_limit", -1.0), "'state_limit' in its header must be"),
    "a limit of nothing": ("default model", put("state_limit", 0), "'state_limit'"),
    "a limit of words": ("default model", put("state_limit", "10"), "got '10'"),
    "a limit without end": ("default model", put("state_limit", 1e20), "at most 1e\\+19"),
    "NaN as limit": ("default model", put("state_limit", math.nan), "not a file of this library"),
    "a state without a limit": ("default model", put("state_limit", None), "no 'state_limit' says"),
    "a state whose limit is missing": (
        "default model",
        put("state_limit", None),
        "no 'state_limit' says",
    ),
    "a limit at which weights explode": (
        "default model",
        lambda arrays, header: [
            header.update(state_limit=1e19),
            *(arrays[f"weights.{name}"].fill(1e7) for name in ("fusion", "readout")),
        ],
        "a state as large as its limit",
    ),
    "a forecaster that carries a state": (
        "far model",
        lambda _, header: header["forecaster"].update(context="series", state_limit=10.0),
        "forecasts are made from windows",
    ),
    "a scale of nothing": ("far model", first("recipe.scaling.input_scale", 0.0), "input_scale"),
    "a scale below zero": ("far model", first("recipe.scaling.target_scale", -1.0), "target_scale"),
    "a gain that is not symmetric": (
        "far model",
        lambda arrays, _: arrays["experts.readout.gain"].__setitem__((0, 0, 1), 0.5),
        "not the inverse of second moments",
    ),
    "a gain whose factor is lost to rounding": (
        "default model",
        lambda arrays, _: arrays["experts.linear.gain"].__setitem__(
            0, lost(arrays["experts.linear.gain"][0])
        ),
        "not the inverse of second moments",
    ),
    "a gain without an inverse": (
        "default model",
        fill("experts.linear.gain", 1.0),
        "not the inverse of second moments",
    ),
    "a gain below zero": (
        "far model",
        lambda arrays, _: arrays.update({"experts.linear.gain": -arrays["experts.linear.gain"]}),
        "not the inverse",
    ),
    "quantiles that fall": (
        "far model",
        lambda arrays, _: arrays.update({"spread.quantiles": arrays["spread.quantiles"][::-1]}),
        "does not rise",
    ),
    "a range upside down": ("far model", first("recipe.linear.low", 1e9), "lies above"),
    "a share of a head above one": ("far model", first("forecaster.shares", 2.0), "forecaster.shares"),
    "weights in double": (
        "far model",
        lambda arrays, _: arrays.update({"weights.error": arrays["weights.error"].astype(np.float64)}),
        "must hold float32 of shape",
    ),
    "weights of no member": (
        "paper model",
        lambda arrays, _: arrays.update(
            {name: one[:0] for name, one in arrays.items() if name.startswith("weights.")}
        ),
        "no members",
    ),
    "an array renamed": (
        "far model",
        lambda arrays, _: arrays.update(other=arrays.pop("recipe.lead")),
        "'recipe.lead' is missing",
    ),
    "a series of no rows": (
        "paper model",
        lambda arrays, _: arrays.update(
            {name: one[:0] for name, one in arrays.items() if name.startswith("tail.0.")}
        ),
        "no row is kept",
    ),
    "trees of which half is missing": (
        "boosted model",
        without("experts.boosting.first"),
        "'experts.boosting.first' is missing",
    ),
    "trees that are not believed": (
        "boosted model",
        lambda arrays, _: arrays.update({"experts.prior": np.full(4, 0.25)}),
        "'experts.prior' must hold",
    ),
    "trees that are believed without being there": (
        "boosted model",
        lambda arrays, _: [arrays.pop(name) for name in list(arrays) if "boosting" in name],
        "'experts.prior' must hold",
    ),
    "trees beside no linear part": (
        "boosted model",
        lambda arrays, _: [arrays.pop(name) for name in list(arrays) if "linear" in name],
        "of shape|none of 0",
    ),
    "a tree of a feature that is none": (
        "boosted model",
        first("experts.boosting.feature", 1000),
        "looks at features that are none of",
    ),
    "a tree of a feature below zero": (
        "boosted model",
        first("experts.boosting.feature", -1),
        "boosting.feature' holds",
    ),
    "a threshold that is NaN": ("boosted model", first("experts.boosting.threshold", math.nan), "threshold"),
    "a leaf without end": ("boosted model", first("experts.boosting.value", math.inf), "boosting.value"),
    "a leaf too few": (
        "boosted model",
        lambda arrays, _: arrays.update(
            {"experts.boosting.value": arrays["experts.boosting.value"][:-1].copy()}
        ),
        "a leaf more than splits",
    ),
    "a tree that goes round": (
        "boosted model",
        first("experts.boosting.first", 3),
        "first leaf is not to its left",
    ),
    "a tree that is none": (
        "boosted model",
        lambda arrays, _: arrays["experts.boosting.first"][:3].__setitem__(
            slice(None), np.array([[0], [0], [1]])
        ),
        "leaves overlap",
    ),
    "features that are no whole numbers": (
        "boosted model",
        lambda arrays, _: arrays.update(
            {"experts.boosting.feature": arrays["experts.boosting.feature"].astype(np.float64)}
        ),
        "must hold int32",
    ),
    "a tree of too many leaves": (
        "boosted model",
        lambda arrays, _: arrays.update(
            {
                name: np.zeros((70 + name.endswith("value"), 3), array.dtype)
                for name, array in arrays.items()
                if "boosting" in name
            }
        ),
        "at most 31",
    ),
}
SNAPSHOTS: dict[str, tuple[str, Change, str]] = {
    "a billion series": ("default fleet", put("n_series", 10**9), "'step' is missing"),
    "a series of words": ("default stream", put("n_series", "one"), "'n_series'"),
    "one series as a fleet": ("default stream", put("n_series", 1), "'pending'"),
    "steps below zero": ("default stream", put("steps", -1), "'steps'"),
    "steps missing": ("default stream", lambda _, header: header.pop("steps"), "'steps' is missing"),
    "a monitor of words": ("default stream", put("monitor/memory", "long"), "'memory'"),
    "a monitor of more": ("default stream", put("monitor/colour", "red"), "which no monitor has"),
    "a monitor that has warmed up too soon": ("default stream", put("monitor/warm_up", 3), "warm_up"),
    "counts below zero": ("default stream", fill("monitor", -5.0), "below zero"),
    "a monitor of NaN": ("default stream", fill("monitor", math.nan), "'monitor'"),
    "a memory of NaN": ("default stream", carried("seen", math.nan), "'seen'"),
    "a memory beyond bounds": ("default stream", carried("seen", 1e30), "'seen'"),
    "a memory beyond its limit": ("default stream", carried("seen", 1e6), "'seen'"),
    "a row that waits for infinity": ("default stream", first("pending", math.inf), "'pending'"),
    "sizes below zero": ("default stream", carried("recent_sizes", -1.0), "sizes are negative"),
    "squares below zero": ("default stream", carried("mean_square", -1.0), "mean square"),
    "neither seen nor unseen": ("default stream", carried("has_label", 0.5), "'has_label'"),
    "rows observed below zero": ("default stream", carried("rows", -1.0), "'rows'"),
    "half a row observed": ("default stream", carried("rows", 2.5), "rows"),
    "quantiles that fall": ("default stream", carried("quantiles", 9.0), "quantiles"),
    "a time that is none": ("far stream", put("time", "soon"), "time must be a timestamp"),
    "rows below zero": ("far stream", fill("recent.seen", -1), "'recent.seen'"),
    "a sum of words": ("peers linked", put("total", ["a"] * 5), "'total'"),
    "series that are none": ("default streams", put("series", ["a", 2]), "'series'"),
    "a series that is missing": ("default streams", put("series", ["a", "b", "c"]), "'2' is missing"),
    "a moment of words": ("peers linked", put("now", ["time", "now"]), "'now'"),
    "a moment of another kind": ("peers linked", put("now", ["age", 1]), "'now'"),
    "too few moments": ("peers linked", put("moments", []), "not those of its series"),
    "what a stranger brought": (
        "peers linked",
        put("brought", {"z": [0.0] * 5}),
        "not those of its series",
    ),
    "too little brought": ("peers linked", put("brought", {"a": [0.0]}), "five numbers"),
}
LIES = {**MODELS, **SNAPSHOTS}


@pytest.mark.parametrize("name", LIES)
def test_a_file_that_lies_is_refused_in_words_and_at_once(sources: dict[str, Source], name: str) -> None:
    kind, change, words = LIES[name]
    blob = changed(sources[kind], change)
    began = time.process_time()
    with pytest.raises(ModelFileError, match=words) as refused:
        sources[kind].read(blob)
    assert time.process_time() - began < 1
    assert len(str(refused.value)) < 500


def test_good_files_give_what_they_gave(sources: dict[str, Source]) -> None:
    for source in sources.values():
        assert source.read(changed(source, lambda *_: None)) == source.numbers


@pytest.mark.parametrize("carry", [3.0, -3.0, 1e9])
def test_a_state_that_runs_away_begins_anew_and_numbers_stay_finite(
    sources: dict[str, Source], carry: float, tmp_path: Path
) -> None:
    """Whatever drives a state beyond its limit, a file that is taken predicts and streams finite numbers."""
    source, path = sources["default model"], tmp_path / "wild.varnn"
    path.write_bytes(changed(source, lambda arrays, _: arrays["weights.carry"].fill(carry)))
    model = varnn.load(path)
    assert model.fitted_.carried
    X = np.random.default_rng(3).normal(size=(300, 2))
    y = X[:, 0] + np.where(np.arange(300) % 50 == 7, 1e5, 0)
    assert np.isfinite(model.predict(X, y)).all()
    live = model.stream()
    for x, label in zip(X, y, strict=True):
        assert math.isfinite(live.predict(x))
        live.observe(label)


def test_a_snapshot_in_a_group_cannot_be_of_several_series(sources: dict[str, Source]) -> None:
    fleet, group = sources["default fleet"], sources["default streams"]
    blob = changed(group, lambda arrays, _: arrays.update({"0": np.frombuffer(fleet.blob, np.uint8)}))
    with pytest.raises(ModelFileError, match="the state of several"):
        group.read(blob)


def test_some_hundred_damaged_files_end_well() -> None:
    found = fuzz.run(400, first=1_000_000)
    assert found.files == 400
    assert found.of(*fuzz.BAD) == 0, found.bad
    assert found.of("refused as a file") > 200


def test_the_bench_of_damaged_files_leaves_figures(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["fuzz", "--files", "40", "--json", str(tmp_path / "fuzz.json")])
    assert done.exit_code == 0, done.output
    saved = json.loads((tmp_path / "fuzz.json").read_text())
    assert saved["complete"] and {one["name"] for one in saved["measured"]} == {
        "fuzz by damage",
        "fuzz by file",
    }
    assert sum(row["files"] for row in saved["measured"][0]["rows"]) == 40


def test_a_bench_sees_what_goes_badly(sources: dict[str, Source], monkeypatch: pytest.MonkeyPatch) -> None:
    """It must be able to fail: without its checks, the reader falls for files like these."""
    source = sources["paper model"]
    blob = changed(source, fill("weights.readout", math.nan))
    assert source.outcome(blob)[0] == "refused as a file"
    monkeypatch.setattr(model_file, "check_model", lambda *_: None)
    monkeypatch.setattr(model_file, "check_steady", lambda *_: None)
    assert source.outcome(blob)[0] == "NaN"
    assert source.outcome(changed(source, lambda _, header: header.pop("window")))[0] == "raw exception"


def test_ten_thousand_series_load_in_little_more_than_a_thousand_take_ten_times(
    sources: dict[str, Source], tmp_path: Path
) -> None:
    """Time per series must not grow with their number: it was 25 s for these."""
    model = varnn.load(_file(sources["default model"], tmp_path))
    tail = next(iter(model.fitted_.last_rows.values()))
    spent = {}
    for count in (1000, 10_000):
        fitted = replace(model.fitted_, last_rows={f"s{index}": tail for index in range(count)})
        path = tmp_path / f"{count}.varnn"
        model_file.write(path, fitted, plain_settings(model.get_params(deep=False)))
        began = time.process_time()
        assert len(varnn.load(path).fitted_.last_rows) == count
        spent[count] = time.process_time() - began
    assert spent[10_000] < 30 * spent[1000]


def _file(source: Source, folder: Path) -> Path:
    path = folder / "good.varnn"
    path.write_bytes(source.blob)
    return path


def test_a_header_of_great_depth_is_refused_at_once(tmp_path: Path) -> None:
    deep = '{"varnn":' * 100_000 + "1" + "}" * 100_000
    (tmp_path / "deep.varnn").write_bytes(struct.pack("<Q", len(deep)) + deep.encode())
    with pytest.raises(ModelFileError):
        varnn.load(tmp_path / "deep.varnn")


def test_one_model_predicts_in_many_threads_at_once(sources: dict[str, Source], tmp_path: Path) -> None:
    """A fitted model is only read when it predicts, so threads may share it."""
    model = varnn.load(_file(sources["far model"], tmp_path))
    generator = np.random.default_rng(0)
    panels = []
    for _ in range(8):
        X = generator.normal(size=(300, 2))
        hours = np.datetime64("2026-01-01T00", "h") + np.arange(300)
        panels.append(Panel.from_arrays(X, X.sum(axis=1).cumsum() / 9, time=hours))
    alone = [[model.predict(one), *model.predict(one, interval=0.9)] for one in panels]
    together: list[list[Any]] = [[] for _ in panels]
    start = threading.Barrier(len(panels))

    def work(index: int) -> None:
        start.wait()
        for _ in range(5):
            one = panels[index]
            together[index].append([model.predict(one), *model.predict(one, interval=0.9)])

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(panels))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for index, rounds in enumerate(together):
        assert len(rounds) == 5
        for found in rounds:
            for one, expected in zip(found, alone[index], strict=True):
                np.testing.assert_array_equal(one, expected)


def test_what_is_written_passes_the_checks_of_what_is_read(
    sources: dict[str, Source], tmp_path: Path
) -> None:
    """Weights so large that no reader would take them are refused when saved, while the model is at hand."""
    model = varnn.load(_file(sources["paper model"], tmp_path))
    large = {name: getattr(model.fitted_.weights, name) * 0 + 9e8 for name in ("carry", "error")}
    weights = model.fitted_.weights._replace(**{name: one.astype(np.float32) for name, one in large.items()})
    model.fitted_ = replace(model.fitted_, weights=weights)
    with pytest.raises(ModelFileError, match="grows beyond all bounds"):
        model.save(tmp_path / "new.varnn")
    assert not (tmp_path / "new.varnn").exists()
    assert disassemble(model.fitted_)[0]["weights.carry"].shape == model.fitted_.weights.carry.shape


def test_restoring_needs_the_right_kind(sources: dict[str, Source]) -> None:
    """A snapshot of one kind is no snapshot of another."""
    model, blobs = sources["default stream"].model, {name: one.blob for name, one in sources.items()}
    with pytest.raises(ModelFileError):
        Streams.restore(model, blobs["default stream"])
    with pytest.raises(ModelFileError):
        Stream.restore(model, blobs["default streams"])
    with pytest.raises(ModelFileError):
        LinkedStreams.restore(sources["peers linked"].model, blobs["default streams"])
    assert isinstance(model, VARNNRegressor)
