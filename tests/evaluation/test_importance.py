"""Which inputs matter: against closed forms, and rows that stay what rows can be."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.cases import random_panel
from varnn import Panel, VARNNRegressor, baselines, evaluation
from varnn._types import FloatArray
from varnn.errors import ConfigError, DataError
from varnn.evaluation import importance


@dataclass
class Linear:
    """A model whose error without an input is known: y = weights x, plus noise that it knows nothing of."""

    weights: list[float]
    seen: list[Panel]

    def predict(self, panel: Panel) -> FloatArray:
        self.seen.append(panel)
        return np.asarray(np.nan_to_num(panel.inputs) @ np.array(self.weights))


def white(rows: int, series: int = 1) -> tuple[Panel, Linear]:
    generator = np.random.default_rng(3)
    inputs = generator.normal(size=(rows, 3))
    target = inputs @ [3.0, 0.0, 1.0] + generator.normal(size=rows)
    names = np.repeat([f"s{one}" for one in range(series)], rows // series)
    panel = Panel.from_arrays(inputs, target, series=names, input_names=["large", "none", "small"])
    return panel, Linear([3.0, 0.0, 1.0], [])


@pytest.mark.parametrize("series", [1, 4])
def test_the_rise_is_what_theory_says(series: int) -> None:
    """Of white inputs, error without one is noise + 2 w^2: Fisher et al., section 3, for a linear model."""
    panel, model = white(4000, series)
    found = importance(model, panel, repeats=8)
    assert found.names == ("large", "small", "none") and found.rows == 4000
    assert found.mse == pytest.approx(1.0, rel=0.1)
    assert found.rolled_mse.mean(axis=1) == pytest.approx([1 + 2 * 9, 1 + 2 * 1, 1], rel=0.1)
    assert found.rise == pytest.approx(found.rolled_mse.mean(axis=1) / found.mse - 1)
    assert found.rise[2] == 0 and found.spread[2] == 0 and (found.spread[:2] > 0).all()
    assert found.chance[2] < 1e-9 and (found.rise[:2] > 5 * found.chance[:2]).all()
    assert len(model.seen) == 2 + 8 * 3


def test_an_input_is_rolled_within_its_series_and_the_others_stay() -> None:
    panel, _ = white(300, series=3)
    steps: list[tuple[int, int]] = []
    copies: list[Any] = []

    class Copying(Linear):
        def predict(self, panel: Panel) -> FloatArray:
            copies.append(panel.inputs.copy())
            return super().predict(panel)

    importance(Copying([1.0, 1.0, 1.0], []), panel, repeats=2, on_step=lambda *step: steps.append(step))
    assert steps == [(one, 8) for one in range(1, 9)]
    for index, inputs in enumerate(copies[2:]):
        rolled = index // 2
        for column in range(3):
            for part in (slice(0, 100), slice(100, 200), slice(200, 300)):
                before, after = panel.inputs[part, column], inputs[part, column]
                if column != rolled:
                    assert (before == after).all()
                    continue
                shifts = [by for by in range(100) if (np.roll(before, by) == after).all()]
                assert len(shifts) == 1 and 10 <= shifts[0] <= 90


def test_an_input_that_names_the_series_is_swapped_between_them() -> None:
    generator = np.random.default_rng(0)
    size = np.repeat([1.0, 5.0, 9.0], 100)
    panel = Panel.from_arrays(
        np.column_stack([size, generator.normal(size=300)]), size, series=np.repeat(list("abc"), 100)
    )
    found = importance(Linear([1.0, 0.0], []), panel, repeats=6)
    assert found.names[0] == "x0" and found.rolled_mse[0].min() > 10 and found.rise[1] == 0


def test_categories_of_a_column_are_rolled_together() -> None:
    import polars

    generator = np.random.default_rng(1)
    sky = generator.choice(["sun", "rain", "fog"], size=400)
    load = np.where(sky == "sun", 5.0, 1.0) + 0.1 * generator.normal(size=400)
    panel = Panel.from_frame(polars.DataFrame({"sky": sky, "load": load}), target="load")
    model = VARNNRegressor(epochs=1, hidden_size=4, ensemble=1).fit(panel.between(0, 300))
    found = importance(model, panel.between(300, 400), repeats=2)
    assert found.names == ("sky",) and found.rise[0] > 1


def test_a_model_that_makes_use_of_no_input_is_asked_twice_only() -> None:
    panel, _ = white(200)
    blind = Linear([0.0, 0.0, 0.0], [])
    found = importance(blind, panel, repeats=5)
    assert len(blind.seen) == 2 and (found.ratios == 1).all() and (found.chance < 1e-9).all()


def test_copies_are_rolled_together() -> None:
    """Weights of +5 and -5 on a thing and its copy come to nothing, until one of them is rolled alone."""
    generator = np.random.default_rng(2)
    cause, copied = generator.normal(size=(2, 500))
    inputs = np.column_stack([copied, cause, 2 * copied + 1, np.ones(500)])
    target = cause + generator.normal(size=500)
    panel = Panel.from_arrays(inputs, target, input_names=["rv1", "cause", "rv2", "constant"])
    found = importance(Linear([10.0, 1.0, -5.0, 5.0], []), panel, repeats=3)
    assert found.names[0] == "cause" and set(found.names) == {"cause", "rv1, rv2", "constant"}
    assert found.ratios[1:] == pytest.approx(1.0, abs=1e-6)


def test_a_baseline_has_important_inputs_too() -> None:
    panel = random_panel([400])
    model = baselines.make("arx-lr")
    model.fit(panel)
    found = importance(model, panel, repeats=2, rows=100)
    assert found.rows == 100 and len(found.names) == panel.n_inputs
    assert found.as_dict()["inputs"][0]["name"] == found.names[0]


def test_it_is_the_same_each_time_and_refuses_what_cannot_be() -> None:
    panel, model = white(200)
    first, second = (importance(model, panel, repeats=2, seed=5) for _ in range(2))
    assert (first.rolled_mse == second.rolled_mse).all()
    assert np.isnan(importance(model, panel, repeats=1).spread).all()
    with pytest.raises(ConfigError, match="repeats and rows must be at least 1"):
        importance(model, panel, repeats=0)
    with pytest.raises(DataError, match="at least 40"):
        importance(model, panel.between(0, 25))


def test_chance_is_what_other_rows_would_give() -> None:
    """The standard error from blocks is the spread of rises over many panels of the same kind."""
    rises, errors = [], []
    for seed in range(60):
        generator = np.random.default_rng(seed)
        inputs = generator.normal(size=(400, 1))
        panel = Panel.from_arrays(inputs, generator.normal(size=400))  # the input is of no use, and is used
        found = importance(Linear([1.0], []), panel, repeats=4, seed=seed)
        rises.append(found.rise[0])
        errors.append(found.chance[0])
    assert 0.7 * np.std(rises) < np.mean(errors) < 1.4 * np.std(rises)
    assert abs(np.mean(rises)) < 3 * np.std(rises) / np.sqrt(60)


def test_a_perfect_model_has_ratios_all_the_same() -> None:
    panel = Panel.from_arrays(np.arange(100.0)[:, None], np.arange(100.0))
    found = evaluation.importance(Linear([1.0], []), panel, repeats=2)
    assert found.mse == 0 and (found.ratios > 1e300).all()
