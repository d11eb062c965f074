"""Protocols cut where they say, metrics are what they are called, significance is calibrated."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error, mean_squared_error

from tests.cases import random_panel
from varnn import Panel, VARNNRegressor, evaluation
from varnn.errors import ConfigError, DataError
from varnn.evaluation.significance import diebold_mariano, difference, paired_bootstrap


def test_the_honest_protocol_scores_the_last_fifth_with_the_past_at_hand() -> None:
    panel = random_panel([100, 50], missing=0.1)
    parts = evaluation.cut(panel)
    assert [len(parts.train), len(parts.validation), len(parts.test)] == [96, 24, 30]
    scored = parts.lead_in.rows[parts.scored()]
    expected = [row for row in [*range(80, 100), *range(140, 150)] if not np.isnan(panel.target[row])]
    assert scored.tolist() == expected


def test_the_paper_protocol_scores_full_windows_inside_the_test_part() -> None:
    parts = evaluation.cut(random_panel([100, 50]), "paper")
    assert parts.validation is parts.test
    assert parts.lead_in.rows[parts.scored()].tolist() == [*range(84, 100), *range(144, 150)]


@pytest.mark.parametrize("origins", [1, 2, 5])
def test_rolling_origins_score_each_late_row_once_and_learn_from_earlier_ones_alone(origins: int) -> None:
    panel = random_panel([100, 37], missing=0.05)
    cuts = evaluation.rolling(panel, origins)
    for first, last in zip(panel.starts[:-1], panel.starts[1:], strict=True):
        tested = np.concatenate(
            [one.test.rows[(one.test.rows >= first) & (one.test.rows < last)] for one in cuts]
        )
        begin = first + (last - first) * 4 // (origins + 4)
        assert tested.tolist() == list(range(begin, last))
        for one in cuts:
            train, validation, test, lead_in = (
                [int(row) for row in part.rows if first <= row < last]
                for part in (one.train, one.validation, one.test, one.lead_in)
            )
            assert train + validation == list(range(first, test[0]))
            assert validation + test == lead_in
            assert len(train) == pytest.approx(4 * len(validation), abs=4)


def test_one_origin_is_the_honest_cut() -> None:
    panel = random_panel([103, 58])
    (rolled,) = evaluation.rolling(panel, 1)
    honest = evaluation.cut(panel)
    for part in ("train", "validation", "test", "lead_in"):
        assert np.array_equal(getattr(rolled, part).rows, getattr(honest, part).rows)


def test_a_backtest_is_its_origins_pooled() -> None:
    panel = random_panel([300, 200], missing=0.03)
    seen: list[evaluation.Score] = []
    small = ("small", lambda seed: VARNNRegressor(hidden_size=8, epochs=1, ensemble=1, random_state=seed))
    table = evaluation.compare(panel, ["arx-lr", small], seeds=2, origins=3, on_score=seen.append)
    assert [score.model for score in seen] == ["arx-lr"] * 3 + ["small"] * 6
    for name in ("arx-lr", "small"):
        for score in table.of(name):
            alone = [
                evaluation.compare(panel, [name] if name == "arx-lr" else [small], seeds=2, parts=one)
                for one in evaluation.rolling(panel, 3)
            ]
            singles = [next(other for other in one.of(name) if other.seed == score.seed) for one in alone]
            assert np.array_equal(score.predictions, np.concatenate([one.predictions for one in singles]))
            assert score.mse_by_origin == tuple(one.mse for one in singles)
            assert score.skill_by_origin == tuple(one.skill for one in singles)
            assert score.mse == pytest.approx(mean_squared_error(table.truth, score.predictions))
            assert score.scaled_mse == pytest.approx(score.mse / alone[0].parts.unit ** 2)
    (line,) = (line for line in table.rows() if line["model"] == "arx-lr")
    assert line["rmse_by_origin"] == pytest.approx([one**0.5 for one in table.of("arx-lr")[0].mse_by_origin])


def test_a_backtest_never_looks_ahead() -> None:
    panel = random_panel([300])
    late = replace(panel, target=np.concatenate([panel.target[:250], panel.target[250:] + 100]))
    first, second = (
        evaluation.compare(one, ["arx-lr"], seeds=1, origins=4).of("arx-lr")[0] for one in (panel, late)
    )
    known = 250 - 300 * 4 // 8 + 1  # the row after the change is the first that can know
    assert np.array_equal(first.predictions[:known], second.predictions[:known])
    assert not np.allclose(first.predictions[known:], second.predictions[known:])


def test_scores_equal_scikit_learn() -> None:
    panel = random_panel([300, 200])
    table = evaluation.compare(panel, ["persistence", "arx-lr"], seeds=3)
    (score,) = table.of("arx-lr")  # it draws nothing, so it is fitted once
    assert score.mse == pytest.approx(mean_squared_error(table.truth, score.predictions))
    assert score.mae == pytest.approx(mean_absolute_error(table.truth, score.predictions))
    early = np.concatenate([panel.target[:240], panel.target[300:460]])
    assert score.scaled_mse == pytest.approx(score.mse / np.ptp(early) ** 2)
    (naive,) = table.of("persistence")
    assert naive.skill == pytest.approx(0)
    assert score.skill == pytest.approx(1 - score.mse / naive.mse)
    assert [line["model"] for line in table.rows()] == ["arx-lr", "persistence"]
    change, p = table.against("arx-lr", "persistence")
    assert change == pytest.approx(score.mse / naive.mse - 1)
    assert 0 <= p <= 1
    found = table.difference("arx-lr", "persistence")
    assert (found.change, found.p) == (change, p)
    assert (found.low, found.high) == paired_bootstrap(table.losses("arx-lr"), table.losses("persistence"))


def test_a_model_of_your_own_is_judged_alike() -> None:
    class Zero:
        def fit(self, panel: Panel, *, validation: Panel | None = None) -> "Zero":
            return self

        def predict(self, panel: Panel) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
            return np.zeros(len(panel))

    table = evaluation.compare(random_panel([200]), [("zero", lambda seed: Zero())], seeds=2)
    assert len(table.of("zero")) == 2
    assert table.of("zero")[0].mse == pytest.approx(np.mean(table.truth**2))


def test_what_cannot_be_judged_is_refused() -> None:
    with pytest.raises(DataError, match="the train part has none"):
        evaluation.cut(random_panel([1]))
    with pytest.raises(ConfigError, match="protocol must be one of"):
        evaluation.cut(random_panel([9]), "mine")  # type: ignore[arg-type]  # wrong on purpose
    for origins in (1, 2):
        with pytest.raises(ConfigError, match="protocol must be"):
            wrong: Any = "honset"
            evaluation.compare(random_panel([90]), protocol=wrong, origins=origins)
    with pytest.raises(ConfigError, match="origins must be a whole number, at least 1"):
        evaluation.compare(random_panel([90]), origins=0)
    with pytest.raises(ConfigError, match="cannot go with the paper's protocol"):
        evaluation.compare(random_panel([90]), protocol="paper", origins=2)
    with pytest.raises(ConfigError, match="cannot go with a cut of your own"):
        evaluation.compare(random_panel([90]), origins=2, parts=evaluation.cut(random_panel([90])))
    with pytest.raises(DataError, match="of rolling origins, fewer"):
        evaluation.compare(random_panel([20]), origins=30)
    with pytest.raises(ConfigError, match="seeds must be a whole number, at least 1"):
        evaluation.compare(random_panel([90]), seeds=0)


def test_diebold_mariano_is_calibrated_under_correlated_losses() -> None:
    generator = np.random.default_rng(1)
    rejected = []
    for _ in range(400):
        noise = generator.normal(size=(2, 610))
        smooth = np.stack([np.convolve(one, np.ones(10) / 3, mode="valid")[:600] for one in noise])
        rejected.append(diebold_mariano(smooth[0] ** 2, smooth[1] ** 2) < 0.05)
    assert 0.02 < np.mean(rejected) < 0.13  # a plain t test rejects a third of them
    assert diebold_mariano(np.ones(50), np.ones(50)) == 1.0


def test_diebold_mariano_with_independent_losses_is_a_t_test() -> None:
    from scipy import stats

    first, second = np.random.default_rng(2).chisquare(2, size=(2, 4000))
    assert diebold_mariano(first, second + 0.03) == pytest.approx(
        stats.ttest_rel(first, second + 0.03).pvalue, abs=0.06
    )


def test_the_bootstrap_interval_covers() -> None:
    generator = np.random.default_rng(3)
    covered = []
    for draw in range(200):
        losses = generator.chisquare(1, size=(2, 400))
        low, high = paired_bootstrap(losses[0], losses[1], draws=300, seed=draw)
        covered.append(low <= 0 <= high)
    assert 0.88 < np.mean(covered) < 0.99


def test_the_p_value_of_the_bootstrap_is_calibrated_and_agrees_with_its_interval() -> None:
    generator = np.random.default_rng(4)
    rejected = []
    for _ in range(150):
        noise = generator.normal(size=(2, 305))
        losses = np.stack([np.convolve(one, np.ones(6) / 2, mode="valid") ** 2 for one in noise])
        found = difference(losses[0], losses[1])
        rejected.append(found.p_bootstrap < 0.05)
        if abs(found.p_bootstrap - 0.05) > 0.01:  # at the very edge, interpolated quantiles may differ
            assert rejected[-1] == (found.low * found.high > 0)
    assert 0.01 < np.mean(rejected) < 0.14


def test_the_spread_over_seeds_counts_as_chance() -> None:
    """Trainings whose means scatter around the rival's are no evidence, however many rows there are."""
    generator = np.random.default_rng(6)
    by_seeds, by_bootstrap, by_rows = [], [], []
    for _ in range(200):
        rival = generator.chisquare(1, size=500)
        trainings = rival + generator.normal(0, 0.1, size=500) + generator.normal(0, 0.05, size=(5, 1))
        found = difference(trainings, rival)
        by_seeds.append(found.p < 0.05)
        by_bootstrap.append(found.p_bootstrap < 0.05)
        by_rows.append(diebold_mariano(trainings.mean(axis=0), rival) < 0.05)
    assert 0.005 < np.mean(by_seeds) < 0.1
    assert np.mean(by_bootstrap) < 0.2  # five trainings drawn anew vary less than new ones would
    assert np.mean(by_rows) > 0.3  # what it was before seeds counted


def test_one_training_is_as_good_as_its_only_row() -> None:
    first, second = np.random.default_rng(7).chisquare(1, size=(2, 300))
    assert difference(first[None], second) == difference(first, second)
    same = difference(np.stack([first, first, first]), second)
    assert same.p == pytest.approx(diebold_mariano(first, second))


def test_equal_and_perfect_models_can_be_compared() -> None:
    losses = np.random.default_rng(5).chisquare(1, size=300)
    same = difference(losses, losses)
    assert (same.change, same.p, same.p_bootstrap, same.significant) == (0.0, 1.0, 1.0, False)
    assert difference(np.zeros(50), np.zeros(50)).change == 0.0
    assert difference(losses, np.zeros(300)).change > 1e6
    assert difference(np.zeros(300), losses).change == -1.0
    worse = difference(losses + 0.5, losses)
    assert worse.significant and 0 < worse.low < worse.change < worse.high


def test_parts_of_ones_own_are_matched_by_name() -> None:
    parts = evaluation.cut(random_panel([200], n_inputs=2, seed=3))
    others = {
        name: replace(part, inputs=part.inputs[:, ::-1], input_names=part.input_names[::-1])
        for name in ("validation", "test", "lead_in")
        for part in [getattr(parts, name)]
    }
    expected = evaluation.compare(parts.train, ["arx-lr"], parts=parts, seeds=1)
    found = evaluation.compare(parts.train, ["arx-lr"], parts=replace(parts, **others), seeds=1)
    np.testing.assert_array_equal(found.errors("arx-lr"), expected.errors("arx-lr"))


def test_one_name_is_a_list_of_one_and_names_may_come_one_by_one() -> None:
    several: list[Any] = ["persistence", iter(["persistence"])]  # beyond what is promised
    for models in several:
        lines = evaluation.compare(random_panel([100]), models, seeds=1).rows()
        assert [line["model"] for line in lines] == ["persistence"]
