"""Arrays -> figures, as SVG that takes the colour of the text around it (light and dark pages alike).

Only the ``Figure`` class of matplotlib is used, never pyplot: nothing global is changed, no window
system is needed, and importing this library does not import matplotlib.
"""

from __future__ import annotations

import html
import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from varnn.errors import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#010203"  # stands for the page's text colour until the SVG is written
COLOURS = ("#3b7dd8", "#e07b39", "#3a9d6b", "#b05cc6", "#c9a227", "#d1495b", "#6c8a9b")

Values = npt.NDArray[Any]


def new_figure(width: float = 9.0, height: float = 3.2, panels: int = 1) -> tuple[Figure, list[Axes]]:
    """Give an empty figure with panels side by side, in the house style."""
    require("matplotlib", extra="plots", purpose="drawing a figure")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = [figure.add_subplot(1, panels, index + 1) for index in range(panels)]
    for one in axes:
        one.spines[["top", "right"]].set_visible(False)
        one.spines[["left", "bottom"]].set_color(INK)
        one.tick_params(colors=INK, labelsize=9)
        one.patch.set_alpha(0)
    figure.patch.set_alpha(0)
    return figure, axes


def to_svg(figure: Figure, alt: str) -> str:
    """Write a figure as inline SVG with a description for those who cannot see it."""
    import matplotlib

    for one in figure.axes:
        for text in (one.title, one.xaxis.label, one.yaxis.label):
            text.set_color(INK)
        legend = one.get_legend()
        if legend is not None:
            legend.get_frame().set_alpha(0)
            for text in legend.get_texts():
                text.set_color(INK)
    buffer = io.StringIO()
    # Ids in an SVG are hashes with this salt: one per figure, or two figures on a page would collide.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": alt, "font.family": "sans-serif"}):
        figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor")
    return svg.replace("<svg ", f'<svg role="img" aria-label="{html.escape(alt)}" ', 1)


def predictions(
    rows: Values,
    truth: Values,
    predicted: Mapping[str, Values],
    *,
    events: Sequence[int] = (),
    unit: str = "",
) -> Figure:
    """Draw truth and predictions over the same rows, with a line at each event."""
    figure, (axes,) = new_figure()
    axes.plot(rows, truth, color=INK, linewidth=1.1, label="truth", alpha=0.75)
    for (name, values), colour in zip(predicted.items(), COLOURS, strict=False):
        axes.plot(rows, values, color=colour, linewidth=1.3, label=name)
    for event in events:
        axes.axvline(event, color=COLOURS[5], linestyle=":", linewidth=1.4)
    axes.set_xlabel("row")
    axes.set_ylabel(unit)
    axes.margins(x=0.01)
    axes.legend(loc="upper left", fontsize=9, ncols=len(predicted) + 1)
    return figure


def scores(
    names: Sequence[str], means: Sequence[float], spreads: Sequence[float], *, unit: str = ""
) -> Figure:
    """Draw one bar per model, best on top, with the spread over seeds."""
    figure, (axes,) = new_figure(height=0.8 + 0.38 * len(names))
    places = np.arange(len(names))[::-1]
    colours = [COLOURS[0] if index == 0 else COLOURS[6] for index in range(len(names))]
    axes.barh(places, means, xerr=spreads, color=colours, ecolor=INK, height=0.66)
    axes.set_yticks(places, names)
    axes.set_xlabel(unit)
    return figure


def innovations(rows: Values, errors: Values, *, unit: str = "") -> Figure:
    """Draw errors over time, and their autocorrelation with the band of white noise."""
    figure, (over_time, lags) = new_figure(panels=2)
    over_time.plot(rows, errors, color=COLOURS[0], linewidth=0.7)
    over_time.axhline(0, color=INK, linewidth=0.8)
    over_time.set_xlabel("row")
    over_time.set_ylabel(f"innovation {unit}".strip())
    over_time.margins(x=0.01)
    known = errors[~np.isnan(errors)]
    centred = known - known.mean()
    scale = float(centred @ centred) or 1.0
    count = min(40, len(centred) - 1)
    correlations = [float(centred[lag:] @ centred[:-lag]) / scale for lag in range(1, count + 1)]
    lags.bar(np.arange(1, count + 1), correlations, color=COLOURS[0], width=0.7)
    lags.axhspan(-2 / len(known) ** 0.5, 2 / len(known) ** 0.5, color=COLOURS[6], alpha=0.25, linewidth=0)
    lags.axhline(0, color=INK, linewidth=0.8)
    lags.set_xlabel("lag (rows)")
    lags.set_ylabel("autocorrelation")
    return figure


def memory(rows: Values, states: Values, *, events: Sequence[int] = ()) -> Figure:
    """Draw the residual memory as a heat map: one line per unit, most active on top."""
    figure, (axes,) = new_figure()
    order = np.argsort(states.std(axis=0))
    image = axes.imshow(
        states[:, order].T,
        aspect="auto",
        origin="lower",
        cmap="magma",
        interpolation="nearest",
        extent=(float(rows[0]), float(rows[-1]), 0.0, float(states.shape[1])),
    )
    for event in events:
        axes.axvline(event, color="#ffffff", linestyle=":", linewidth=1.4)
    axes.set_xlabel("row")
    axes.set_ylabel("memory unit")
    bar = figure.colorbar(image, ax=axes, pad=0.01)
    bar.ax.tick_params(colors=INK, labelsize=8)
    return figure


def learning_curve(history: Sequence[Mapping[str, float]], *, best_epoch: int | None = None) -> Figure:
    """Draw training and validation loss by epoch, one pair of lines per ensemble member."""
    figure, (axes,) = new_figure()
    for member in sorted({int(line.get("member", 0)) for line in history}):
        lines = [line for line in history if int(line.get("member", 0)) == member]
        epochs = [line["epoch"] for line in lines]
        label = member == 0
        axes.plot(
            epochs, [line["loss"] for line in lines], color=COLOURS[0], label="training" if label else None
        )
        if "validation_loss" in lines[0]:
            axes.plot(
                epochs,
                [line["validation_loss"] for line in lines],
                color=COLOURS[1],
                label="validation" if label else None,
            )
    if best_epoch is not None:
        axes.axvline(best_epoch, color=INK, linestyle=":", linewidth=1.2, label=f"kept: epoch {best_epoch}")
    losses = [value for line in history for name, value in line.items() if name.endswith("loss")]
    if max(losses) > 8 * min(losses):
        axes.set_yscale("log")
    axes.set_xlabel("epoch")
    axes.set_ylabel("mean squared error (scaled)")
    axes.legend(fontsize=9)
    return figure
