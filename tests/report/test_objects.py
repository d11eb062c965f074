"""Objects show themselves: short in text, readable in a notebook, drawn where that is natural."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from varnn import Panel, VARNNRegressor, evaluation
from varnn.data.display import html_card
from varnn.errors import ConfigError, DataError
from varnn.model.forecast import Forecast
from varnn.scale import fit_many

EVIL = "<script>alert('$x$')</script>"
SMALL: dict[str, Any] = {"hidden_size": 4, "ensemble": 1, "epochs": 1}


def small(seed: int) -> VARNNRegressor:
    return VARNNRegressor(random_state=seed, **SMALL)


def rows(n: int = 400, **names: Any) -> Panel:
    draws = np.random.default_rng(0).normal(size=(n, 2))
    time = np.datetime64("2026-01-01T00:00") + np.arange(n).astype("timedelta64[h]")
    return Panel.from_arrays(draws, draws[:, 0] + np.sin(np.arange(n) / 4), time=time, **names)


@pytest.fixture(scope="module")
def objects() -> dict[str, Any]:
    """Make one of each, of columns and series with awkward names."""
    panel = rows(input_names=[EVIL, "heat"], target_name=EVIL)
    model = VARNNRegressor(horizon=3, **SMALL).fit(panel)
    live = model.stream()
    live.predict(panel.inputs[0], time=panel.time[0])  # type: ignore[index]  # it has times
    series = Panel.from_arrays(None, np.sin(np.arange(240) / 3), series=120 * [EVIL] + 120 * ["b"])
    compared = evaluation.compare(panel, ["persistence", (EVIL, small)], seeds=2)
    return {
        "panel": panel,
        "several series": series,
        "unfitted": VARNNRegressor(window=5),
        "model": model,
        "forecast": model.forecast(interval=[0.5, 0.9]),
        "stream": live,
        "fleet": model.stream(2),
        "diagnosis": model.diagnose(panel),
        "comparison": compared,
        "parts": compared.parts,
        "backtest": evaluation.backtest(panel, horizon=3, model=small),
        "expert weights": model.expert_weights(panel),
        "models": fit_many(series, small(0), workers=1),
    }


NAMES = (
    "panel",
    "several series",
    "unfitted",
    "model",
    "forecast",
    "stream",
    "fleet",
    "diagnosis",
    "comparison",
    "parts",
    "backtest",
    "expert weights",
    "models",
)


@pytest.mark.parametrize("name", NAMES)
def test_an_object_is_shown_in_a_few_lines(objects: dict[str, Any], name: str) -> None:
    said = repr(objects[name])
    assert 0 < len(said.splitlines()) <= 12 and len(said) < 2000
    assert "array(" not in said and "object at 0x" not in said


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_given_html_that_can_do_no_harm(objects: dict[str, Any], name: str) -> None:
    shown = objects[name]._repr_html_()
    assert len(shown) < 30_000
    assert not re.search(r"<(script|style|link|img|iframe)|\son\w+=|https?://", shown)
    assert not re.search(
        r"(?<!-)color:(?!inherit)|#[0-9a-f]{3,6}\b", shown
    )  # a fixed one suits one page only
    if name in ("panel", "several series", "model", "comparison", "models"):
        assert "&lt;script&gt;" in shown  # the name is there, as text


def test_what_they_say(objects: dict[str, Any]) -> None:
    assert repr(objects["panel"]).startswith("<Panel: 400 rows of 1 series; target ")
    assert "every 1 h from 2026-01-01 00:00 to 2026-01-17 15:00" in repr(objects["panel"])
    assert repr(objects["unfitted"]) == "VARNNRegressor(window=5)"
    first, second = repr(objects["model"]).splitlines()
    assert first == "VARNNRegressor(hidden_size=4, epochs=1, ensemble=1, horizon=3)"
    assert second.startswith("# fitted: ") and "2 inputs on 400 rows of 1 series" in second
    assert eval(repr(objects["model"])).get_params() == objects["model"].get_params()  # a comment, to Python
    assert "an x waits for its label" in repr(objects["stream"])
    assert "0 rows observed" in repr(objects["fleet"]) and "2 series" in repr(objects["fleet"])
    assert "3 rows ahead" in repr(objects["forecast"]) and "upper_90" in repr(objects["forecast"])
    assert "on 80 rows, 2 seeds" in repr(objects["comparison"])
    for shown in (repr(objects["comparison"]), objects["comparison"]._repr_html_()):
        assert re.search(r"\d\.\d%", shown) and ": RMSE " in shown and "Diebold-Mariano" in shown
    assert repr(objects["parts"]) == (
        "<Parts of a panel, honest protocol: train 256 rows, validation 64 rows, test 80 rows, of 1 series, "
        f"target {EVIL}>"
    )
    assert repr(objects["models"]).startswith("<2 models in ")


def test_a_forecast_says_how_many_rows_it_does_not_show() -> None:
    ahead = Forecast(ids=("north", "south"), time=None, prediction=np.zeros((2, 14)))
    assert "... 22 rows more: to_frame() has them all" in repr(ahead)
    assert "... 16 rows more: to_frame() has them all" in ahead._repr_html_()
    assert "more" not in Forecast(ids=("0",), time=None, prediction=np.zeros((1, 6)))._repr_html_()


def test_a_pipeline_with_the_model_shows_itself(objects: dict[str, Any]) -> None:
    pipeline = make_pipeline(StandardScaler(), VARNNRegressor(window=5))
    assert "VARNNRegressor(window=5)" in repr(pipeline)
    assert "VARNNRegressor" in str(pipeline._repr_html_())
    bundle = objects["model"]._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}


def figures(objects: dict[str, Any]) -> Iterator[Any]:
    yield objects["panel"].plot()
    yield objects["several series"].plot("b")
    yield objects["forecast"].plot(objects["panel"])
    yield objects["forecast"].plot()
    yield objects["comparison"].plot()
    yield objects["backtest"].plot()
    yield objects["expert weights"].plot(objects["panel"].time)
    for what in ("autocorrelation", "hours", "calibration", "memory"):
        yield objects["diagnosis"].plot(what)


def test_pictures_are_figures_that_notebooks_show_and_files_hold(
    objects: dict[str, Any], tmp_path: Path
) -> None:
    from matplotlib.figure import Figure

    for one in figures(objects):
        assert isinstance(one, Figure)
        shown = str(one._repr_html_())
        assert "<svg" in shown and "currentColor" in shown and "<script" not in shown
        one.savefig(tmp_path / "one.png", dpi=50)
        assert matplotlib.image.imread(tmp_path / "one.png")[0, 0].tolist() == [1, 1, 1, 1]  # on white


def test_what_cannot_be_drawn_is_refused_in_words(objects: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="there is no series 'c'"):
        objects["several series"].plot("c")
    with pytest.raises(DataError, match="`history` has no series '0'"):
        objects["forecast"].plot(objects["several series"])
    with pytest.raises(ConfigError, match="what must be one of"):
        objects["diagnosis"].plot("nothing")
    with pytest.raises(DataError, match="one time for each row"):
        objects["expert weights"].plot(np.arange(3))


def test_facts_without_a_value_are_left_out() -> None:
    assert "empty" not in html_card("A thing", {"empty": "", "full": "1"})
