"""Rows that differ from print, tried for their cause: trees, readings of recurrent rows, splits of BIDMC."""

from typing import Any

import numpy as np

from varnn.paper.jobs import FORESTS, RECURRENT, Job
from varnn.paper.plan import Scope
from varnn.paper.published import TITLES, published, verdict
from varnn.paper.runner import Outcomes
from varnn.paper.tables import summarise

Lines = list[dict[str, Any]]
READINGS = [(current, activation) for current in (False, True) for activation in ("relu", "tanh")]


def forests(scope: Scope, outcomes: Outcomes) -> Lines:
    """Compare the printed forests with 100 trees and, of the static one on Appliances, the paper's 500."""
    lines: Lines = []
    for dataset in scope.data:
        for model in FORESTS:
            settings = {} if model == "rf" else {"lags": "as-published"}
            for jobs in (
                scope.with_seeds(dataset, "paper", model, **settings),
                scope.large_forest(dataset, model),
            ):
                line = _against_print(dataset, model, jobs, outcomes)
                if line:
                    trees = dict(jobs[0].settings)["trees"]
                    lines.append({"data set": TITLES[dataset], "model": model, "trees": trees, **line})
    return lines


def readings(scope: Scope, outcomes: Outcomes) -> Lines:
    """Compare the printed recurrent rows with four readings: with x_t or without, relu or tanh."""
    lines: Lines = []
    for dataset in scope.data:
        for model in RECURRENT:
            for current, activation in READINGS:
                jobs = scope.reading(dataset, model, current=current, activation=activation)
                line = _against_print(dataset, model, jobs, outcomes)
                if line:
                    name = {"data set": TITLES[dataset], "model": model}
                    lines.append({**name, "sees x_t": _said(current), "activation": activation, **line})
    return lines


def readings_summary(lines: Lines) -> Lines:
    """Say how far each reading lies from print, over all data sets: the mean of |log(ours / printed)|."""
    found: Lines = []
    for current, activation in READINGS:
        chosen = [
            line for line in lines if (line["sees x_t"], line["activation"]) == (_said(current), activation)
        ]
        if not chosen:
            continue
        distances = {
            part: np.array([abs(np.log(line[f"{part}: ours"] / line[f"{part}: paper"])) for line in chosen])
            for part in ("train", "test")
        }
        without = np.array([line["data set"] != TITLES["bidmc"] for line in chosen])
        found.append(
            {
                "sees x_t": _said(current),
                "activation": activation,
                "rows": len(chosen),
                "mean distance, test": float(np.expm1(distances["test"].mean())),
                "mean distance, train": float(np.expm1(distances["train"].mean())),
                "without BIDMC, test": _mean(distances["test"][without]),
                "without BIDMC, train": _mean(distances["train"][without]),
            }
        )
    return found


def splits(scope: Scope, outcomes: Outcomes) -> Lines:
    """Show how test errors on BIDMC spread over random splits of its records, and where print lies."""
    lines: Lines = []
    if "bidmc" not in scope.data:
        return lines
    by_model = scope.splits()
    correct = {one.split: one for one in by_model["arx-lr, correct"]}
    for name, jobs in by_model.items():
        ran = [one for one in jobs if one in outcomes]
        if not ran:
            continue
        model, _, lags = name.partition(", ")
        table = "table3" if model == "RM" else "table2"
        printed = published()[table].get(model, {}).get("bidmc") if lags != "correct" else None
        for index, part in enumerate(("train", "test")):
            errors = np.array([getattr(outcomes[one], part) for one in ran])
            both = [one for one in ran if correct[one.split] in outcomes]
            ratios = [
                getattr(outcomes[one], part) / getattr(outcomes[correct[one.split]], part) for one in both
            ]
            low, lower, median, upper, high = np.quantile(errors, [0, 0.05, 0.5, 0.95, 1])
            lines.append(
                {
                    "model": name,
                    "part": part,
                    "splits": len(ran),
                    "lowest": float(low),
                    "5 %": float(lower),
                    "median": float(median),
                    "95 %": float(upper),
                    "highest": float(high),
                    "paper": printed[index] if printed else None,
                    "splits below paper": int((errors < printed[index]).sum()) if printed else None,
                    "over correct ARX of the same split, median": float(np.median(ratios)) if both else None,
                    "of them lower": sum(ratio < 1 for ratio in ratios) if both else None,
                }
            )
    return lines


def _against_print(dataset: str, model: str, jobs: list[Job], outcomes: Outcomes) -> dict[str, Any]:
    """Give printed figure, mean, spread over seeds and verdict, for train and test."""
    line: dict[str, Any] = {}
    for index, part in enumerate(("train", "test")):
        mean, spread, seeds = summarise(jobs, outcomes, part)
        if not seeds:
            return {}
        printed = published()["table2"][model][dataset][index]
        found = {
            "paper": printed,
            "ours": mean,
            "spread": spread,
            "verdict": str(verdict(printed, mean, spread)),
        }
        line |= {"seeds": seeds} | {f"{part}: {name}": value for name, value in found.items()}
    return line


def _said(current: bool) -> str:
    return "yes" if current else "no"


def _mean(distances: Any) -> float | None:
    return float(np.expm1(distances.mean())) if len(distances) else None
