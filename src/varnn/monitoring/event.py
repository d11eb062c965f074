"""What a monitor reports: one change, in which series, noticed where, begun where, how large."""

from typing import Literal, NamedTuple

from varnn.data.in_words import figure

Kind = Literal["level shift", "variance change", "coverage lost"]


class Event(NamedTuple):
    """A change that a monitor noticed.

    Parameters
    ----------
    kind : Kind
        ``"level shift"``, ``"variance change"`` or ``"coverage lost"``.
    series : int
        Number of the series, from 0.
    row : int
        Row at which it was noticed, from 0.
    began : int
        Row at which it seems to have begun.
    size : float
        A level shift: how far the mean moved, in the innovations' units. A variance change: the ratio of
        the new spread to the old. Coverage lost: share of rows covered since it began, less the nominal one.

    Examples
    --------
    >>> print(Event("level shift", series=0, row=812, began=800, size=-1.5))
    level shift of -1.5 in series 0, noticed at row 812, begun about row 800
    >>> print(Event("variance change", series=3, row=90, began=70, size=2.0))
    variance change: spread times 2 in series 3, noticed at row 90, begun about row 70
    """

    kind: Kind
    series: int
    row: int
    began: int
    size: float

    def __str__(self) -> str:
        what = {
            "level shift": f"level shift of {figure(self.size, 3, signed=True)}",
            "variance change": f"variance change: spread times {figure(self.size, 3)}",
            "coverage lost": f"coverage lost: {100 * self.size:+.0f} points",
        }[self.kind]
        return f"{what} in series {self.series}, noticed at row {self.row}, begun about row {self.began}"
