"""The paper's figures from our outcomes: learning curves, ablations, and the architecture drawn anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from varnn.network.cell import VARIANTS
from varnn.paper.jobs import Job
from varnn.paper.plan import ABLATION_RATE, Scope, ablation_settings
from varnn.paper.published import TITLES, published
from varnn.paper.runner import Outcomes
from varnn.paper.tables import summarise
from varnn.report.figures import COLOURS, INK, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure with the name of its file, a title and a caption."""

    name: str
    title: str
    figure: Figure
    caption: str


def drawings(scope: Scope, outcomes: Outcomes) -> list[Drawing]:
    """Draw every figure whose outcomes are at hand."""
    base = {"learning_rate": ABLATION_RATE}
    widths = {"appliances": 27, "bidmc": 375, "beijing": 9}
    drawn = [architecture()]
    shown = [name for name in ("appliances", "beijing") if name in scope.data]
    drawn += _curves(
        scope,
        outcomes,
        {name: {"RM": ("RM", {}), "RM+AM": ("RM+AM", {})} for name in shown},
        "learning-curves",
        "Learning curves of RM and RM+AM",
    )
    drawn += _curves(
        scope,
        outcomes,
        {
            name: {
                "no residual": ("RM", {**base, "residual": "none"}),
                "RM": ("RM", {**base, "memory_size": widths[name]}),
                "ARM": ("ARM", base),
            }
            for name in shown
        },
        "memory-effect",
        "Effect of the residual memory",
    )
    drawn += _memory_sizes(scope, outcomes)
    drawn += _curves(
        scope,
        outcomes,
        {
            name: {
                "relu": ("RM", {**base, "memory_size": widths[name]}),
                "tanh": ("RM", {**base, "memory_activation": "tanh"}),
            }
            for name in shown
        },
        "memory-activation",
        "ReLU or tanh in the memory",
    )
    if "beijing" in scope.data:
        drawn += _curves(
            scope,
            outcomes,
            {"beijing": {variant: (variant, {}) for variant in VARIANTS}},
            "variants",
            "The four variants on Beijing",
        )
    return drawn


Lines = Mapping[str, tuple[str, Mapping[str, Any]]]


def _curves(
    scope: Scope, outcomes: Outcomes, wanted: Mapping[str, Lines], name: str, title: str
) -> list[Drawing]:
    """Draw training (thin) and test (thick) error by epoch, one panel per data set, mean over seeds."""
    ready = {
        dataset: {
            label: jobs
            for label, (variant, settings) in lines.items()
            if (jobs := _ran(scope.with_seeds(dataset, "paper", variant, **settings), outcomes))
        }
        for dataset, lines in wanted.items()
    }
    ready = {dataset: lines for dataset, lines in ready.items() if lines}
    if not ready:
        return []
    figure, panels = new_figure(width=9.5, height=3.4, panels=len(ready))
    for axes, (dataset, lines) in zip(panels, ready.items(), strict=True):
        for (label, jobs), colour in zip(lines.items(), COLOURS, strict=False):
            curves = np.array([outcomes[one].epochs for one in jobs])  # (seeds, epochs, 3)
            mean = curves.mean(axis=0)
            axes.plot(mean[:, 0], mean[:, 1], color=colour, linewidth=0.8, alpha=0.7)
            axes.plot(mean[:, 0], mean[:, 2], color=colour, linewidth=1.6, label=label)
            if len(jobs) > 1:
                low, high = curves[:, :, 2].min(axis=0), curves[:, :, 2].max(axis=0)
                axes.fill_between(mean[:, 0], low, high, color=colour, alpha=0.15, linewidth=0)
        _finish(axes, TITLES[dataset], "epoch")
        axes.set_yscale("log")
    caption = (
        f"{title}: mean squared error in min-max units by epoch, paper protocol. Thick: test, "
        "which picks the epoch, with the range over seeds; thin: training."
    )
    return [Drawing(name, title, figure, caption)]


def _memory_sizes(scope: Scope, outcomes: Outcomes) -> list[Drawing]:
    ready: dict[str, list[tuple[int, float, float]]] = {}
    scalars: dict[str, float] = {}
    for dataset in scope.data:
        for settings in ablation_settings(dataset):
            variant = str(settings.pop("variant"))
            jobs = scope.with_seeds(dataset, "paper", variant, **settings)
            mean, spread, seeds = summarise(jobs, outcomes, "test")
            if not seeds:
                continue
            if "memory_size" in settings:
                size = settings["memory_size"]
                ready.setdefault(dataset, []).append((int(str(size)), mean, spread))
            elif settings.get("residual") == "scalar":
                scalars[dataset] = mean
    if not ready:
        return []
    figure, panels = new_figure(width=9.5, height=3.2, panels=len(ready))
    for axes, (dataset, points) in zip(panels, ready.items(), strict=True):
        sizes, means, spreads = (np.array(column) for column in zip(*sorted(points), strict=True))
        axes.errorbar(
            np.arange(len(sizes)),
            means,
            yerr=spreads,
            color=COLOURS[0],
            marker="o",
            markersize=4,
            label="projected",
        )
        axes.set_xticks(np.arange(len(sizes)), [str(size) for size in sizes])
        printed = published()["memory_size"][dataset]
        axes.axhline(printed["best"], color=COLOURS[2], linestyle="--", linewidth=1, label="paper, best m")
        if dataset in scalars:
            axes.axhline(scalars[dataset], color=COLOURS[1], linewidth=1.2, label="scalar")
        axes.axhline(printed["scalar"], color=COLOURS[1], linestyle="--", linewidth=1, label="paper, scalar")
        _finish(axes, TITLES[dataset], "memory size m")
        axes.set_yscale("log")
    title = "Memory size against a scalar memory"
    caption = f"{title}: test error of RM in min-max units, paper protocol; bars: one standard deviation."
    return [Drawing("memory-size", title, figure, caption)]


def _ran(jobs: Sequence[Job], outcomes: Outcomes) -> list[Job]:
    return [one for one in jobs if one in outcomes]


def _finish(axes: Axes, title: str, label: str) -> None:
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(label)
    axes.legend(fontsize=8)


def architecture() -> Drawing:
    """Draw the two blocks, over two steps: the error of one becomes the memory of the next."""
    from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

    figure, (axes,) = new_figure(width=9.5, height=4.0)
    axes.set_axis_off()
    axes.set_xlim(-0.6, 21.2)
    axes.set_ylim(0, 8)

    def box(x: float, y: float, width: float, text: str, colour: str) -> None:
        patch = FancyBboxPatch(
            (x, y),
            width,
            1.0,
            boxstyle="round,pad=0.08",
            facecolor=colour,
            edgecolor=INK,
            alpha=0.25,
            linewidth=0.9,
        )
        axes.add_patch(patch)
        axes.text(x + width / 2, y + 0.5, text, ha="center", va="center", fontsize=9, color=INK)

    def arrow(start: tuple[float, float], end: tuple[float, float], *, dashed: bool = False) -> None:
        style = "dashed" if dashed else "solid"
        axes.add_patch(
            FancyArrowPatch(
                start, end, arrowstyle="-|>", mutation_scale=11, color=INK, linestyle=style, linewidth=1.0
            )
        )

    def label(x: float, y: float, text: str) -> None:
        axes.text(x, y, text, ha="center", va="center", fontsize=10, color=INK)

    for left, now, before in ((1.0, "t", "t-1"), (13.0, "t+1", "t")):
        box(left, 1.6, 7.6, f"hidden layer   u({now}) = relu(Wz [x; h; u] + bz)", COLOURS[0])
        box(left, 3.6, 7.6, f"prediction   ŷ({now}) = Wo u + bo", COLOURS[0])
        box(left, 5.6, 7.6, f"memory   h({now}) = ρ(We e + Wh h + be)", COLOURS[2])
        label(left + 3.8, 0.4, f"x({now})")
        arrow((left + 3.8, 0.75), (left + 3.8, 1.5))
        arrow((left + 3.8, 2.7), (left + 3.8, 3.5))
        arrow((left + 3.8, 4.7), (left + 3.8, 5.5))
        label(left + 5.8, 5.1, f"e({now}) = y({now}) - ŷ({now})")
        if before == "t-1":
            label(left - 0.3, 3.2, f"h({before})")
            arrow((left - 0.7, 2.8), (left - 0.1, 2.3))
    arrow((8.75, 6.0), (12.85, 2.5))
    label(11.6, 4.6, "h(t)")
    arrow((8.75, 1.9), (12.85, 1.9), dashed=True)
    label(10.8, 1.4, "u(t): +AM only")
    arrow((8.75, 6.4), (12.85, 6.4), dashed=True)
    label(10.8, 6.9, "h(t): ARM only")
    title = "Architecture"
    caption = (
        "Two steps of a VARNN. Blue: the predictor; green: the residual memory, made from the error of one "
        "step and used in the next. Dashed: links that only some variants have."
    )
    return Drawing("architecture", title, figure, caption)
