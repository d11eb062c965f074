"""From a user's rows to the network's, and back: every step of preparation, with what it learnt.

::

    wild labels left out (`varnn.model.outliers`)
    inputs, gaps filled (or none at all)  +  clock  +  peers  ->  linear part split off  ->  scaled
    prediction  =  anchor of the linear part  +  the network's output, unscaled

The order is the same for a panel (:class:`Recipe`) and for one row at a time (:class:`RecipeStream`),
and so are the numbers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from varnn._types import DoubleArray, FloatArray
from varnn.data.chunks import ROWS_AT_ONCE, Stretch, carrying, stretches
from varnn.data.panel import Panel
from varnn.data.preparation import Fill, Scale, Scaling, fill_gaps
from varnn.errors import DataError
from varnn.model.calendar import Cycle, clock_inputs, clock_names
from varnn.model.linear import ADDED_INPUTS, LinearPart, LinearStream, last_labels
from varnn.model.outliers import FilterStream, LabelFilter
from varnn.model.peers import PEER_INNOVATION, PEER_INPUTS, mean_of_others, mean_of_others_now

_Part = TypeVar("_Part", Scaling, LinearPart, LabelFilter)


class Prepared(NamedTuple):
    """Rows as the network sees them, and what its output has to be added to: zeros without linear part."""

    panel: Panel
    anchors: DoubleArray


@dataclass(frozen=True, eq=False, kw_only=True)
class Recipe:
    """How rows are prepared.

    Parameters
    ----------
    scaling
        Of all inputs the network sees, and of its target.
    fill, lead
        What stands in for missing inputs, and for those before a series' first value: (D,).
    blind
        Whether the table's inputs are left out, as of no use.
    clock
        Cycles of the clock that are inputs.
    linear
        The linear part, or None.
    peers
        Whether a row sees the other series; needs a linear part.
    labels
        Which labels later rows are predicted from; None takes all. Comes with a linear part, as a network
        alone forgets a label after a window.

    Examples
    --------
    >>> panel = Panel.from_arrays([[1.0], [2.0], [3.0]], [5.0, 6.0, 7.0])
    >>> recipe = Recipe.of(panel, None, scale="standard", fill="forward", linear=True)
    >>> prepared = recipe(panel)
    >>> prepared.panel.input_names
    ('x0', 'last label', 'linear step')
    """

    scaling: Scaling
    fill: Fill
    lead: FloatArray
    blind: bool = False
    clock: tuple[Cycle, ...] = ()
    linear: LinearPart | None = None
    peers: bool = False
    labels: LabelFilter | None = None

    @classmethod
    def of(
        cls,
        training: Panel,
        validation: Panel | None,
        *,
        scale: Scale,
        fill: Fill,
        blind: bool = False,
        clock: tuple[Cycle, ...] = (),
        linear: bool = False,
        peers: bool = False,
    ) -> "Recipe":
        """Learn from training rows; validation rows choose the form of the linear part."""
        given = Scaling.of(training, scale)
        recipe = cls(scaling=given, fill=fill, lead=given.input_lead, blind=blind, clock=clock, peers=peers)
        if linear:
            judged = None if validation is None else recipe._filled(validation)
            part = LinearPart.fit(recipe._filled(training), judged)
            seen = [training] if validation is None else [training, validation]
            recipe = replace(recipe, linear=part, labels=LabelFilter.of(*seen))
        return recipe._scaled(training, scale)

    def refitted(self, training: Panel, scale: Scale) -> "Recipe":
        """Learn anew from other rows, in the form that was chosen before."""
        recipe = replace(self, lead=Scaling.of(training, scale).input_lead)
        if self.linear is not None:
            part = self.linear.refitted(recipe._filled(training))
            recipe = replace(recipe, linear=part, labels=LabelFilter.of(training))
        return recipe._scaled(training, scale)

    def _scaled(self, training: Panel, scale: Scale) -> "Recipe":
        """Measure what the network will see of the training rows."""
        if self.linear is None:  # what was filled in counts for nothing
            rows = (self._seen(one.panel) for one in stretches(training))
        else:
            rows = (one.panel for one, _ in self._unscaled(training, most=ROWS_AT_ONCE))
        return replace(self, scaling=Scaling.over(rows, scale))

    @property
    def takes_rows_as_they_are(self) -> bool:
        """Tell whether nothing but scaling is done to a row without gaps."""
        return self.linear is None and not self.clock and not self.blind

    def __call__(self, panel: Panel) -> Prepared:
        """Prepare a panel whose columns are those of the training panel."""
        anchors = np.empty(len(panel))
        return Prepared(self.rows(panel, anchors), anchors)

    def rows(self, panel: Panel, anchors: DoubleArray | None = None) -> Panel:
        """Prepare the rows alone, as training wants them; puts their anchors into ``anchors``, if given."""
        inputs = np.empty((len(panel), len(self.scaling.input_offset)), np.float32)
        target, names = np.empty(len(panel), np.float32), panel.input_names
        for one, levels in self.in_stretches(panel, most=ROWS_AT_ONCE):
            inputs[one.rows], target[one.rows] = one.panel.inputs, one.panel.target
            names = one.panel.input_names
            if anchors is not None:
                anchors[one.rows] = levels
        return replace(panel, inputs=inputs, target=target, input_names=names)

    def plausible(self, panel: Panel) -> Panel:
        """Leave out labels that are not plausible, as all of the below does by itself."""
        return panel if self.labels is None else self.labels(panel)

    def anchors(self, panel: Panel) -> DoubleArray:
        """Give the anchors of a panel's rows alone: (N,)."""
        anchors = np.empty(len(panel))
        for one, levels in self._unscaled(panel, most=ROWS_AT_ONCE):
            anchors[one.rows] = levels
        return anchors

    def in_stretches(
        self, panel: Panel, *, most: int, lead: int = 0
    ) -> Iterator[tuple[Stretch, DoubleArray]]:
        """Prepare a panel some rows at a time, with up to ``lead`` rows before them; give their anchors too.

        The numbers are those of the whole panel.
        """
        for one, anchors in self._unscaled(panel, most=most, lead=lead):
            yield one._replace(panel=self.scaling.apply(one.panel)), anchors

    def _unscaled(self, panel: Panel, *, most: int, lead: int = 0) -> Iterator[tuple[Stretch, DoubleArray]]:
        left_out: Sequence[int] = ()
        if self.peers or self.fill == "interpolate":
            panel = self.plausible(panel)
        elif self.labels is not None:  # where rows are gone through in pieces, no second target is held
            left_out = self.labels.left_out(panel)
        if self.fill == "interpolate":  # that looks ahead
            rest, anchors = self._split(self._filled(panel))
            for one in stretches(rest, most=most, lead=lead):
                yield one, anchors[one.rows]
            return
        of_peers = self._of_peers(panel)
        news = None
        if self.peers and self.linear is not None:
            innovations = np.empty(len(panel))
            for one, rest, _ in self._in_pieces(panel, of_peers, most=ROWS_AT_ONCE, lead=0):
                innovations[one.rows] = rest.target[one.lead :]
            news = self._news_of_peers(panel, innovations)
        for one, rest, anchors in self._in_pieces(panel, of_peers, most=most, lead=lead, missing=left_out):
            if news is not None:
                rest = _with_columns(rest, news[_all_rows(one), None], (PEER_INNOVATION,))
            spare = max(one.lead - lead, 0)
            rows = rest.between(spare, len(rest))
            yield one._replace(panel=rows, lead=one.lead - spare), anchors[one.lead :]

    def _in_pieces(
        self,
        panel: Panel,
        of_peers: DoubleArray | None,
        *,
        most: int,
        lead: int,
        missing: Sequence[int] = (),
    ) -> Iterator[tuple[Stretch, Panel, DoubleArray]]:
        """Split the linear part off some rows at a time; what it leaves, and anchors, are of the lead too."""
        reach = 1 if self.linear is None else self.linear.reach
        for one in carrying(panel, most=most, lead=lead + reach, missing=missing):
            filled = self._filled(one.panel, None if of_peers is None else of_peers[_all_rows(one)])
            if self.linear is None:
                yield one, filled, np.zeros(len(filled))
            else:
                yield one, *self.linear.split(filled)

    def restore(self, output: Any, anchors: Any, share: float = 1.0) -> Any:
        """Turn the network's outputs into predictions in the target's units; adds a share of them."""
        return anchors + share * self.scaling.restore(output)

    def facts(self) -> dict[str, Any]:
        """Give what is no array, as plain values for a file's header."""
        return {"fill": self.fill, "blind": self.blind, "clock": list(self.clock), "peers": self.peers}

    def arrays(self) -> dict[str, DoubleArray]:
        """Give all numbers by name, as arrays for a file."""
        parts: list[tuple[str, Scaling | LinearPart | LabelFilter]] = [("scaling", self.scaling)]
        if self.linear is not None:
            parts.append(("linear", self.linear))
        if self.labels is not None:
            parts.append(("labels", self.labels))
        return {"lead": np.asarray(self.lead, np.float64)} | {
            f"{name}.{field.name}": np.atleast_1d(np.asarray(getattr(part, field.name), np.float64))
            for name, part in parts
            for field in fields(part)
            if getattr(part, field.name) is not None
        }

    @classmethod
    def from_parts(cls, facts: Mapping[str, Any], arrays: Mapping[str, DoubleArray]) -> "Recipe":
        """Undo :meth:`facts` and :meth:`arrays`; KeyError where something is missing."""
        return cls(
            scaling=_from_arrays(Scaling, "scaling", arrays),
            fill=facts["fill"],
            lead=arrays["lead"],
            blind=bool(facts["blind"]),
            clock=tuple(facts["clock"]),
            linear=_from_arrays(LinearPart, "linear", arrays) if "linear.mean" in arrays else None,
            peers=bool(facts["peers"]),
            labels=_from_arrays(LabelFilter, "labels", arrays) if "labels.change" in arrays else None,
        )

    def _seen(self, panel: Panel) -> Panel:
        """Leave out inputs of no use, and add those of the clock."""
        given = panel.inputs[:, :0] if self.blind else panel.inputs
        # Sums round as memory is laid out: one layout, so that a frame and an array give the same digits.
        seen = replace(
            panel,
            inputs=np.ascontiguousarray(given),
            input_names=() if self.blind else panel.input_names,
        )
        if not self.clock:
            return seen
        return _with_columns(seen, clock_inputs(panel.time, self.clock), clock_names(self.clock))

    def _filled(self, panel: Panel, of_peers: DoubleArray | None = None) -> Panel:
        filled = self._seen(fill_gaps(panel, self.fill, self.lead))
        columns = self._of_peers(panel) if of_peers is None else of_peers
        return filled if columns is None else _with_columns(filled, columns, PEER_INPUTS)

    def _split(self, filled: Panel) -> Prepared:
        if self.linear is None:
            return Prepared(filled, np.zeros(len(filled)))
        rest, anchors = self.linear.split(filled)
        if self.peers:
            news = self._news_of_peers(rest, rest.target)
            rest = _with_columns(rest, news[:, None], (PEER_INNOVATION,))
        return Prepared(rest, anchors)

    def _of_peers(self, panel: Panel) -> DoubleArray | None:
        """Give how far off the others' last labels are, and how these changed: (N, 2); None without peers."""
        if not self.peers:
            return None
        last, change, known = last_labels(panel, 0.0)
        columns = np.empty((len(panel), len(PEER_INPUTS)))
        columns[:, 0] = np.where(known, mean_of_others(panel, last, known) - last, 0)
        columns[:, 1] = mean_of_others(panel, change, known)
        return np.nan_to_num(columns, copy=False)

    def _news_of_peers(self, panel: Panel, innovations: FloatArray) -> DoubleArray:
        """Give what the linear part left unexplained of the others one row ago: (N,)."""
        previous = np.concatenate([[np.nan], innovations[:-1]])
        previous[panel.starts[:-1]] = np.nan
        return np.nan_to_num(mean_of_others(panel, previous, ~np.isnan(previous)), copy=False)


class RecipeStream:
    """A recipe at work on n series in step, one row of each at a time.

    Parameters
    ----------
    recipe
        What to do.
    n_series, n_inputs
        Series in step, and inputs a row comes with.
    """

    def __init__(self, recipe: Recipe, n_series: int, n_inputs: int) -> None:
        if recipe.peers and n_series == 1:
            raise DataError(
                "this model sees what the other series do (peers=True), so it streams all of them together: "
                "model.stream(n_series=...)."
            )
        self.recipe = recipe
        self.linear = None if recipe.linear is None else LinearStream(recipe.linear, n_series)
        self._filter = None if recipe.labels is None else FilterStream(recipe.labels, n_series)
        self._given = 0 if recipe.blind else n_inputs
        self._cycles = self._given + len(clock_names(recipe.clock))
        self._enriched = self._cycles + recipe.peers * len(PEER_INPUTS)
        width = self._enriched
        if recipe.linear is not None:
            width += len(ADDED_INPUTS) + recipe.peers
        self.values = np.zeros((n_series, width))  # what the network sees, before scaling
        self.anchors = np.zeros(n_series)
        self._innovation = np.full(n_series, np.nan)  # of the linear part, one row ago

    def prepare(self, inputs: FloatArray, time: Any = None) -> DoubleArray:
        """Give a row of each series (n, D) as the network sees it, unscaled: (n, width), a buffer."""
        values, linear = self.values, self.linear
        if self._given:
            values[:, : self._given] = inputs
        if self.recipe.clock:
            values[:, self._given : self._cycles] = clock_inputs(_moment(time), self.recipe.clock)
        if linear is None:
            return values
        if self.recipe.peers:
            gap = mean_of_others_now(linear.last, linear.known) - linear.last
            values[:, self._cycles] = np.nan_to_num(np.where(linear.known, gap, np.nan))
            values[:, self._cycles + 1] = np.nan_to_num(mean_of_others_now(linear.change, linear.known))
            innovation = mean_of_others_now(self._innovation, ~np.isnan(self._innovation))
            values[:, -1] = np.nan_to_num(innovation)
        self.anchors = linear.anchor(values[:, : self._enriched])
        values[:, self._enriched] = linear.last
        np.subtract(self.anchors, linear.last, out=values[:, self._enriched + 1])
        return values

    def observe(self, labels: FloatArray) -> FloatArray:
        """Take in the labels (n,) of the rows prepared last; give the network's own target for them.

        That is missing where the label is, or is not plausible.
        """
        if self.linear is None:
            return labels
        if self._filter is not None:
            labels = self._filter(labels)
        self._innovation = labels - self.anchors
        self.linear.observe(labels)
        return self._innovation

    def state(self) -> DoubleArray:
        """Give all that later rows depend on: (n, any)."""
        if self.linear is None:
            return np.empty((len(self.values), 0))
        filtered = [] if self._filter is None else [self._filter.state()]
        return np.column_stack([self._innovation, *filtered, self.linear.state()])

    def restore(self, state: DoubleArray) -> None:
        """Take over what :meth:`state` gave."""
        if self.linear is not None:
            self._innovation = state[:, 0].copy()
            first = 1
            if self._filter is not None:
                first += self._filter.state().shape[1]
                self._filter.restore(state[:, 1:first])
            self.linear.restore(state[:, first:])


def _from_arrays(kind: type[_Part], prefix: str, arrays: Mapping[str, DoubleArray]) -> _Part:
    """Make a record of numbers and arrays from its fields; what is a number in it is one again."""
    values: dict[str, Any] = {}
    for field in fields(kind):
        name = f"{prefix}.{field.name}"
        if name in arrays or field.default is MISSING:  # a file may be older than a field with a default
            values[field.name] = arrays[name].item() if field.type is float else arrays[name]
    return kind(**values)


def _moment(time: Any) -> npt.NDArray[np.datetime64] | None:
    """Read one time, as NumPy, Python, pandas or text gives it."""
    if time is None:
        return None
    try:
        return np.atleast_1d(np.asarray(time, dtype="datetime64[s]"))
    except (TypeError, ValueError):
        raise DataError(
            f"time must be a moment such as '2026-11-15T07:30' or a datetime; got {time!r}."
        ) from None


def _all_rows(stretch: Stretch) -> slice:
    """Give which rows of the whole panel a stretch holds, with its lead."""
    return slice(stretch.rows.start - stretch.lead, stretch.rows.stop)


def _with_columns(panel: Panel, columns: FloatArray, names: tuple[str, ...]) -> Panel:
    return replace(
        panel,
        inputs=np.column_stack([panel.inputs, columns]),
        input_names=(*panel.input_names, *names),
    )
