"""The published data sets themselves; what needs their files is skipped where they are not."""

import csv
import io
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

from varnn import datasets
from varnn.data.panel import Panel
from varnn.data.preparation import Scaling, split_by_series, split_in_time
from varnn.datasets import beijing, bidmc, store
from varnn.errors import ConfigError

PATIENTS = {
    record: next(
        (family[0] for family in ("06 07 08 09", "20 21 22 23", "38 39") if record in family), record
    )
    for record in bidmc.RECORDS
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The user's data folder, seen through links, so that no test writes into it."""
    chosen = os.environ.get(store.DIRECTORY_VARIABLE)
    if not chosen or not Path(chosen).is_dir():
        pytest.skip(f"{store.DIRECTORY_VARIABLE} names no folder with the published data sets")
    folder = tmp_path_factory.mktemp("data")
    for path in Path(chosen).iterdir():
        (folder / path.name).symlink_to(path.resolve())
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(store.DIRECTORY_VARIABLE, str(folder))
        patched.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        yield folder


def loaded(name: str, **options: object) -> Panel:
    if datasets.find(name) is None:
        pytest.skip(f"{name} is not in {store.DIRECTORY_VARIABLE}")
    return datasets.load(name, download=False, **options)  # type: ignore[arg-type]  # as the test was given it


def published_text(name: str, file: str) -> str:
    members = store.obtain(datasets.published(name), download=False)
    return next(members.read([file])).decode()


def linear_regression(train: Panel, test: Panel) -> tuple[str, str]:
    """Fit on scaled training rows; mean squared errors of both parts as the paper prints them."""
    scaling = Scaling.fit(train, "minmax")
    scaled = [scaling.apply(part) for part in (train, test)]
    model = LinearRegression().fit(scaled[0].inputs.astype(float), scaled[0].target)
    errors = [model.predict(part.inputs.astype(float)) - part.target for part in scaled]
    first, second = (f"{np.mean(error**2):.5f}" for error in errors)
    return first, second


def test_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"no data set 'appliance'\. Did you mean 'appliances'"):
        datasets.load("appliance")
    with pytest.raises(ConfigError, match="'synthetic' is not one"):
        datasets.load("synthetic", paper=True)
    with pytest.raises(ConfigError, match="there are no files of it"):
        datasets.published("synthetic")


@pytest.mark.parametrize("name", ["appliances", "bidmc", "beijing"])
def test_rows_and_inputs_are_those_of_the_paper(data: Path, name: str) -> None:
    panel, source = loaded(name, paper=True), datasets.published(name)
    assert (len(panel), panel.n_inputs) == (source.rows, source.inputs)
    assert not np.isnan(panel.inputs).any() and not np.isnan(panel.target).any()
    assert (panel.name, panel.licence, panel.citation) == (name, source.licence, source.citation)


def test_linear_regression_on_appliances_is_the_published_one(data: Path) -> None:
    parts = split_in_time(loaded("appliances", paper=True), 0.8, 0.2)
    assert linear_regression(*parts) == ("0.00799", "0.00657")


def test_linear_regression_on_beijing_is_the_published_one(data: Path) -> None:
    parts = split_in_time(loaded("beijing", paper=True), 0.8, 0.2)
    assert linear_regression(*parts) == ("0.00212", "0.00171")


def test_linear_regression_on_bidmc_is_the_measured_one(data: Path) -> None:
    """The paper prints 0.01830 and 0.02256: its split of the records is not known."""
    parts = split_by_series(loaded("bidmc", paper=True), *bidmc.paper_records())
    assert linear_regression(*parts) == ("0.01832", "0.02199")


def test_appliances_equals_the_general_reader(data: Path, tmp_path: Path) -> None:
    panel = loaded("appliances")
    path = tmp_path / "energy.csv"
    path.write_text(published_text("appliances", "energydata_complete.csv"))
    expected = Panel.read(path, target="Appliances", time="date")
    assert panel.input_names == expected.input_names
    assert panel.target_name == "Appliances"
    np.testing.assert_array_equal(panel.inputs, expected.inputs)
    np.testing.assert_array_equal(panel.target, expected.target)
    assert panel.time is not None and expected.time is not None
    np.testing.assert_array_equal(panel.time, expected.time)


def test_beijing_equals_a_plain_reading_of_a_station(data: Path) -> None:
    panel = loaded("beijing")
    assert panel.n_series == 12 and set(panel.lengths) == {35_064}
    assert panel.input_names == beijing.INPUTS and panel.ignored == ("wd",)
    station = panel.ids.index("Gucheng")
    text = published_text("beijing", "PRSA_Data_Gucheng_20130301-20170228.csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    here = slice(panel.starts[station], panel.starts[station + 1])
    for name, values in [("PM2.5", panel.target), *zip(panel.input_names, panel.inputs.T, strict=True)]:
        expected = [float("nan" if row[name] == "NA" else row[name]) for row in rows]
        np.testing.assert_array_equal(values[here], expected)
    stamps = [
        f"{row['year']}-{int(row['month']):02}-{int(row['day']):02}T{int(row['hour']):02}" for row in rows
    ]
    assert panel.time is not None
    np.testing.assert_array_equal(panel.time[here], np.array(stamps, dtype="datetime64[us]"))


def test_beijing_of_the_paper_is_interpolated_as_pandas_does(data: Path) -> None:
    pandas = pytest.importorskip("pandas")
    raw, paper = loaded("beijing"), loaded("beijing", paper=True)
    columns = [raw.input_names.index(name) for name in paper.input_names]
    assert paper.input_names == ("SO2", "NO2", "CO", "O3", "TEMP", "PRES", "DEWP", "RAIN", "WSPM")
    for first, last in zip(raw.starts[:-1], raw.starts[1:], strict=True):
        frame = pandas.DataFrame(np.column_stack([raw.inputs[first:last, columns], raw.target[first:last]]))
        filled = frame.interpolate(limit_direction="both").to_numpy()
        np.testing.assert_allclose(paper.inputs[first:last], filled[:, :-1], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(paper.target[first:last], filled[:, -1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("record", ["01", "23", "27"])
def test_bidmc_equals_a_plain_reading_of_a_record(data: Path, record: str) -> None:
    """Record 01 has its columns in an order of its own, 23 starts early, 27 has gaps."""
    signals = list(csv.reader(io.StringIO(published_text("bidmc", f"bidmc_{record}_Signals.csv"))))
    numerics = list(csv.reader(io.StringIO(published_text("bidmc", f"bidmc_{record}_Numerics.csv"))))
    header = [name.strip() for name in signals[0]]
    samples = np.array(signals[1:60_001], dtype=float)
    by_second = {int(row[0]): [float(cell) for cell in row[1:]] for row in numerics[1:]}
    expected = np.array([by_second[second] for second in range(480)])

    raw = loaded("bidmc")
    here = slice(480 * (int(record) - 1), 480 * int(record))
    for index, channel in enumerate(("PLETH", "II", "RESP")):
        seconds = samples[:, header.index(channel)].reshape(480, 125)
        inputs = raw.inputs[here, 125 * index : 125 * (index + 1)]
        np.testing.assert_array_equal(inputs, seconds.astype(np.float32))
        assert raw.input_names[125 * index + 7] == f"{channel}[7]"
    np.testing.assert_array_equal(raw.target[here], expected[:, 0])
    assert raw.time is not None
    np.testing.assert_array_equal(raw.time[here], np.arange(480))

    monitor = loaded("bidmc", inputs="numerics")
    assert monitor.input_names == ("PULSE", "RESP", "SpO2")
    np.testing.assert_array_equal(monitor.inputs[here], expected[:, 1:])
    np.testing.assert_array_equal(monitor.target, raw.target)

    (paper,) = split_by_series(loaded("bidmc", paper=True), [record])
    rows = np.array([[float(cell) for cell in row[1:]] for row in numerics[1:481]])
    np.testing.assert_array_equal(paper.target, rows[~np.isnan(rows[:, 0]), 0])


def test_bidmc_keeps_seconds_without_a_heart_rate(data: Path) -> None:
    raw, paper = loaded("bidmc"), loaded("bidmc", paper=True)
    assert len(raw) == 53 * 480 and raw.ids == bidmc.RECORDS == paper.ids
    missing = np.flatnonzero(np.isnan(raw.target))
    np.testing.assert_array_equal(missing, 26 * 480 + np.arange(207, 211))
    np.testing.assert_array_equal(np.delete(raw.inputs, missing, axis=0), paper.inputs)


def test_bidmc_comes_from_a_cache_the_second_time(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = loaded("bidmc")

    def refuse(*_: object) -> None:
        raise RuntimeError("parsed again")

    monkeypatch.setattr(bidmc, "_arrays", refuse)
    np.testing.assert_array_equal(loaded("bidmc").inputs, first.inputs)


def test_bidmc_options_are_checked(data: Path) -> None:
    with pytest.raises(ConfigError, match="inputs must be one of"):
        loaded("bidmc", inputs="wave")
    with pytest.raises(ConfigError, match="paper=True takes the waveforms"):
        loaded("bidmc", inputs="numerics", paper=True)


def test_patients(data: Path) -> None:
    loaded("bidmc")
    found = bidmc.patients()
    assert tuple(found) == bidmc.RECORDS and found["01"] == "s01182"
    assert len(set(found.values())) == 46
    same = {(a, b) for a in found for b in found if found[a] == found[b]}
    assert same == {(a, b) for a in PATIENTS for b in PATIENTS if PATIENTS[a] == PATIENTS[b]}


def test_paper_records_are_the_permutation_of_the_findings() -> None:
    order = np.random.RandomState(2025).permutation(53)
    train, test = bidmc.paper_records()
    assert [int(record) - 1 for record in train + test] == order.tolist()
    assert (len(train), len(test)) == (42, 11)
    first, second, third = bidmc.honest_records()
    assert (first + second, third) == (train, test)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_honest_records_keep_patients_together(seed: int) -> None:
    parts = bidmc.honest_records(seed, patients=PATIENTS)
    assert [len(part) for part in parts] == [34, 8, 11]
    assert sorted(record for part in parts for record in part) == list(bidmc.RECORDS)
    owners = [{PATIENTS[record] for record in part} for part in parts]
    assert sum(len(one) for one in owners) == len(set().union(*owners))


def test_checksums_are_those_the_publisher_lists(data: Path) -> None:
    """PhysioNet's zip carries its own list; ours must agree with it, file by file."""
    place = datasets.find("bidmc")
    if place is None or not place.is_file():
        pytest.skip("no bidmc.zip")
    with zipfile.ZipFile(place) as archive:
        (name,) = (one for one in archive.namelist() if one.endswith("SHA256SUMS.txt"))
        lines = archive.read(name).decode().splitlines()
    listed = {file: checksum for checksum, file in (line.split() for line in lines)}
    for file, checksum in bidmc.SOURCE.checksums.items():
        assert listed[f"bidmc_csv/{file}"] == checksum
    assert len(bidmc.SOURCE.checksums) == 159


def test_loading_needs_neither_pandas_nor_torch(data: Path) -> None:
    loaded("appliances")
    program = (
        "import sys; sys.modules.update(pandas=None, torch=None, sklearn=None); "
        "from varnn import datasets; sys.exit(len(datasets.load('appliances')) != 19735)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ})
