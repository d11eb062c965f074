"""A figure that shows itself in a notebook, as an image that takes the colours of the page.

Notebooks draw figures of pyplot by themselves; those of the house are made without it. Import this module
where a figure is drawn, never before: it imports matplotlib.
"""

from matplotlib.figure import Figure

from varnn.report.svg import to_svg


class Drawing(Figure):
    """A figure of matplotlib in every other respect; saved to a file, it is on white."""

    alt = "A figure."  # what it shows, for those who cannot see it

    def described(self, alt: str) -> "Drawing":
        """Say what it shows, and put it on white: a file may be looked at on any ground."""
        self.alt = alt
        self.patch.set_facecolor("white")
        self.patch.set_alpha(1)
        return self

    def _repr_html_(self) -> str:
        ground = self.patch.get_alpha()
        self.patch.set_alpha(0)
        try:
            return f'<div style="max-width:60em">{to_svg(self, self.alt)}</div>'
        finally:
            self.patch.set_alpha(ground)
