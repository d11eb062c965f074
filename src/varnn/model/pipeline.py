"""From a user's rows to the network's, and back: every step of preparation, with what it learnt.

::

    wild labels left out (`varnn.model.outliers`)
    inputs, gaps filled (or none at all)  +  calendar  +  peers  ->  linear part split off  ->  scaled
    prediction  =  linear prediction  +  the network's output, unscaled

The order is the same for a panel (:class:`FeaturePipeline`) and for one row at a time
(:class:`PipelineStream`), and so are the numbers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from varnn._types import DoubleArray, FloatArray
from varnn.data.chunks import ROWS_AT_ONCE, Chunk, carried_chunks, chunks
from varnn.data.panel import Panel
from varnn.data.preparation import Fill, Scale, Scaling, fill_gaps
from varnn.errors import DataError
from varnn.model._fields import is_number
from varnn.model._linear_fit import fit_linear, refit_linear
from varnn.model.calendar import Cycle, calendar_inputs, calendar_names, calendar_of
from varnn.model.linear import ADDED_INPUTS, LinearPart, LinearRows, LinearStream, last_labels, within
from varnn.model.outliers import FilterStream, Judged, LabelFilter
from varnn.model.peers import PEER_INPUTS, PEER_RESIDUAL, mean_of_others, mean_of_others_now

_Part = TypeVar("_Part", Scaling, LinearPart, LabelFilter)


class Prepared(NamedTuple):
    """Rows as the network sees them, and what its output has to be added to: zeros without linear part."""

    panel: Panel
    linear_predictions: DoubleArray


@dataclass(frozen=True, eq=False, kw_only=True)
class FeaturePipeline:
    """How rows are prepared.

    Parameters
    ----------
    scaling : Scaling
        Of all inputs the network sees, and of its target.
    fill, initial_inputs : Fill, array
        What stands in for missing inputs, and for those before a series' first value: (D,).
    use_inputs : bool, default=True
        Whether the table's inputs are seen, or left out as of no use.
    calendar : tuple of Cycle, default=()
        Cycles of the calendar that are inputs.
    linear : LinearPart or None, default=None
        The linear part, or None.
    peers : bool, default=False
        Whether a row sees the other series; needs a linear part.
    label_filter : LabelFilter or None, default=None
        Which labels later rows are predicted from; None takes all. Comes with a linear part, as a network
        alone forgets a label after a window.

    Examples
    --------
    >>> panel = Panel.from_arrays([[1.0], [2.0], [3.0]], [5.0, 6.0, 7.0])
    >>> pipeline = FeaturePipeline.fit(panel, None, scale="standard", fill="forward", linear=True)
    >>> prepared = pipeline(panel)
    >>> prepared.panel.input_names
    ('x0', 'last label', 'linear step')
    """

    scaling: Scaling
    fill: Fill
    initial_inputs: FloatArray
    use_inputs: bool = True
    calendar: tuple[Cycle, ...] = ()
    linear: LinearPart | None = None
    peers: bool = False
    label_filter: LabelFilter | None = None

    @classmethod
    def fit(
        cls,
        training: Panel,
        validation: Panel | None,
        *,
        scale: Scale,
        fill: Fill,
        use_inputs: bool = True,
        calendar: tuple[Cycle, ...] = (),
        linear: bool = False,
        peers: bool = False,
    ) -> "FeaturePipeline":
        """Learn from training rows; validation rows choose the form of the linear part."""
        given = Scaling.fit(training, scale)
        pipeline = cls(
            scaling=given,
            fill=fill,
            initial_inputs=given.initial_inputs,
            use_inputs=use_inputs,
            calendar=calendar,
            peers=peers,
        )
        if linear:
            later = None if validation is None else pipeline._filled(validation)
            part = fit_linear(pipeline._filled(training), later, of_clock=calendar_names(calendar))
            seen = [training] if validation is None else [training, validation]
            pipeline = pipeline._with(part, LabelFilter.fit(*seen))
        return pipeline._scaled(training, scale)

    def refitted(self, training: Panel, scale: Scale) -> "FeaturePipeline":
        """Learn anew from other rows, in the form that was chosen before."""
        pipeline = replace(self, initial_inputs=Scaling.fit(training, scale).initial_inputs)
        if self.linear is not None:
            clock = calendar_names(self.calendar)
            part = refit_linear(self.linear, pipeline._filled(training), of_clock=clock)
            pipeline = pipeline._with(part, LabelFilter.fit(training))
        return pipeline._scaled(training, scale)

    def _with(self, linear: LinearPart, label_filter: LabelFilter | None) -> "FeaturePipeline":
        """Take a linear part and a filter, by which it knows how large changes are."""
        if label_filter is not None:
            linear = replace(linear, largest_change=label_filter.change)
        return replace(self, linear=linear, label_filter=label_filter)

    def _scaled(self, training: Panel, scale: Scale) -> "FeaturePipeline":
        """Measure what the network will see of the training rows."""
        if self.linear is None:  # what was filled in counts for nothing
            rows = (self._seen(one.panel) for one in chunks(training))
        else:
            rows = (one.panel for one, _ in self._unscaled(training, most=ROWS_AT_ONCE))
        return replace(self, scaling=Scaling.over(rows, scale))

    @property
    def takes_rows_as_they_are(self) -> bool:
        """Tell whether nothing but scaling is done to a row without gaps."""
        return self.linear is None and not self.calendar and self.use_inputs

    @property
    def reach(self) -> int:
        """How many rows before it a row is prepared from, if the first of them has the last label known."""
        return 1 if self.linear is None else self.linear.reach

    def __call__(self, panel: Panel) -> Prepared:
        """Prepare a panel whose columns are those of the training panel."""
        linear_predictions = np.empty(len(panel))
        return Prepared(self.rows(panel, linear_predictions), linear_predictions)

    def rows(self, panel: Panel, linear_predictions: DoubleArray | None = None) -> Panel:
        """Prepare the rows alone, as training wants them; fills ``linear_predictions``, if given."""
        inputs = np.empty((len(panel), len(self.scaling.input_offset)), np.float32)
        target, names = np.empty(len(panel), np.float32), panel.input_names
        for one, linear in self.in_chunks(panel, most=ROWS_AT_ONCE):
            inputs[one.rows], target[one.rows] = one.panel.inputs, one.panel.target
            names = one.panel.input_names
            if linear_predictions is not None:
                linear_predictions[one.rows] = linear.predictions
        return replace(panel, inputs=inputs, target=target, input_names=names)

    def plausible(self, panel: Panel) -> Panel:
        """Leave out labels that are not plausible, as all of the below does by itself."""
        return panel if self.label_filter is None else self.label_filter(panel)

    def in_chunks(
        self, panel: Panel, *, most: int, context: int = 0, regressors: bool = False
    ) -> Iterator[tuple[Chunk, LinearRows]]:
        """Prepare a panel in chunks, up to ``context`` rows before each; give what the linear part says, too.

        The numbers are those of the whole panel.
        """
        for one, linear in self._unscaled(panel, most=most, context=context, regressors=regressors):
            yield one._replace(panel=self.scaling.apply(one.panel)), linear

    def _unscaled(
        self, panel: Panel, *, most: int, context: int = 0, regressors: bool = False
    ) -> Iterator[tuple[Chunk, LinearRows]]:
        judged = Judged([], {}) if self.label_filter is None else self.label_filter.judged(panel)
        left_out: Sequence[int] = ()
        if self.peers or self.fill == "interpolate":
            panel = judged.without(panel)
        else:  # where rows are gone through in pieces, no second target is held
            left_out = judged.left_out
        if self.fill == "interpolate":  # that looks ahead: it is done once, for all rows
            panel = fill_gaps(panel, self.fill, self.initial_inputs)
        of_peers = self._of_peers(panel)
        of_others = None
        if self.peers and self.linear is not None:
            residuals = np.empty(len(panel))
            for one, residual, _ in self._split_chunks(panel, of_peers, most=ROWS_AT_ONCE, context=0):
                residuals[one.rows] = residual.target[one.context :]
            of_others = self._residuals_of_peers(panel, residuals)
        for one, residual, linear in self._split_chunks(
            panel, of_peers, most=most, context=context, missing=left_out, regressors=regressors
        ):
            if of_others is not None:
                residual = _with_columns(residual, of_others[_all_rows(one), None], (PEER_RESIDUAL,))
            spare = max(one.context - context, 0)
            rows = residual.between(spare, len(residual))
            linear = linear.after(one.context)._replace(doubt=judged.doubt(one.rows))
            yield one._replace(panel=rows, context=one.context - spare), linear

    def _split_chunks(
        self,
        panel: Panel,
        of_peers: DoubleArray | None,
        *,
        most: int,
        context: int,
        missing: Sequence[int] = (),
        regressors: bool = False,
    ) -> Iterator[tuple[Chunk, Panel, LinearRows]]:
        """Split the linear part off chunk by chunk; what it says is of the context, too."""
        for one in carried_chunks(panel, most=most, context=context + self.reach, missing=missing):
            filled = self._filled(one.panel, None if of_peers is None else of_peers[_all_rows(one)])
            if self.linear is None:
                nothing = np.zeros(len(filled))
                yield (
                    one,
                    filled,
                    LinearRows(
                        nothing, nothing, filled.target.astype(np.float64), np.zeros((len(filled), 0))
                    ),
                )
            else:
                yield one, *self.linear.split(filled, regressors=regressors)

    def facts(self) -> dict[str, Any]:
        """What is no array, as plain values for a file's header."""
        return {
            "fill": self.fill,
            "blind": not self.use_inputs,
            "clock": list(self.calendar),
            "peers": self.peers,
        }

    def arrays(self) -> dict[str, DoubleArray]:
        """All numbers by name, as arrays for a file."""
        parts: list[tuple[str, Scaling | LinearPart | LabelFilter]] = [("scaling", self.scaling)]
        if self.linear is not None:
            parts.append(("linear", self.linear))
        if self.label_filter is not None:
            parts.append(("labels", self.label_filter))
        return {"lead": np.asarray(self.initial_inputs, np.float64)} | {
            f"{name}.{_on_disk(field.name)}": np.atleast_1d(np.asarray(getattr(part, field.name), np.float64))
            for name, part in parts
            for field in fields(part)
            if _is_there(field, getattr(part, field.name))
        }

    @classmethod
    def from_parts(cls, facts: Mapping[str, Any], arrays: Mapping[str, DoubleArray]) -> "FeaturePipeline":
        """Undo :meth:`facts` and :meth:`arrays`; KeyError where something is missing."""
        return cls(
            scaling=_from_arrays(Scaling, "scaling", arrays),
            fill=facts["fill"],
            initial_inputs=arrays["lead"],
            use_inputs=not facts["blind"],
            calendar=tuple(facts["clock"]),
            linear=_from_arrays(LinearPart, "linear", arrays) if "linear.mean" in arrays else None,
            peers=bool(facts["peers"]),
            label_filter=_from_arrays(LabelFilter, "labels", arrays) if "labels.change" in arrays else None,
        )

    def _seen(self, panel: Panel) -> Panel:
        """Leave out inputs of no use, and add those of the calendar."""
        given = panel.inputs if self.use_inputs else panel.inputs[:, :0]
        # Sums round as memory is laid out: one layout, so that a frame and an array give the same digits.
        seen = replace(
            panel,
            inputs=np.ascontiguousarray(given),
            input_names=panel.input_names if self.use_inputs else (),
        )
        if not self.calendar:
            return seen
        return _with_columns(seen, calendar_inputs(panel.time, self.calendar), calendar_names(self.calendar))

    def _filled(self, panel: Panel, of_peers: DoubleArray | None = None) -> Panel:
        filled = self._seen(fill_gaps(panel, self.fill, self.initial_inputs))
        columns = self._of_peers(panel) if of_peers is None else of_peers
        return filled if columns is None else _with_columns(filled, columns, PEER_INPUTS)

    def _of_peers(self, panel: Panel) -> DoubleArray | None:
        """How far off the others' last labels are, and how these changed: (N, 2); None without peers."""
        if not self.peers:
            return None
        last, change, known = last_labels(panel, 0.0)
        columns = np.empty((len(panel), len(PEER_INPUTS)))
        columns[:, 0] = np.where(known, mean_of_others(panel, last, known) - last, 0)
        columns[:, 1] = mean_of_others(panel, change, known)
        return np.nan_to_num(columns, copy=False)

    def _residuals_of_peers(self, panel: Panel, residuals: FloatArray) -> DoubleArray:
        """What the linear part left unexplained of the others one row ago: (N,)."""
        previous = np.concatenate([[np.nan], residuals[:-1]])
        previous[panel.starts[:-1]] = np.nan
        return np.nan_to_num(mean_of_others(panel, previous, ~np.isnan(previous)), copy=False)


class PipelineStream:
    """A pipeline at work on n series in step, one row of each at a time.

    Parameters
    ----------
    pipeline : FeaturePipeline
        What to do.
    n_series, n_inputs : int
        Series in step, and inputs a row comes with.
    """

    def __init__(self, pipeline: FeaturePipeline, n_series: int, n_inputs: int) -> None:
        if pipeline.peers and n_series == 1:
            raise DataError(
                "this model sees what the other series do (peers=True), so it streams all of them together: "
                "model.stream(n_series=...)."
            )
        self.pipeline = pipeline
        self.linear = None if pipeline.linear is None else LinearStream(pipeline.linear, n_series)
        self._filter = (
            None if pipeline.label_filter is None else FilterStream(pipeline.label_filter, n_series)
        )
        self._given = n_inputs if pipeline.use_inputs else 0
        self._cycles = self._given + len(calendar_names(pipeline.calendar))
        self._enriched = self._cycles + pipeline.peers * len(PEER_INPUTS)
        width = self._enriched
        if pipeline.linear is not None:
            width += len(ADDED_INPUTS) + pipeline.peers
        self.values = np.zeros((n_series, width))  # what the network sees, before scaling
        # Parts of these, as a row takes as long as the calls to NumPy it makes.
        self._inputs, self._calendar = (
            self.values[:, : self._given],
            self.values[:, self._given : self._cycles],
        )
        self._seen = self.values[:, : self._enriched]
        if pipeline.linear is not None:
            self._last, self._step = self.values.T[self._enriched : self._enriched + len(ADDED_INPUTS)]
        self.linear_predictions = np.zeros(n_series)
        self._linear_residual = np.full(n_series, np.nan)  # of the linear part, one row ago

    def prepare(self, inputs: FloatArray, time: Any = None) -> DoubleArray:
        """A row of each series (n, D) as the network sees it, unscaled: (n, width), a buffer."""
        values, linear = self.values, self.linear
        if self._given:
            self._inputs[...] = inputs
        if self.pipeline.calendar:
            self._calendar[...] = calendar_of(time, self.pipeline.calendar)
        if linear is None:
            return values
        if self.pipeline.peers:
            gap = mean_of_others_now(linear.last, linear.known) - linear.last
            values[:, self._cycles] = np.nan_to_num(np.where(linear.known, gap, np.nan))
            values[:, self._cycles + 1] = np.nan_to_num(mean_of_others_now(linear.change, linear.known))
            told = within(self._linear_residual, linear.part.largest_change)  # as in a batch
            values[:, -1] = np.nan_to_num(mean_of_others_now(told, ~np.isnan(told)))
        self.linear_predictions = linear.predict(self._seen)
        self._last[...] = linear.last
        np.subtract(self.linear_predictions, linear.last, out=self._step)
        return values

    def observe(self, labels: FloatArray) -> FloatArray:
        """Take in the labels (n,) of the rows prepared last; give the network's own target for them.

        That is missing where the label is, or is not plausible, or is farther off than any change.
        """
        if self.linear is None:
            self._linear_residual = labels
            return labels
        if self._filter is not None:
            labels = self._filter(labels)
        self._linear_residual = labels - self.linear_predictions
        self.linear.observe(labels)
        return within(self._linear_residual, self.linear.part.largest_change)

    def linear_rows(self, n_series: int) -> LinearRows:
        """What the linear part says of the rows prepared last, of the first so many series."""
        if self.linear is None:
            nothing = np.zeros(n_series)
            return LinearRows(nothing, nothing, nothing)
        doubt = 0.0 if self._filter is None else self._filter.doubt
        linear = self.linear
        if n_series == len(linear.last):
            predictions, residuals = self.linear_predictions, self._linear_residual
            return LinearRows(predictions, linear.last, residuals, linear.regressors, doubt)
        return LinearRows(
            self.linear_predictions[:n_series],
            self.linear.last[:n_series],
            self._linear_residual[:n_series],
            self.linear.regressors[:n_series],
            doubt if isinstance(doubt, float) else doubt[:n_series],
        )

    def residuals(self, n_series: int) -> DoubleArray:
        """What the linear predictions left of the labels observed last: (n,)."""
        return self._linear_residual[:n_series]

    def state(self) -> DoubleArray:
        """All that later rows depend on: (n, any)."""
        if self.linear is None:
            return np.empty((len(self.values), 0))
        filtered = [] if self._filter is None else [self._filter.state()]
        return np.column_stack([self._linear_residual, *filtered, self.linear.state()])

    def restore(self, state: DoubleArray) -> None:
        """Take over what :meth:`state` gave."""
        if self.linear is not None:
            self._linear_residual = state[:, 0].copy()
            first = 1
            if self._filter is not None:
                first += self._filter.state().shape[1]
                self._filter.restore(state[:, 1:first])
            self.linear.restore(state[:, first:])


def _on_disk(field: str) -> str:
    """Name a field as files do: names there stay as they were, so that files of before are read."""
    return {"initial_inputs": "input_lead"}.get(field, field)


def _is_there(field: Field[Any], value: Any) -> bool:
    """Whether a field is worth an array: what is none, or is empty unless it says otherwise, is not."""
    return value is not None and (field.default_factory is MISSING or np.size(value) > 0)


def _from_arrays(kind: type[_Part], prefix: str, arrays: Mapping[str, DoubleArray]) -> _Part:
    """Make a record of numbers and arrays from its fields; what is a number in it is one again."""
    values: dict[str, Any] = {}
    for field in fields(kind):
        name = f"{prefix}.{_on_disk(field.name)}"
        required = field.default is MISSING and field.default_factory is MISSING
        if name in arrays or required:  # a file may be older than a field with a default
            values[field.name] = arrays[name].item() if is_number(field) else arrays[name]
    return kind(**values)


def _all_rows(chunk: Chunk) -> slice:
    """Which rows of the whole panel a chunk holds, with its context."""
    return slice(chunk.rows.start - chunk.context, chunk.rows.stop)


def _with_columns(panel: Panel, columns: FloatArray, names: tuple[str, ...]) -> Panel:
    return replace(
        panel,
        inputs=np.column_stack([panel.inputs, columns]),
        input_names=(*panel.input_names, *names),
    )
