"""Claims: every one with figures from the committed results, and verdicts that can go either way."""

import re
from pathlib import Path

import numpy as np
import pytest

from varnn.network.cell import VARIANTS
from varnn.paper.claims import ablations, claims, claims_page, results
from varnn.paper.claims.claim import Figures
from varnn.paper.jobs import Job, Outcome
from varnn.paper.plan import Scope
from varnn.paper.runner import Outcomes

RESULTS = Path(__file__).parents[2] / "docs" / "reproduction"


def flat(scope: Scope, error: float = 0.001) -> Outcomes:
    """Give every job of a scope the same outcome."""
    epochs = [[epoch, error, error * (1 + 1 / epoch)] for epoch in range(1, 51)]
    return {one: Outcome(error, error, 1.0, epochs, np.empty(0, np.float32)) for one in scope.jobs()}


def changed(outcomes: Outcomes, factor: float, **wanted: object) -> Outcomes:
    """Multiply the errors of the jobs whose fields are as wanted."""

    def fits(one: Job) -> bool:
        settings = dict(one.settings)
        return all(getattr(one, name, settings.get(name)) == value for name, value in wanted.items())

    return {
        one: Outcome(
            outcome.train * factor,
            outcome.test * factor,
            1.0,
            [[line[0], line[1] * factor, line[2] * factor] for line in outcome.epochs],
        )
        if fits(one)
        else outcome
        for one, outcome in outcomes.items()
    }


def test_every_claim_has_a_figure_and_a_verdict() -> None:
    scope = Scope()
    found = claims(scope, changed(flat(scope), 2.0, residual="none"))
    assert len(found) >= 25
    for one in found:
        assert re.search(r"\d", one.measured), one
        assert one.verdict in ("holds", "in part", "does not hold")
        assert one.words and one.place
    page = claims_page(found)
    assert page.count("\n| ") == len(found) + 1
    assert "<" not in page


def test_a_claim_without_its_figures_is_left_out() -> None:
    scope = Scope()
    outcomes = {one: outcome for one, outcome in flat(scope).items() if one.model != "ARM"}
    words = [one.words for one in claims(scope, outcomes)]
    assert any("35% reduction" in one for one in words)
    assert not any("ARM" in one for one in words)


def test_variants_that_are_equal_are_close_and_others_are_not() -> None:
    scope = Scope()
    outcomes = flat(scope)
    assert ablations.variants_are_close(Figures(scope, outcomes))[0].verdict == "holds"
    apart = changed(changed(outcomes, 1.1, model="RM"), 0.9, model="ARM+AM")
    assert ablations.variants_are_close(Figures(scope, apart))[0].verdict == "does not hold"
    one_set = changed(outcomes, 1.1, model="RM", dataset="beijing")
    assert ablations.variants_are_close(Figures(scope, one_set))[0].verdict == "in part"


@pytest.mark.parametrize(("correct", "verdict"), [(0.5, "in part"), (1.0, "holds")])
def test_a_reduction_holds_in_full_against_a_correct_baseline_only(correct: float, verdict: str) -> None:
    scope = Scope()
    outcomes = flat(scope)
    for variant in VARIANTS:
        outcomes = changed(outcomes, 0.6, model=variant)
    outcomes = changed(outcomes, correct, model="arx-lr", lags="correct")
    (appliances, *_) = results.reductions(Figures(scope, outcomes))
    assert appliances.verdict == verdict
    assert "40 % below ARX without y[t-1]" in appliances.measured


def test_speed_and_unrest_of_a_curve() -> None:
    epochs = np.arange(1, 41)
    fast, slow = (np.stack([level, level], axis=1)[None] for level in (1 / epochs, 4 / epochs))
    assert ablations.epochs_to(fast, 0.25) == 4
    assert ablations.epochs_to(slow, 0.25) == 16
    assert ablations.epochs_to(slow, 0.01) == 40  # never
    restless = fast.copy()
    restless[:, ::2] *= 1.5
    assert ablations.unrest(restless) > 5 * ablations.unrest(fast)
