"""Outcomes -> all claims; claims -> a page."""

from collections import Counter
from collections.abc import Sequence

from varnn.paper.claims import ablations, results
from varnn.paper.claims.claim import Claim, Figures
from varnn.paper.plan import Scope
from varnn.paper.runner import Outcomes

VERDICTS = {  # of one claim, and of several
    "holds": "hold",
    "in part": "hold in part",
    "does not hold": "do not hold",
    "not judged": "were not judged",
}


def claims(scope: Scope, outcomes: Outcomes) -> list[Claim]:
    """Judge every claim; one whose figures were not all run is not judged, and says which is missing."""
    figures = Figures(scope, outcomes)
    found: list[Claim] = []
    for judged in (*results.CLAIMS, *ablations.CLAIMS):
        try:
            one = judged(figures)
        except LookupError as missing:
            about = (judged.__doc__ or "").strip().removeprefix("Judge ").rstrip(".")
            one = Claim("not run", about, f"{missing.args[0]} has not run, or another like it", {})
        found += one if isinstance(one, list) else [one]
    return found


def claims_page(found: Sequence[Claim]) -> str:
    """Write claims as a page: the paper's words, what we measured, and whether it holds."""
    counts = Counter(one.verdict for one in found)
    said = ", ".join(f"{counts[one]} {many}" for one, many in VERDICTS.items() if counts[one])
    lines = [
        "# The paper's claims, one by one",
        "",
        f"Of {len(found)} claims {said}. The words are the paper's. Every figure is computed from "
        "[outcomes.csv](outcomes.csv), [epochs.csv](epochs.csv) and the printed tables by `varnn "
        "reproduce`, and so is every verdict: a claim is split into facts, which the last column counts "
        "and, where some fail, names. What is true of the paper's own tables, of its rows as we ran them "
        "and of a fair comparison are facts of their own. Mean squared errors in min-max units, means over "
        "seeds, paper protocol where nothing else is said.",
        "",
        "| where | the paper's words | measured | verdict |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {' | '.join(_cell(text) for text in (one.place, one.words, one.measured, _judged(one)))} |"
        for one in found
    ]
    return "\n".join(lines) + "\n"


def _judged(claim: Claim) -> str:
    fails = [fact for fact, holds in claim.facts.items() if not holds]
    if not fails:
        return f"{claim.verdict} ({len(claim.facts)} of {len(claim.facts)})" if claim.facts else claim.verdict
    return f"{claim.verdict} ({len(claim.facts) - len(fails)} of {len(claim.facts)}). Not: {'; '.join(fails)}"


def _cell(text: str) -> str:
    return text.replace("|", r"\|").replace("<", "&lt;").replace(">", "&gt;")
