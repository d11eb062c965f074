"""Columns of a chart -> a short text that a browser unpacks (`assets/unpack.js`).

A value is a whole number of steps, a step a power of ten: about ten thousand of them make the usual range, so
what is read off the page is right in all digits it shows. Numbers of steps are coded as differences from the
row before, those as bytes of seven bits each, few for small ones; deflate and base64 do the rest. A
hundred thousand rows of five columns take about 0.7 MB, as text of full precision 8 MB.
"""

import base64
import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from varnn._types import FloatArray
from varnn.report.chart import ChartSeries, TimeChart, Values
from varnn.report.thinning import thinned

MOST_CHARACTERS = 750_000  # of a chart's values; a page has a few charts, and stays below 1.5 MB
FINENESS = 5_000  # a usual range has so many steps, or up to ten times as many
_FARTHEST = 2**40  # steps from 0: beyond, a value is drawn at that edge


def packed(chart: TimeChart, most: int = MOST_CHARACTERS) -> tuple[dict[str, object], int]:
    """Pack a chart for the page, with as many rows as there is room for; tell how many were left out."""
    rows = sum(len(one.places) for one in chart.series)
    series = list(chart.series)
    spans = rows
    while True:
        told, text = _packed(series)
        kept = sum(len(one.places) for one in series)
        if len(text) <= most or spans < 2 * len(series):
            break
        spans = int(0.9 * spans * min(most / len(text), 0.9) / (2 if kept == rows else 1))
        series = [_thinned(one, max(1, spans * len(one.places) // rows)) for one in chart.series]
    about = {"unit": chart.unit, "timed": chart.timed, "errors": chart.errors, "stacked": chart.stacked}
    return {**about, "series": told, "data": text}, rows - kept


def encoded(steps: npt.NDArray[np.int64], missing: npt.NDArray[np.bool_]) -> bytes:
    """Code whole numbers: 0 where one is missing, else 1 and up for its difference from the one before.

    Examples
    --------
    >>> list(encoded(np.array([0, 1, 0, -300]), np.array([False, False, True, False])))
    [1, 3, 0, 218, 4]
    """
    difference = np.diff(steps[~missing], prepend=0)
    codes = np.zeros(len(steps), dtype=np.int64)
    codes[~missing] = ((difference << 1) ^ (difference >> 63)) + 1  # 0, -1, 1, -2 become 1, 2, 3, 4
    shifted = codes[:, None] >> (7 * np.arange(9))
    needed = np.maximum.accumulate((shifted > 0)[:, ::-1], axis=1)[:, ::-1]
    needed[:, 0] = True
    follows = np.zeros_like(needed)
    follows[:, :-1] = needed[:, 1:]
    return bytes(((shifted & 127) | (follows << 7)).astype(np.uint8)[needed])


def step_of(columns: Sequence[FloatArray]) -> int:
    """Find the power of ten that is fine enough for these values: a step is 10 to this.

    Examples
    --------
    >>> step_of([np.linspace(0, 1000, 50)]), step_of([np.full(3, 0.25)])
    (-1, -5)
    """
    known = np.concatenate([one[np.isfinite(one)] for one in columns]) if columns else np.zeros(0)
    if not len(known):
        return 0
    low, high = np.quantile(known, [0.005, 0.995])
    spread = high - low or np.abs(known).max() or 1.0
    return int(np.clip(np.floor(np.log10(spread / FINENESS)), -300, 300))


def axis_numbers(places: Values) -> npt.NDArray[np.int64]:
    """Places as whole numbers: microseconds since 1970, or numbers of rows."""
    if np.issubdtype(places.dtype, np.datetime64):
        return places.astype("datetime64[us]").astype(np.int64)
    return np.round(places).astype(np.int64)


def _packed(series: Sequence[ChartSeries]) -> tuple[list[dict[str, object]], str]:
    """Pack all series end to end, each with what a browser must know to take it apart again."""
    told: list[dict[str, object]] = []
    coded: list[bytes] = []
    for one in series:
        named = one.named_values()
        numbers = axis_numbers(one.places)
        power = step_of([values for name, values in named.items() if not name.startswith(("lower", "upper"))])
        told.append(
            {
                "name": one.name,
                "rows": len(numbers),
                "power": power,
                "columns": list(named),
                "marks": [
                    [mark.kind, *map(int, axis_numbers(np.array([mark.began, mark.noticed])))]
                    for mark in one.marks
                ],
                "views": [
                    [name, *map(int, axis_numbers(np.array(ends)))] for name, ends in one.views.items()
                ],
            }
        )
        # Rows mostly come evenly: the differences of their times are all the same, and cost nothing.
        even = np.concatenate([numbers[:1], np.diff(numbers)])
        coded.append(encoded(even, np.zeros(len(even), dtype=bool)))
        for values in named.values():
            missing = ~np.isfinite(values)
            scaled = np.where(missing, 0.0, values) * 10.0**-power
            coded.append(encoded(np.round(np.clip(scaled, -_FARTHEST, _FARTHEST)).astype(np.int64), missing))
    return told, base64.b64encode(zlib.compress(b"".join(coded), 9)).decode()


def _thinned(one: ChartSeries, spans: int) -> ChartSeries:
    """Keep the rows in which truth is lowest and highest; without truth, the first line."""
    return one.part(thinned([next(iter(one.named_values().values()))], spans))
