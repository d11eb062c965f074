"""A table much longer than memory is wide: what predicting it takes, in a process of its own."""

import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from typer.testing import CliRunner

from varnn import Details, Panel, VARNNRegressor, baselines
from varnn.baselines import _regression
from varnn.cli import _table
from varnn.cli.app import app
from varnn.fitting import settings

SHORT, LONG = 3_000, 3_000_000  # both enough for compiled code, which is loaded then
BLOCKS = 40e6  # bytes on their way in and out, whatever the length; more of them where cores are busy
# The process says itself how much it took at most. Its ru_maxrss would not do: that begins with what its
# parent, the tests, had taken when it was started.
MEASURED = """
from pathlib import Path
from varnn.cli.app import main
try:
    main()
finally:
    status = Path("/proc/self/status").read_text().split()
    print(int(status[status.index("VmHWM:") + 1]) * 1024)
"""


def peak(*words: str | Path) -> int:
    """Run a command; give the bytes of memory that took."""
    command = [sys.executable, "-c", MEASURED, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


MODELS = {
    "paper": VARNNRegressor.paper("RM", epochs=1, hidden_size=4),
    # Without what takes a minute a million rows, and no more memory: a readout that adapts.
    "default": VARNNRegressor(epochs=1, hidden_size=4, window=3, ensemble=1, adapt=None, intervals=False),
}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what a process took at most")
@pytest.mark.parametrize("name", MODELS)
def test_a_long_table_takes_less_than_four_times_its_size_in_float32(name: str, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    x = np.round(random.normal(size=LONG), 3)
    whole = pa.table({"x": x, "y": np.round(x + 1, 3)})
    model = tmp_path / "model.varnn"
    panel = Panel.from_arrays(x[:400, None], x[:400] + 1, input_names=["x"])
    MODELS[name].fit(panel).save(model)
    for kind, write in (("csv", csv.write_csv), ("parquet", parquet.write_table)):
        taken = {}
        for rows in (SHORT, LONG):
            data, output = tmp_path / f"{rows}.{kind}", tmp_path / "out.csv"
            write(whole.slice(0, rows), data)
            taken[rows] = peak("predict", model, data, "-o", output)
        assert csv.read_csv(output).num_rows == LONG
        above = taken[LONG] - taken[SHORT]
        assert above < 4 * whole.num_columns * LONG * np.float32().nbytes + BLOCKS, (
            f"{kind}: {above / 1e6} MB"
        )


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what a process took at most")
def test_names_of_series_and_times_take_no_more_than_numbers_do(tmp_path: Path) -> None:
    """Spelt out for every row, as they stand in a table, they took more than all else together."""
    series = 30
    names = pa.array([f"station {index} by the river" for index in range(series)])
    length = LONG // series
    moments = np.datetime64("2026-01-01T00:00:00") + np.arange(length) * np.timedelta64(60, "s")
    x = np.round(np.random.default_rng(0).normal(size=LONG), 3)
    whole = pa.table(
        {
            "time": np.tile(moments, series),
            "station": names.take(pa.array(np.repeat(np.arange(series), length))),
            "x": x,
            "y": x,
        }
    )
    model = tmp_path / "model.varnn"
    MODELS["paper"].fit(Panel.from_arrays(x[:400, None], x[:400], input_names=["x"])).save(model)
    taken = {}
    for rows in (SHORT, LONG):
        data = tmp_path / f"{rows}.parquet"
        parquet.write_table(whole.slice(0, rows), data)
        taken[rows] = peak("predict", model, data, "-o", tmp_path / "out.parquet")
    assert parquet.read_table(tmp_path / "out.parquet")["station"].to_pylist()[-1] == names[-1].as_py()
    above = taken[LONG] - taken[SHORT]
    assert above < 4 * whole.num_columns * LONG * np.float32().nbytes + BLOCKS, f"{above / 1e6} MB"


@pytest.mark.parametrize(
    ("command", "options", "rows"),
    [
        ("fit", "--max-rows 200", 200),
        ("forecast", "", 200),
        ("forecast", "--max-rows 150", 150),
        ("compare", "--models varnn --seeds 1 --max-rows 100", 64),  # 64 %
    ],
)
def test_rows_that_are_not_learnt_from_are_let_go_before_learning(
    command: str, options: str, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.random.default_rng(0).normal(size=300)
    csv.write_csv(pa.table({"x": x, "y": x + 1}), tmp_path / "data.csv")
    panels, learnt_from = [], []
    read, fit = _table.read, VARNNRegressor.fit

    def noted(*arguments: Any, **named: Any) -> _table.Table:
        understood = read(*arguments, **named)
        panels.append(weakref.ref(understood.panel))
        return understood

    def checked(model: VARNNRegressor, panel: Panel, **named: Any) -> VARNNRegressor:
        learnt_from.append(len(panel))
        assert panels[0]() is None
        return fit(model.set_params(epochs=1, hidden_size=4), panel, **named)

    monkeypatch.setattr(_table, "read", noted)
    monkeypatch.setattr(VARNNRegressor, "fit", checked)
    monkeypatch.setitem(Details.__init__.__kwdefaults__ or {}, "max_rows", 200)
    output = [] if command == "compare" else ["-o", str(tmp_path / "out")]
    words = [command, str(tmp_path / "data.csv"), "--target", "y", *output, *options.split()]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert learnt_from == [rows]


def test_a_baseline_learns_from_no_more_rows_than_memory_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """But from the latest: those before have another law here, which it must not have seen."""
    x = np.random.default_rng(0).normal(size=600)
    panel = Panel.from_arrays(x[:, None], np.where(np.arange(600) < 300, -x, x))
    monkeypatch.setattr(_regression, "MOST_ROWS", 200)
    fitted = baselines.make("arx-lr").fit(panel)
    np.testing.assert_allclose(fitted.predict(panel)[300:], x[300:], atol=1e-8)


def test_very_many_rows_are_gone_through_less_often_but_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    panel = Panel.from_arrays(None, np.arange(1000.0))
    chosen, given = VARNNRegressor().settings(), VARNNRegressor(epochs=7).settings()
    rows = len(panel) - chosen.config(panel).window + 1
    for most, epochs in ((5 * rows, 5), (5 * rows - 1, 4), (rows // 2, 2)):
        monkeypatch.setattr(settings, "ROW_BUDGET", most)
        assert chosen.config(panel).epochs == epochs
        assert given.config(panel).epochs == 7  # what is asked for is done
