"""Claims: every one with figures from the committed results, and verdicts that can go either way."""

import json
import re
from collections.abc import Callable

import numpy as np
import pytest

from varnn.paper.claims import Claim, ablations, claims, claims_page, results
from varnn.paper.claims.claim import Figures
from varnn.paper.jobs import Job, Outcome
from varnn.paper.plan import Scope
from varnn.paper.runner import Outcomes

Judged = Callable[[Figures], Claim | list[Claim]]


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
    outcomes = flat(scope)
    for factor, model in enumerate(("lr", "mlp", "ARM"), start=2):  # so that no two are level
        outcomes = changed(outcomes, float(factor), model=model)
    found = claims(scope, outcomes)
    assert len(found) >= 30
    for one in found:
        assert re.search(r"\d", one.measured), one
        assert one.verdict in ("holds", "in part", "does not hold")
        assert one.words and one.place and one.facts
        json.dumps(one.facts)  # no truth values of NumPy's
    page = claims_page(found)
    assert page.count("\n| ") == len(found) + 1
    assert "<" not in page


def test_a_claim_without_its_figures_is_not_judged_and_says_so() -> None:
    scope = Scope()
    outcomes = {one: outcome for one, outcome in flat(scope).items() if one.model != "ARM"}
    found = claims(scope, outcomes)
    assert any("35% reduction" in one.words for one in found)
    (missing, *_) = (one for one in found if one.verdict == "not judged")
    assert "ARM" in missing.measured
    assert "not judged" in claims_page(found)


def test_variants_that_are_equal_are_close_and_others_are_not() -> None:
    scope = Scope()

    def close(outcomes: Outcomes) -> list[bool]:
        (claim, *_) = ablations.variants_are_close(Figures(scope, outcomes))
        return [true for fact, true in claim.facts.items() if "ours" in fact]

    assert close(flat(scope)) == [True, True, True]
    apart = changed(changed(flat(scope), 1.1, model="RM"), 0.9, model="ARM+AM")
    assert close(apart) == [False, False, False]


@pytest.mark.parametrize(("correct", "verdict"), [(0.5, "in part"), (1.0, "holds")])
def test_a_reduction_holds_in_full_against_a_correct_baseline_only(correct: float, verdict: str) -> None:
    scope = Scope()
    outcomes = changed(flat(scope), 0.6, model="RM")
    outcomes = changed(outcomes, correct, model="arx-lr", lags="correct")
    (appliances, *_) = results.reductions(Figures(scope, outcomes))
    assert appliances.verdict == verdict
    assert "40 % below ARX without y[t-1]" in appliances.measured


@pytest.mark.parametrize(
    ("judged", "low", "flips"),
    [
        (results.lowest, {"model": "RM"}, "Beijing, ARX and NARX-MLP given y[t-1]"),
        (results.robust, {"model": "RM"}, "BIDMC, every seed below ARX with y[t-1]"),
        (results.conclusion, {"model": "RM"}, "Appliances, ours"),
        (results.recurrent_mixed, {"model": "lr"}, "Appliances, competitive: as good as the best static row"),
        (ablations.memory_helps, {"residual": "none"}, "Appliances, RM and ARM a quarter lower"),
        (ablations.projection_helps, {"residual": "scalar"}, "BIDMC, every m lower"),
    ],
)
def test_a_fact_can_go_either_way(judged: Judged, low: dict[str, object], flips: str) -> None:
    """The jobs named have a tenth of the others' error, or ten times it: some fact must turn."""
    scope = Scope()
    facts = []
    for factor in (0.1, 10.0):
        found = judged(Figures(scope, changed(flat(scope), factor, **low)))
        every = found if isinstance(found, list) else [found]
        facts.append({name: true for one in every for name, true in one.facts.items()})
    turned = {name for name in facts[0] if facts[0][name] != facts[1][name]}
    assert flips in turned


def test_speed_and_unrest_of_a_curve() -> None:
    epochs = np.arange(1, 41)
    fast, slow = (np.stack([level, level], axis=1)[None] for level in (1 / epochs, 4 / epochs))
    assert ablations.epochs_to(fast, 0.25) == 4
    assert ablations.epochs_to(slow, 0.25) == 16
    assert ablations.epochs_to(slow, 0.01) == 40  # never
    restless = fast.copy()
    restless[:, ::2] *= 1.5
    assert ablations.unrest(restless) > 5 * ablations.unrest(fast)
    assert ablations.unrest(fast, first=0, last=10) > ablations.unrest(fast)
