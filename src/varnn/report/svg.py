"""Figure -> SVG that takes the colour of the text around it, with a description for who cannot see it."""

from __future__ import annotations

import html
import io
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK = "#010203"  # stands for the page's text colour until the SVG is written

# A file shown as an image has no text around it to take a colour from, nor a background it can be sure of.
_ALONE = (
    "<style>svg{color:#1c2430;background:#fff}"
    "@media(prefers-color-scheme:dark){svg{color:#e6ebf2;background:#12161c}}</style>"
)


def to_svg(figure: Figure, alt: str, *, alone: bool = False) -> str:
    """Write a figure as inline SVG with a description for those who cannot see it.

    Parameters
    ----------
    figure, alt : Figure, str
        The figure, and its description.
    alone : bool, default=False
        Write it for a file of its own instead of a page's text.
    """
    import matplotlib
    from matplotlib.text import Text

    for one in figure.axes:
        for text in (one.title, one.xaxis.label, one.yaxis.label):
            text.set_color(INK)
        legend = one.get_legend()
        if legend is not None:
            legend.get_frame().set_alpha(0)
            for text in legend.get_texts():
                text.set_color(INK)
    # A name may hold two dollar signs, between which matplotlib would look for mathematics. Only the ticks of
    # a logarithmic axis are that.
    logarithmic = any(axis.get_scale() != "linear" for one in figure.axes for axis in (one.xaxis, one.yaxis))
    for label in figure.findobj(Text):
        written = label.get_text()
        if not logarithmic or ("$" in written and "mathdefault" not in written):
            label.set_parse_math(False)
    buffer = io.StringIO()
    # Ids in an SVG are hashes with this salt: one per figure, or two figures on a page would collide.
    style: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": alt, "font.family": "sans-serif"}
    with matplotlib.rc_context({**style, "text.parse_math": logarithmic}):
        figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor")
    svg = re.sub(r'<(g|image) id="[^"]*"', r"<\1", svg)  # names of groups, which nothing refers to
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{html.escape(alt)}" ', 1)
    return svg.replace(">", f">{_ALONE}", 1) if alone else svg
