"""Odd input at every door: it works, or one or two clear sentences say what must hold and what came."""

import re
import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from typer.testing import CliRunner

from varnn import Details, Panel, VARNNRegressor
from varnn.cli.app import app
from varnn.errors import ConfigError, DataError, VarnnError
from varnn.report import figures

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(80, 2))
from_arrays: Any = Panel.from_arrays
Y = X[:, 0] + GENERATOR.normal(size=80).cumsum() / 5
SMALL: dict[str, Any] = {"epochs": 1, "hidden_size": 4, "ensemble": 1}
MODEL: Any = VARNNRegressor(**SMALL, horizon=3, known_inputs=["x1"]).fit(X, Y)
PLAIN: Any = VARNNRegressor(**SMALL).fit(X, Y)


def frame(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"a": X[:6, 0], "b": X[:6, 1], "load": Y[:6], **columns})


def renamed(*names: Any) -> pd.DataFrame:
    table = frame()
    table.columns = pd.Index(names, dtype=object)
    return table


def levels() -> pd.DataFrame:
    table = frame()
    table.columns = pd.MultiIndex.from_tuples([("x", "a"), ("x", "b"), ("y", "load")])
    return table


def cells(*values: Any) -> pd.DataFrame:
    return frame(odd=pd.Series([*values, *[values[0]] * (6 - len(values))], dtype=object))


def panel(table: Any, target: Any = "load", **roles: Any) -> Panel:
    return Panel.from_frame(table, target=target, **roles)


def fitted(**settings: Any) -> Any:
    return VARNNRegressor(**{**SMALL, **settings}).fit(X, Y)


Door = Callable[[], object]
WORKS = "works"
# What must come of it: words of the message, or that it works.
FRAMES: dict[str, tuple[Door, str]] = {
    "whole numbers as names": (lambda: panel(renamed(0, 1, 2), 2), WORKS),
    "whole numbers as names, asked for as text": (lambda: panel(renamed(0, 1, 2), "2"), WORKS),
    "floats as names": (lambda: panel(renamed(0.5, 1.5, 2.5), 2.5), WORKS),
    "dates as names": (lambda: panel(renamed(*pd.date_range("2026-01-01", periods=2), "load")), WORKS),
    "1 and '1'": (lambda: panel(renamed(1, "1", "load")), r"\['1'\] twice"),
    "a target by its place": (lambda: panel(frame(), 2), r"no column is called 2. Its place may be meant"),
    "a time by its place": (lambda: panel(frame(), time=0), r"time must be the name of a column"),
    "inputs by their place": (lambda: panel(frame(), inputs=[0, 1]), r"inputs must be the name of a column"),
    "inputs as one text": (lambda: panel(frame(), inputs="ab"), r"inputs must be a list of columns"),
    "a list as target": (lambda: panel(frame(), ["load"]), r"target must be the name of a column"),
    "tuples as names": (lambda: panel(renamed(("x", 1), "b", "load")), "several levels"),
    "several levels of names": (lambda: panel(levels()), "several levels"),
    "no name": (lambda: panel(renamed(None, "b", "load")), "needs a name; that of column 0 is None"),
    "NaN as a name": (lambda: panel(renamed(np.nan, "b", "load")), "that of column 0 is nan"),
    "bytes as a name": (lambda: panel(renamed(b"a", "b", "load")), "that of column 0 is b'a'"),
    "two columns of one name": (lambda: panel(renamed("a", "a", "load")), r"\['a'\] twice"),
    "a dict of columns": (lambda: panel({"a": [1.0], "load": [2.0]}), "got dict. Make one of it"),
    "an array as a table": (lambda: panel(X), "got ndarray"),
    "nothing as a table": (lambda: panel(None), "got NoneType"),
    "a lazy table": (lambda: panel(pl.LazyFrame({"a": [1.0], "load": [1.0]})), WORKS),
    "a column as a table": (lambda: panel(pd.Series([1.0], name="load")), "hand over Arrow; got Series"),
    "an empty table": (lambda: panel(pd.DataFrame({"load": []})), "at least one row"),
    "lists in cells": (lambda: panel(cells([1, 2])), WORKS),
    "lists in cells of the target": (lambda: panel(cells([1, 2]), "odd"), r"holds text, such as '\[1, 2\]'"),
    "arrays in cells of an input": (lambda: panel(cells(X[0]), inputs=["odd"]), WORKS),
    "dicts in cells": (lambda: panel(cells({"a": 1})), WORKS),
    "bytes in cells": (lambda: panel(cells(b"1.5"), "odd"), "holds text, such as \"b'1.5'\""),
    "complex numbers in cells": (lambda: panel(cells(1j), "odd"), "holds text, such as '1j'"),
    "a column of complex numbers": (
        lambda: panel(frame(odd=np.ones(6, complex)), "odd"),
        "must hold numbers",
    ),
    "whole numbers beyond 64 bits": (lambda: panel(cells(2**70, 1), inputs=["odd"]), WORKS),
    "whole numbers beyond any float": (lambda: panel(cells(10**400), inputs=["odd"]), "infinity in row 0"),
    "decimals": (lambda: panel(cells(Decimal("1.5"), Decimal("NaN")), inputs=["odd"]), WORKS),
    "a decimal that signals": (lambda: panel(cells(Decimal("1.5"), Decimal("sNaN")), inputs=["odd"]), WORKS),
    "words among numbers": (lambda: panel(cells(1.0, 2.0, 3.0, 4.0, "x")), "row 4 holds 'x'"),
    "lists in polars": (
        lambda: panel(pl.DataFrame({"odd": [[1]], "load": [1.0]}), inputs=["odd"]),
        "must hold numbers",
    ),
}
ARRAYS: dict[str, tuple[Door, str]] = {
    "complex inputs": (lambda: from_arrays(X * 1j, Y), "must hold numbers only; they hold complex128"),
    "a complex target": (lambda: from_arrays(X, Y * 1j), "must hold numbers only"),
    "dates as a target": (lambda: from_arrays(None, np.zeros(3, "datetime64[s]")), "numbers only"),
    "ragged inputs": (lambda: from_arrays([[1.0], [1.0, 2.0]], [1.0, 2.0]), "numbers only"),
    "whole numbers beyond any float as target": (
        lambda: from_arrays(None, [10**400, 1]),
        "numbers only",
    ),
    "decimals as target": (lambda: from_arrays(None, [Decimal("1.5"), Decimal("2")]), WORKS),
    "a decimal that signals as target": (lambda: from_arrays(None, [Decimal("sNaN")]), "numbers only"),
    "a masked target": (lambda: from_arrays(X, np.ma.masked_less(Y, 0)), WORKS),
    "masked words": (lambda: from_arrays(None, np.ma.array(["a"], mask=[False])), "must hold numbers"),
    "ragged series": (lambda: from_arrays(None, Y[:2], series=[["a"], ["a", "b"]]), "several lengths"),
    "series with None": (lambda: from_arrays(None, Y[:2], series=["a", None]), "name for every row"),
    "series with NaN": (lambda: from_arrays(None, Y[:2], series=[1.0, np.nan]), "name for every row"),
    "masked series": (
        lambda: from_arrays(None, Y[:2], series=np.ma.array([1, 2], mask=[False, True])),
        "name for every row",
    ),
    "series of numbers and words": (
        lambda: from_arrays(None, Y[:2], series=np.array([1, "a"], dtype=object)),
        WORKS,
    ),
    "series in two dimensions": (lambda: from_arrays(None, Y[:2], series=[["a"], ["b"]]), "shape"),
    "one series for all": (lambda: from_arrays(None, Y[:2], series="a"), "one value per row"),
    "one text as names": (lambda: from_arrays(X, Y, input_names="ab"), "input_names must be a list"),
    "numbers as names": (lambda: from_arrays(X, Y, input_names=[1, 2]), "input_names must be a list"),
    "a name twice": (lambda: from_arrays(X, Y, input_names=["a", "a"]), "each of them once"),
    "a number as the target's name": (
        lambda: from_arrays(X, Y, target_name=3),
        "must be a text; got 3",
    ),
    "a masked fit": (lambda: PLAIN.predict(np.ma.masked_less(X, -2), Y), WORKS),
    "a complex fit": (lambda: fitted().fit(X * 1j, Y), "[Cc]omplex"),
    "dates to fit": (lambda: fitted().fit(X, np.zeros(80, "datetime64[s]")), "dates are no numbers"),
    "names of two kinds": (lambda: fitted().fit(pd.DataFrame(X, columns=["a", 1]), Y), "string names"),
    "whole numbers beyond 64 bits to fit": (lambda: fitted().fit(np.array([[2**70]] * 80, object), Y), WORKS),
    "a table as validation": (lambda: fitted().fit(X, Y, validation=X), "validation must be a Panel"),
    "a number to call": (lambda: fitted().fit(X, Y, on_epoch=3), "on_epoch must be a function"),
}
CALLS: dict[str, tuple[Door, str]] = {
    "a horizon of words": (lambda: MODEL.forecast(horizon="two"), "horizon must be a whole number"),
    "half a row ahead": (lambda: MODEL.forecast(horizon=0.5), "horizon must be a whole number"),
    "True rows ahead": (lambda: MODEL.forecast(horizon=True), "got True"),
    "ragged future": (lambda: MODEL.forecast(inputs=[[1.0], [1.0, 2.0]]), "several lengths"),
    "future of words": (lambda: MODEL.forecast(inputs=[["a"]] * 3), "must be numbers"),
    "one number as future": (lambda: MODEL.forecast(inputs=1.0), "series, rows"),
    "future not given": (lambda: MODEL.forecast(), "give their next 3 values"),
    "a list of methods": (lambda: MODEL.forecast(method=["direct"]), "method must be one of"),
    "an interval of words": (lambda: MODEL.predict(X, Y, interval="wide"), "interval must hold levels"),
    "an interval of None": (lambda: MODEL.predict(X, Y, interval=[None]), "interval must hold levels"),
    "a stream of words": (lambda: MODEL.stream("two"), "n_series must be a whole number"),
    "a stream of half a series": (lambda: MODEL.stream(1.5), "n_series must be a whole number"),
    "weights of words": (lambda: PLAIN.score(X, Y, sample_weight=["a"] * 80), "one number per row"),
    "too few weights": (lambda: PLAIN.score(X, Y, sample_weight=[1.0]), r"shape \(80,\)"),
    "weights below zero": (lambda: PLAIN.score(X, Y, sample_weight=-np.ones(80)), "none below zero"),
    "no weight at all": (lambda: PLAIN.score(X, Y, sample_weight=np.zeros(80)), "not all of them zero"),
    "a score without labels": (lambda: PLAIN.score(X), "a score needs labels"),
}
DOORS = {**FRAMES, **ARRAYS, **CALLS}


@pytest.mark.parametrize("name", DOORS)
def test_odd_input_works_or_is_refused_in_a_clear_sentence(name: str) -> None:
    door, expected = DOORS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if expected == WORKS:
            door()
            return
        with pytest.raises(VarnnError, match=expected) as refused:
            door()
    assert isinstance(refused.value, DataError | ConfigError)
    message = str(refused.value)
    assert len(message) < 420 and len(message.splitlines()) == 1
    assert len(re.findall(r"[.!] [A-Z]", message)) <= 2


def test_at_least_58_of_them() -> None:
    assert len(DOORS) >= 58


WRONG = {
    "a word": "seven", "a list": [1], "a table": {"a": 1}, "an object": object(), "NaN": np.nan,
    "minus one": -1, "infinity": np.inf, "half": 0.25, "a large number": 10**400,
}  # fmt: skip


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("name", VARNNRegressor(details=Details()).get_params())
def test_every_setting_of_a_wrong_kind_is_refused_in_words(name: str, kind: str) -> None:
    allowed = {
        ("validation_fraction", "half"), ("weight_ema", "half"), ("learning_rate", "half"),
        ("device", "a word"), ("gradient_clip", "half"),
    }  # fmt: skip
    whole = (
        "window",
        "loss_rows",
        "hidden_size",
        "memory_size",
        "epochs",
        "batch_size",
        "patience",
        "max_rows",
    )
    short = name.removeprefix("details__")
    if (short, kind) in allowed or (
        kind == "a large number" and short in (*whole, "ensemble", "horizon", "verbose")
    ):
        pytest.skip("that is a setting")
    with pytest.raises(ConfigError, match=rf"^(details\.)?{short} must be .*; got .*\.$"):
        VARNNRegressor(**SMALL).set_params(**{name: WRONG[kind]}).fit(X, Y)


def test_what_is_masked_is_missing() -> None:
    """Today's -999 under a mask must not count as a value."""
    labels, inputs = Y.copy(), X.copy()
    labels[::7], inputs[::5, 1] = -999, -999
    masked_labels, masked_inputs = np.ma.masked_equal(labels, -999), np.ma.masked_equal(inputs, -999)
    missing_labels = np.where(labels == -999, np.nan, labels)
    missing_inputs = np.where(inputs == -999, np.nan, inputs)
    made = from_arrays(masked_inputs, masked_labels)
    np.testing.assert_array_equal(made.target, missing_labels)
    np.testing.assert_array_equal(made.inputs, missing_inputs)
    np.testing.assert_array_equal(
        PLAIN.predict(masked_inputs, masked_labels), PLAIN.predict(missing_inputs, missing_labels)
    )
    np.testing.assert_array_equal(
        fitted().fit(masked_inputs, masked_labels).predict(X, Y),
        fitted().fit(missing_inputs, missing_labels).predict(X, Y),
    )
    assert PLAIN.score(masked_inputs, masked_labels) == PLAIN.score(missing_inputs, missing_labels)


def test_a_column_called_2_is_found_by_2_wherever_it_stands() -> None:
    made = panel(renamed(2, 0, 1), 2)
    np.testing.assert_array_equal(made.target, X[:6, 0])
    assert made.target_name == "2" and made.input_names == ("0", "1")


def test_large_and_decimal_numbers_come_out_right() -> None:
    made = panel(cells(2**70, Decimal("1.5"), None), inputs=["odd"])
    np.testing.assert_array_equal(made.inputs[:3, 0], [2.0**70, 1.5, np.nan])


def odd_table(folder: Path) -> Path:
    """Write a table whose names hold dollar signs, and commands for a terminal."""
    rows = pd.DataFrame({"price $ in $x^": X[:, 0], "red \x1b[31m\x07": X[:, 1], "load $\\frac{1}$": Y})
    rows.to_csv(folder / "odd.csv", index=False)
    return folder / "odd.csv"


def test_dollar_signs_in_names_do_not_spoil_the_report(tmp_path: Path) -> None:
    """Matplotlib looks for mathematics between two of them, and finds none: after all fits."""
    pytest.importorskip("matplotlib")
    figure, (axes,) = figures.new_figure()
    axes.plot([0, 1], label="a $ in $x^{")
    axes.set_title("load $\\frac{1}$")
    axes.set_xticks([0, 1], ["$x^$", "$\\y$"])
    axes.legend()
    svg = figures.to_svg(figure, "odd")
    assert all(name in svg for name in ("a $ in $x^{", "load $\\frac{1}$", "$x^$"))
    words = ["compare", str(odd_table(tmp_path)), "--target", "load $\\frac{1}$"]
    report = ["--models", "persistence,arx-lr", "--report", str(tmp_path / "report.html")]
    done = CliRunner().invoke(app, [*words, *report])
    assert done.exit_code == 0, done.output
    assert "load $\\frac{1}$" in (tmp_path / "report.html").read_text()


def test_ticks_of_a_logarithmic_axis_stay_powers_of_ten() -> None:
    pytest.importorskip("matplotlib")
    figure, (axes,) = figures.new_figure()
    axes.plot([1, 1e6])
    axes.set_yscale("log")
    axes.set_title("a $ in $x^{")
    svg = figures.to_svg(figure, "odd")
    assert ">$\\mathdefault" not in svg and ">a $ in $x^{" in svg  # beside comments, which nobody sees


def test_names_are_shown_and_not_obeyed_by_a_terminal(tmp_path: Path) -> None:
    table, model = odd_table(tmp_path), tmp_path / "m.varnn"
    words = ["fit", str(table), "--target", "load $\\frac{1}$", "--epochs", "1", "--hidden-size", "4"]
    fit = CliRunner().invoke(app, [*words, "--ensemble", "1", "-o", str(model)])
    inspect = CliRunner().invoke(app, ["inspect", str(model)])
    for done in (fit, inspect):
        assert done.exit_code == 0, done.output
        assert "\x1b" not in done.output and "\x07" not in done.output
        assert "\\x1b[31m" in done.output
