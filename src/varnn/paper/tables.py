"""Outcomes -> the paper's tables, every cell with the printed figure, ours and a verdict."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from varnn import datasets
from varnn.evaluation import ProtocolName
from varnn.evaluation.significance import difference
from varnn.network.cell import VARIANTS
from varnn.paper.jobs import FORESTS, RECURRENT, STATIC, Job
from varnn.paper.plan import BEYOND, LAG_SETS, LAGGED, PROTOCOLS, Scope, ablation_settings
from varnn.paper.published import TITLES, Verdict, published, verdict
from varnn.paper.runner import Outcomes

PAST_LABELS = "past labels too"  # recurrent rows that see what VARNN sees


@dataclass(frozen=True)
class Cell:
    """One figure: what is printed, what we measured, what that means."""

    table: str
    dataset: str
    model: str
    setting: str
    protocol: ProtocolName
    part: str  # "train" or "test"
    printed: float | None
    mean: float
    spread: float
    seeds: int
    reason: str = ""

    @property
    def verdict(self) -> Verdict:
        """Say how ours compares with the printed figure."""
        return verdict(self.printed, self.mean, self.spread, digits=6 if self.table == "memory size" else 5)


def summarise(jobs: Sequence[Job], outcomes: Outcomes, part: str) -> tuple[float, float, int]:
    """Mean, standard deviation over seeds, and number of the seeds that ran."""
    values = [getattr(outcomes[one], part) for one in jobs if one in outcomes]
    if not values:
        return np.nan, np.nan, 0
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0, len(values)


def table1(scope: Scope) -> list[dict[str, Any]]:
    """Table 1: rows, inputs and target of each data set, as loaded here and as printed."""
    lines = []
    for name in scope.data:
        panel = datasets.load(name, paper=True, download=False)
        raw = datasets.load(name, download=False)
        printed = published()["table1"][name]
        lines.append(
            {
                "data set": TITLES[name],
                "rows (paper)": printed["rows"],
                "rows": len(panel),
                "missing (paper)": "yes" if printed["missing"] else "no",
                "missing (raw)": "yes" if np.isnan(raw.target).any() or np.isnan(raw.inputs).any() else "no",
                "inputs (paper)": printed["features"],
                "inputs": panel.n_inputs,
                "target": panel.target_name,
                "licence": panel.licence,
            }
        )
    return lines


def table2(scope: Scope, outcomes: Outcomes) -> list[Cell]:
    """Table 2 and Table 3, under both protocols, with both lag sets and the models a reviewer asks for."""
    cells: list[Cell] = []
    for dataset in scope.data:
        for model in (*BEYOND, *STATIC, *LAGGED, *RECURRENT, *VARIANTS):
            for setting, options in _readings(model):
                for protocol in PROTOCOLS:
                    jobs = scope.with_seeds(dataset, protocol, model, **options)
                    table = "table3" if model in VARIANTS else "table2"
                    source = published()[table].get(model, {}).get(dataset)
                    as_printed = protocol == "paper" and setting in ("", "as-published")
                    for index, part in enumerate(("train", "test")):
                        mean, spread, seeds = summarise(jobs, outcomes, part)
                        if seeds == 0:
                            continue
                        cells.append(
                            Cell(
                                table=table,
                                dataset=dataset,
                                model=model,
                                setting=setting,
                                protocol=protocol,
                                part=part,
                                printed=source[index] if source and as_printed else None,
                                mean=mean,
                                spread=spread,
                                seeds=seeds,
                                reason=_reason(scope, dataset, model) if as_printed else "",
                            )
                        )
    return cells


def ablations(scope: Scope, outcomes: Outcomes) -> list[Cell]:
    """Test error of the ablations: no memory, scalar memory, memory size, ARM, tanh."""
    cells: list[Cell] = []
    for dataset in scope.data:
        printed = published()["memory_size"][dataset]
        for settings in ablation_settings(dataset):
            variant = str(settings.pop("variant"))
            jobs = scope.with_seeds(dataset, "paper", variant, **settings)
            mean, spread, seeds = summarise(jobs, outcomes, "test")
            if seeds == 0:
                continue
            said = {name: value for name, value in settings.items() if name != "learning_rate"}
            source = None
            if said.get("residual") == "scalar":
                source = printed["scalar"]
            elif said.get("memory_size") == printed["best_m"]:
                source = printed["best"]
            setting = ", ".join(f"{name}={value}" for name, value in said.items()) or "accumulating"
            cells.append(
                Cell(
                    table="memory size",
                    dataset=dataset,
                    model=variant,
                    setting=setting,
                    protocol="paper",
                    part="test",
                    printed=source,
                    mean=mean,
                    spread=spread,
                    seeds=seeds,
                )
            )
    return cells


def significance(scope: Scope, outcomes: Outcomes) -> list[dict[str, Any]]:
    """Compare models with correct ARX on the honest test rows: Diebold-Mariano and a paired bootstrap.

    Both count the spread over seeds as chance, too.
    """
    lines = []
    for dataset in scope.data:
        (reference,) = scope.with_seeds(dataset, "honest", "arx-lr", lags="correct")
        if reference not in outcomes:
            continue
        base = outcomes[reference].squared.astype(np.float64)
        plain: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in (*BEYOND, *VARIANTS)]
        for model, settings in (*plain, *((name, {"fair": True}) for name in RECURRENT)):
            jobs = [one for one in scope.with_seeds(dataset, "honest", model, **settings) if one in outcomes]
            if not jobs:
                continue
            losses = np.stack([outcomes[one].squared for one in jobs]).astype(np.float64)
            by_seed = losses.mean(axis=1) / base.mean() - 1
            found = difference(losses, base)
            lines.append(
                {
                    "data set": TITLES[dataset],
                    "model": _with_past_labels(model, settings),
                    "seeds": len(jobs),
                    "MSE": float(losses.mean()),
                    "MSE of correct ARX": float(base.mean()),
                    "difference": found.change,
                    "lowest seed": float(by_seed.min()),
                    "highest seed": float(by_seed.max()),
                    "95 % from": found.low,
                    "95 % to": found.high,
                    "p (Diebold-Mariano)": found.p,
                    "p (bootstrap)": found.p_bootstrap,
                }
            )
    return lines


def _readings(model: str) -> list[tuple[str, dict[str, Any]]]:
    if model in LAGGED:
        return [(lags, {"lags": lags}) for lags in LAG_SETS]
    if model in RECURRENT:
        return [("", {}), (PAST_LABELS, {"fair": True})]
    return [("", {})]


_REASONS: dict[tuple[str, str], str] = {
    ("mlp", "bidmc"): "printed pair repeats Beijing's digit for digit; no static model comes near it",
    ("lr", "bidmc"): "the paper's choice of records is not known: see the random splits below",
    ("arx-lr", "bidmc"): "the paper's choice of records is not known: see the random splits below",
}


def _reason(scope: Scope, dataset: str, model: str) -> str:
    if scope.quick and model not in ("lr", "arx-lr", "persistence"):
        return "quick run: 3 epochs, 20 trees"
    if model in FORESTS:
        printed, beside = (
            dict(scope.with_seeds(dataset, protocol, model)[0].settings)["trees"] for protocol in PROTOCOLS
        )
        return f"{printed} trees" + (f" ({beside} where nothing is printed)" if beside != printed else "")
    return _REASONS.get((model, dataset), "")


def _with_past_labels(model: str, settings: dict[str, Any]) -> str:
    return f"{model}, {PAST_LABELS}" if settings.get("fair") else model
