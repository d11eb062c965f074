"""Columns of a chart -> a short text that a browser unpacks (`assets/unpack.js`).

A value is a whole number of steps, a step a power of ten: about ten thousand of them make the usual range, so
what is read off the page is right in all digits it shows. Numbers of steps are coded as differences from the
row before, those as bytes of seven bits each, few for small ones; deflate and base64 do the rest. Bounds are
coded as distances from the first line, which change little from row to row. A hundred thousand rows of truth,
two lines and a band take about 0.8 MB, as text of full precision 8 MB.
"""

import base64
import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from varnn._types import FloatArray
from varnn.report.chart import ChartSeries, TimeChart, Values
from varnn.report.thinning import thinned

FINENESS = 5_000  # a usual range has so many steps, or up to ten times as many
_FARTHEST = 2**40  # steps from 0: beyond, a value is drawn at that edge


def packed(chart: TimeChart, most: int) -> tuple[dict[str, object], int]:
    """Pack a chart into so many characters, with the rows there is room for; tell how many are left out."""
    series = list(chart.series)
    rows = kept = sum(len(one.places) for one in series)
    told, text = _packed(series)
    while len(text) > most and kept > 4 * len(series):
        spans = kept * min(0.97 * most / len(text), 0.9) / 2  # of which each keeps two rows
        series = [_thinned(one, max(1, int(spans * len(one.places) / rows))) for one in chart.series]
        kept = sum(len(one.places) for one in series)
        told, text = _packed(series)
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
    """Find the power of ten that is fine enough for the first column that has values: a step is 10 to this.

    Examples
    --------
    >>> step_of([np.linspace(0, 1000, 50), np.full(50, 1e9)]), step_of([np.full(3, 0.25)])
    (-1, -5)
    """
    known = next((one[np.isfinite(one)] for one in columns if np.isfinite(one).any()), np.zeros(0))
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
        power = step_of(list(named.values()))
        base = next(
            (_steps(values, power)[0] for name, values in named.items() if name.startswith("line ")), 0
        )
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
        for name, values in named.items():
            steps, missing = _steps(values, power)
            coded.append(encoded(steps - base if name.startswith(("lower ", "upper ")) else steps, missing))
    return told, base64.b64encode(zlib.compress(b"".join(coded), 9)).decode()


def _steps(values: FloatArray, power: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Values as whole numbers of steps, 0 where they are missing, and where that is."""
    missing = ~np.isfinite(values)
    scaled = np.where(missing, 0.0, values) * 10.0**-power
    return np.round(np.clip(scaled, -_FARTHEST, _FARTHEST)).astype(np.int64), missing


def _thinned(one: ChartSeries, spans: int) -> ChartSeries:
    """Keep the rows in which truth is lowest and highest; without truth, the first line."""
    return one.part(thinned([next(iter(one.named_values().values()))], spans))
