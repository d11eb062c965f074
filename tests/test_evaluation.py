"""Protocols cut where they say, metrics are what they are called, significance is calibrated."""

import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error, mean_squared_error

from tests.cases import random_panel
from varnn import Panel, evaluation
from varnn.errors import ConfigError, DataError
from varnn.significance import diebold_mariano, paired_bootstrap


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
        evaluation.cut(random_panel([9]), "mine")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="seeds must be at least 1"):
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
