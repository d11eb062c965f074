"""Outcomes -> all claims; claims -> a page."""

from collections.abc import Sequence

from varnn.paper.claims import ablations, results
from varnn.paper.claims.claim import Claim, Figures
from varnn.paper.plan import Scope
from varnn.paper.runner import Outcomes


def claims(scope: Scope, outcomes: Outcomes) -> list[Claim]:
    """Judge every claim whose figures were all run."""
    figures = Figures(scope, outcomes)
    found: list[Claim] = []
    for judged in (*results.CLAIMS, *ablations.CLAIMS):
        try:
            one = judged(figures)
        except LookupError:
            continue
        found += one if isinstance(one, list) else [one]
    return found


def claims_page(found: Sequence[Claim]) -> str:
    """Write claims as a page: the paper's words, what we measured, and whether it holds."""
    counts = {
        word: sum(one.verdict == word for one in found) for word in ("holds", "in part", "does not hold")
    }
    lines = [
        "# The paper's claims, one by one",
        "",
        f"Of {len(found)} claims {counts['holds']} hold, {counts['in part']} hold in part and "
        f"{counts['does not hold']} do not. The words are the paper's; every figure is computed from "
        "[outcomes.csv](outcomes.csv), [epochs.csv](epochs.csv) and the printed tables by `varnn "
        "reproduce`, and so is every verdict: a claim is split into facts (on each data set, say), and "
        "holds in part where some of them do. Mean squared errors in min-max units, means over seeds, "
        "paper protocol where nothing else is said. A claim is about the paper's own tables first: where "
        "it is true of them and not of a fair comparison, both are said.",
        "",
        "| where | the paper's words | measured | verdict |",
        "|---|---|---|---|",
    ]
    lines += [
        "| "
        + " | ".join(_cell(text) for text in (one.place, f'"{one.words}"', one.measured, one.verdict))
        + " |"
        for one in found
    ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", r"\|").replace("<", "&lt;").replace(">", "&gt;")
