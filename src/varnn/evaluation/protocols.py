"""Panel -> parts to learn from, to choose on and to score: where the protocols cut.

``honest`` (the default) cuts 64 / 16 / 20 in time order: fit on the first part, choose on the second,
read the third once. ``paper`` cuts 80 / 20 and picks the best epoch on the test part, as published; it
exists to compare with the paper's tables, and its scores are optimistic. Rolling origins are the honest
cut made several times, further along the rows each time.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from varnn.data.arrow_streams import is_table
from varnn.data.display import counted, html_card
from varnn.data.panel import Panel
from varnn.data.preparation import split_in_time, with_learnt_inputs
from varnn.data.windows import window_ends
from varnn.errors import ConfigError, DataError, check_choice

ProtocolName = Literal["honest", "paper"]
PAPER_WINDOW = 5
VALIDATION_SHARE = 0.2  # of the rows before the test part, under the honest protocol
BLOCKS_BEFORE = 4  # blocks of rows behind the first origin, each as long as a test block


@dataclass(frozen=True, eq=False, repr=False)
class Parts:
    """A panel cut for evaluation.

    Parameters
    ----------
    train, validation, test : Panel
        The parts; under the paper's protocol validation is test.
    lead_in : Panel
        Rows that end with the test rows: a model predicts all of them, so that the first test rows
        have a past. Only predictions of test rows are scored.
    protocol : {"honest", "paper"}
        Whose cut it is.
    """

    train: Panel
    validation: Panel
    test: Panel
    lead_in: Panel
    protocol: ProtocolName

    def __repr__(self) -> str:
        return f"<{self._title()}: {', '.join(f'{name} {said}' for name, said in self._facts().items())}>"

    def _repr_html_(self) -> str:
        return html_card(self._title(), self._facts())

    def _title(self) -> str:
        return f"Parts of a panel, {self.protocol} protocol"

    def _facts(self) -> dict[str, str]:
        names = ("train", "validation", "test")
        sizes = {one: counted(len(getattr(self, one)), "row") for one in names}
        return {**sizes, "of": f"{self.train.n_series:,} series", "target": self.train.target_name}

    @property
    def unit(self) -> float:
        """Range of the target over all rows before the test part: the paper's unit of error.

        Both protocols thereby print in the same unit, whatever they train on.
        """
        before = [self.train] if self.protocol == "paper" else [self.train, self.validation]
        # fmax and fmin pass over NaN without a copy, which ten million rows would feel.
        high = max(np.fmax.reduce(one.target) for one in before)
        return float(high - min(np.fmin.reduce(one.target) for one in before)) or 1.0

    def scored(self) -> npt.NDArray[np.bool_]:
        """Mark the rows of ``lead_in`` that are scored: test rows with a known target.

        The paper scores only test rows with a full window of 5 inside the test part.
        """
        if self.protocol == "paper":
            marked = np.zeros(len(self.lead_in), dtype=bool)
            marked[window_ends(self.test, PAPER_WINDOW)] = True
            return marked
        return np.isin(self.lead_in.rows, self.test.rows) & ~np.isnan(self.lead_in.target)


def cut(panel: Panel, protocol: ProtocolName = "honest") -> Parts:
    """Cut each series in time order as a protocol says.

    Parameters
    ----------
    panel : Panel
        The rows.
    protocol : {"honest", "paper"}, default "honest"
        64 / 16 / 20, or the paper's 80 / 20.

    Returns
    -------
    Parts
        What to learn from, to choose on and to score.

    Examples
    --------
    >>> parts = cut(Panel.from_arrays(None, range(100)))
    >>> len(parts.train), len(parts.validation), len(parts.test), int(parts.scored().sum())
    (64, 16, 20, 20)
    """
    check_choice("protocol", protocol, get_args(ProtocolName))
    panel = as_panel(panel)
    if protocol == "paper":
        train, test = split_in_time(panel, 0.8, 0.2)
        return checked(Parts(train, test, test, test, protocol))
    (parts,) = rolling(panel, origins=1)
    return parts


def rolling(panel: Panel, origins: int) -> list[Parts]:
    """Cut each series at several rolling origins, each to be fitted and scored afresh.

    The rows make ``origins + 4`` equal blocks. Four lie before the first origin, and each later block
    is the test part of the origin it follows; of all the rows before an origin the last fifth is
    there to choose on. So no row is scored twice, and one origin is the honest cut, 64 / 16 / 20.

    Parameters
    ----------
    panel : Panel
        The rows.
    origins : int
        How often to cut, at least 1.

    Returns
    -------
    list of Parts
        One cut per origin, in time order.

    References
    ----------
    L. J. Tashman, "Out-of-sample tests of forecasting accuracy: an analysis and review", International
    Journal of Forecasting 16 (2000), 437-450.

    Examples
    --------
    >>> cuts = rolling(Panel.from_arrays(None, range(100)), origins=6)
    >>> [(len(one.train), len(one.validation), int(one.test.rows[0])) for one in cuts]
    [(32, 8, 40), (40, 10, 50), (48, 12, 60), (56, 14, 70), (64, 16, 80), (72, 18, 90)]
    """
    if origins < 1:
        raise ConfigError(f"origins must be at least 1; got {origins}.")
    panel = as_panel(panel)
    return [rolling_cut(panel, origins, origin) for origin in range(origins)]


def rolling_cut(panel: Panel, origins: int, origin: int) -> Parts:
    """Cut each series at one of several rolling origins, counted from 0."""
    blocks = origins + BLOCKS_BEFORE
    before = (BLOCKS_BEFORE + origin) / blocks
    after = (BLOCKS_BEFORE + origin + 1) / blocks
    learned, chosen = (1 - VALIDATION_SHARE) * before, VALIDATION_SHARE * before
    train, validation, test, _ = split_in_time(panel, learned, chosen, after - before, 1 - after)
    lead_in = split_in_time(panel, learned, after - learned, 1 - after)[1]
    return checked(Parts(train, validation, test, lead_in, "honest"))


def as_panel(rows: Any) -> Panel:
    """Take a panel as it is, and a long frame for one; refuse what does not say what is what.

    Examples
    --------
    >>> len(as_panel(Panel.from_arrays(None, [1.0, 2.0])))
    2
    """
    if isinstance(rows, Panel):
        return rows
    if is_table(rows):
        return Panel.from_frame(rows)
    raise DataError(
        f"rows must be a Panel; got {type(rows).__name__}. Make one with Panel.from_frame(frame, "
        "target=...), Panel.from_arrays(X, y) or Panel.read(path, target=...)."
    )


def checked(parts: Parts) -> Parts:
    """Refuse parts that leave nothing to learn from or to score."""
    for name in ("train", "validation", "test"):
        if len(getattr(parts, name)) == 0 or np.isnan(getattr(parts, name).target).all():
            raise DataError(
                f"each part of a split needs rows with a known target; the {name} part has none. "
                "Give more rows with a label; of rolling origins, fewer."
            )
    return parts if parts.train.texts is None else matched(parts)


def matched(parts: Parts) -> Parts:
    """Bring the inputs of all parts into the order of those to learn from, which decide on categories."""
    train = with_learnt_inputs(parts.train, parts.train)
    others = {one: getattr(parts, one) for one in ("validation", "test", "lead_in")}
    return replace(
        parts,
        train=train,
        **{one: part.with_inputs(train.input_names, f"{one} rows") for one, part in others.items()},
    )
