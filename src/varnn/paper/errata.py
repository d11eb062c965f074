"""What a reader of the paper's tables should know, each point with the figures that show it.

No figure here is typed in: every erratum is a function of the printed figures and of our outcomes, and is
left out when the outcomes it needs were not run. Where a slip has an innocent cause, or the evidence two
sides, both are said.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from varnn import datasets
from varnn.datasets import bidmc
from varnn.network.cell import VARIANTS
from varnn.paper.causes import forests, readings, readings_summary
from varnn.paper.jobs import FORESTS, RECURRENT
from varnn.paper.plan import Scope
from varnn.paper.published import TITLES, published, verdict
from varnn.paper.runner import Outcomes
from varnn.paper.tables import summarise


@dataclass(frozen=True)
class Erratum:
    """One point: what it is about, what is printed, what we found."""

    title: str
    printed: str
    found: str


def errata(scope: Scope, outcomes: Outcomes) -> list[Erratum]:
    """Give every erratum whose evidence is at hand."""
    found: list[Erratum] = []
    for check in _CHECKS:
        found += check(scope, outcomes)
    return found


def _missing_lag(scope: Scope, outcomes: Outcomes) -> list[Erratum]:
    printed_parts, found_parts = [], []
    for dataset in scope.data:
        figures = {}
        for lags in ("as-published", "correct"):
            jobs = scope.with_seeds(dataset, "paper", "arx-lr", lags=lags)
            figures[lags], _, seeds = summarise(jobs, outcomes, "test")
            if not seeds:
                return []
        arx, rm = (published()["table2"][model][dataset][1] for model in ("arx-lr", "RM"))
        same = verdict(arx, figures["as-published"]).word == "equal"
        printed_parts.append(f"{TITLES[dataset]} ARX {arx:.5f}, RM {rm:.5f}, {1 - rm / arx:.0%} lower")
        found_parts.append(
            f"{TITLES[dataset]} {figures['as-published']:.5f} without y[t-1] ({'' if same else 'not '}the "
            f"printed figure), {figures['correct']:.5f} with it: the printed RM is then "
            f"{_distance(1 - rm / figures['correct'])}"
        )
    return [
        Erratum(
            "The lagged baselines leave out y[t-1]",
            f"{'; '.join(printed_parts)}.",
            f"{'; '.join(found_parts)}. An innocent cause: the paper writes the labels of a window as "
            "y[t-w+1 : t-1], which as a slice in Python stops at t-2.",
        )
    ]


def _distance(left: float) -> str:
    if abs(left) < 0.005:
        return "level with it"
    return f"{abs(left):.0%} {'lower' if left > 0 else 'higher'}"


def _persistence(scope: Scope, outcomes: Outcomes) -> list[Erratum]:
    parts = []
    for dataset in scope.data:
        (naive,) = scope.with_seeds(dataset, "paper", "persistence")
        if naive in outcomes:
            best = min(published()["table3"][variant][dataset][1] for variant in VARIANTS)
            parts.append(f"{TITLES[dataset]} {outcomes[naive].test:.6f} (best printed VARNN {best:.5f})")
    if not parts:
        return []
    return [
        Erratum(
            "The simplest baseline is missing",
            "No table shows persistence, the last label as the prediction.",
            f"Its test error: {'; '.join(parts)}.",
        )
    ]


def _repeated_pair(scope: Scope, outcomes: Outcomes) -> list[Erratum]:
    row = published()["table2"]["mlp"]
    if row["bidmc"] != row["beijing"] or "bidmc" not in scope.data:
        return []
    ours, _, seeds = summarise(scope.with_seeds("bidmc", "paper", "mlp"), outcomes, "test")
    linear, _, linear_seeds = summarise(scope.with_seeds("bidmc", "paper", "lr"), outcomes, "test")
    measured = f"A static MLP gives {ours:.5f} there" if seeds else "We did not run it"
    if linear_seeds:
        measured += f", linear regression {linear:.5f}"
    train, test = row["bidmc"]
    return [
        Erratum(
            "One pair of figures stands twice",
            f"Static MLP: {train:.5f} / {test:.5f} on BIDMC, and the same pair on Beijing.",
            f"{measured}: the printed BIDMC pair is Beijing's.",
        )
    ]


def _test_selection(scope: Scope, outcomes: Outcomes) -> list[Erratum]:
    parts = []
    for dataset in scope.data:
        jobs = [one for one in scope.with_seeds(dataset, "paper", "RM") if one in outcomes]
        honest, _, seeds = summarise(scope.with_seeds(dataset, "honest", "RM"), outcomes, "test")
        if not jobs or not seeds:
            continue
        curves = [[line[2] for line in outcomes[one].epochs] for one in jobs]
        minimum = float(np.mean([min(curve) for curve in curves]))
        typical = float(np.mean([np.median(curve[len(curve) // 2 :]) for curve in curves]))
        parts.append(
            f"{TITLES[dataset]} {minimum:.6f} at its best epoch on the test part, {typical:.6f} in a "
            f"typical late one ({typical / minimum - 1:+.0%}), {honest:.6f} where a validation part of its "
            "own picks"
        )
    if not parts:
        return []
    floor, figure = (
        published()["activation"]["appliances"]["floor"],
        published()["table2"]["RM"]["appliances"][1],
    )
    return [
        Erratum(
            "The test part appears to pick the epoch",
            "Early stopping on validation error, with an 80/20 train/test split and no other part named.",
            f"RM: {'; '.join(parts)}. For it speaks that the printed {figure:.5f} on Appliances is what "
            "picking on the test part gives; against it, that the validation floor named for the same "
            f"model and data ({floor:.4f}, appendix B) is another figure than that test error. We cannot "
            "tell; the table's protocol column says which is which.",
        )
    ]


def _interpolation(scope: Scope, outcomes: Outcomes) -> list[Erratum]:
    jobs = scope.filled_by_part()
    if "beijing" not in scope.data or any(one not in outcomes for one in jobs):
        return []
    raw = datasets.load("beijing", download=False)
    targets, cells = float(np.isnan(raw.target).mean()), float(np.isnan(raw.inputs).mean())
    by_part = [f"{outcomes[one].train:.5f} / {outcomes[one].test:.5f}" for one in jobs]
    return [
        Erratum(
            "Gaps are filled from both sides (Beijing)",
            "Missing values are filled per station after scaling.",
            f"The printed linear rows come out with linear interpolation, target included: {targets:.1%} of "
            f"the targets and {cells:.1%} of the inputs then carry values from later hours, which a live "
            "predictor would not have, and made-up targets are scored. This does not show a leak across "
            f"the split: with every part interpolated by itself the linear row has {by_part[0]} and ARX as "
            f"published {by_part[1]}, the same digits.",
        )
    ]


def _past_labels(scope: Scope, outcomes: Outcomes) -> list[Erratum]:
    parts = []
    for dataset in scope.data:
        rm, _, seeds = summarise(scope.with_seeds(dataset, "honest", "RM"), outcomes, "test")
        figures = []
        for model in RECURRENT:
            plain, _, ran = summarise(scope.with_seeds(dataset, "honest", model), outcomes, "test")
            labels, _, also = summarise(
                scope.with_seeds(dataset, "honest", model, fair=True), outcomes, "test"
            )
            if ran and also:
                figures.append(f"{model.upper()} {plain:.6f} without, {labels:.6f} with")
        if seeds and figures:
            parts.append(f"{TITLES[dataset]} {', '.join(figures)}, RM {rm:.6f}")
    if not parts:
        return []
    return [
        Erratum(
            "The recurrent rows see no past label",
            "RNN, LSTM and GRU consume covariate steps; VARNN, ARX and NARX see the labels before the "
            "predicted one as well.",
            f"Honest test error with those labels as one more input, and without: {'; '.join(parts)}. Most "
            "of the gap to the recurrent rows is what they are shown, not how they are built.",
        )
    ]


def _recurrent_reading(scope: Scope, outcomes: Outcomes) -> list[Erratum]:
    lines = readings(scope, outcomes)
    summary = readings_summary(lines)
    if len(lines) < 4 * len(RECURRENT) * len(scope.data) or not summary:
        return []
    best = min(summary, key=lambda line: line["mean distance, test"])
    said = [
        f"{'with' if line['sees x_t'] == 'yes' else 'without'} x_t and {line['activation']} "
        f"{line['mean distance, test']:.0%}"
        for line in summary
    ]
    return [
        Erratum(
            "What the recurrent rows are fed",
            "w-1 covariate steps, and relu in all networks.",
            f"Mean distance of our test figures from print over {best['rows']} rows: {', '.join(said)}. The "
            f"reading {'with' if best['sees x_t'] == 'yes' else 'without'} x_t and with "
            f"{best['activation']} fits best, so print looks as if the current inputs were shown as well. "
            "On BIDMC no reading comes near, as its split is not known.",
        )
    ]


def _trees(scope: Scope, outcomes: Outcomes) -> list[Erratum]:
    lines = [line for line in forests(scope, outcomes) if line["data set"] == TITLES["appliances"]]
    if len({line["trees"] for line in lines}) < 2:
        return []
    said = [
        f"{published()['models'][line['model']]} with {line['trees']} trees {line['train: ours']:.6f} / "
        f"{line['test: ours']:.5f}"
        for line in lines
    ]
    printed = [
        f"{published()['models'][model]} {published()['table2'][model]['appliances'][0]:.5f} / "
        f"{published()['table2'][model]['appliances'][1]:.5f}"
        for model in FORESTS
    ]
    return [
        Erratum(
            "The forests look like 100 trees, not 500 (Appliances)",
            f"500 trees; {'; '.join(printed)}.",
            f"{'; '.join(said)}. Training errors, which hardly depend on the seed, tell; scikit-learn's "
            "default is 100.",
        )
    ]


def _memory_size(scope: Scope, outcomes: Outcomes) -> list[Erratum]:
    best, hidden = published()["memory_size"]["bidmc"]["best_m"], published()["protocol"]["hidden"]
    return [
        Erratum(
            "The memory is not always small",
            'The complexity section takes m << k "in practice".',
            "True of Beijing (m = d = 9) and nearly of Appliances (27). On BIDMC the default is m = d = "
            f"375, and so is the best m in print ({best}), above k = {hidden}. Table 1 counts BIDMC's three "
            "channels as 3 features, while the model sees 375 inputs.",
        )
    ]


def _patients(scope: Scope, outcomes: Outcomes) -> list[Erratum]:
    if "bidmc" not in scope.data:
        return []
    patients = bidmc.patients()
    train, test = bidmc.paper_records()
    shared = {patients[one] for one in train} & {patients[one] for one in test}
    return [
        Erratum(
            "Records are not patients (BIDMC)",
            f"{len(patients)} adults.",
            f"{len(patients)} records come from {len(set(patients.values()))} patients. In our reading of "
            f"the split, {len(shared)} patients have records on both sides.",
        )
    ]


_CHECKS: tuple[Callable[[Scope, Outcomes], list[Erratum]], ...] = (
    _missing_lag,
    _persistence,
    _past_labels,
    _test_selection,
    _repeated_pair,
    _recurrent_reading,
    _trees,
    _interpolation,
    _memory_size,
    _patients,
)
