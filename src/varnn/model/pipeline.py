"""From a user's rows to the network's: every step of preparation, with what it learned.

::

    labels that are not plausible left out (`varnn.step.label_filter`)
    inputs, gaps filled (or none at all)  +  calendar  +  peers  ->  linear part split off  ->  scaled
    prediction  =  linear prediction  +  the network's output, unscaled

`varnn.step.row` does all of it, row by row. Here is what it does it with, and what comes from more than one
row or series: the calendar, and what the other series do.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from varnn._types import DoubleArray, FloatArray
from varnn.data.chunks import chunks
from varnn.data.panel import Panel
from varnn.data.preparation import Fill, Scale, Scaling, fill_gaps
from varnn.model._fields import is_number
from varnn.model._linear_fit import fit_linear, refit_linear
from varnn.model.calendar import Cycle, calendar_inputs, calendar_names
from varnn.model.linear import ADDED_INPUTS, LinearPart, last_labels, within
from varnn.model.outliers import LabelFilter
from varnn.model.peers import PEER_INPUTS, PEER_RESIDUAL, mean_of_others
from varnn.model.rows import run_panel
from varnn.model.runtime import pipeline_model
from varnn.step.loops import Taps

_Part = TypeVar("_Part", Scaling, LinearPart, LabelFilter)
_UNSCALED = {"target_offset": 0.0, "target_scale": 1.0, "input_limit": np.inf}


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
        """Learn again from other rows, in the form that was chosen before."""
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
            return replace(
                self, scaling=Scaling.over((self._seen(one.panel) for one in chunks(training)), scale)
            )
        columns, largest = len(self.input_names(training)), self.linear.largest_change
        unscaled = Scaling(
            input_offset=np.zeros(columns),
            input_scale=np.ones(columns),
            initial_inputs=np.zeros(columns),
            **_UNSCALED,
        )
        wanted = replace(self, scaling=unscaled).run(training, ("columns", "residual"))
        rows = (
            Panel.from_arrays(taps.columns, within(taps.residual, largest), target_name=training.target_name)
            for _, taps in wanted
        )
        return replace(self, scaling=Scaling.over(rows, scale))

    def input_names(self, panel: Panel) -> tuple[str, ...]:
        """Name the inputs of the network, of rows with the inputs of a panel."""
        names = (*(panel.input_names if self.use_inputs else ()), *calendar_names(self.calendar))
        if self.linear is None:
            return names
        peers = (PEER_INPUTS, (PEER_RESIDUAL,)) if self.peers else ((), ())
        return (*names, *peers[0], *ADDED_INPUTS, *peers[1])

    @property
    def reach(self) -> int:
        """How many rows before it a row is prepared from, if the first of them has the last label known."""
        return 1 if self.linear is None else self.linear.reach

    def run(self, panel: Panel, wanted: tuple[str, ...]) -> Iterator[tuple[slice, Taps]]:
        """Prepare rows, and predict them by the linear part alone; see `varnn.model.rows.run_panel`."""
        panel = self.without_gaps(panel)
        return run_panel(pipeline_model(self, panel.n_inputs), panel, self.extra_inputs(panel), wanted=wanted)

    def __call__(self, panel: Panel) -> "Prepared":
        """Prepare a panel whose columns are those of the training panel."""
        linear_predictions = np.empty(len(panel))
        return Prepared(self.rows(panel, linear_predictions), linear_predictions)

    def rows(self, panel: Panel, linear_predictions: DoubleArray | None = None) -> Panel:
        """Prepare the rows alone, as training wants them; fills ``linear_predictions``, if given."""
        names = self.input_names(panel)
        inputs, target = np.empty((len(panel), len(names)), np.float32), np.empty(len(panel), np.float32)
        for rows, taps in self.run(panel, ("columns", "target", "linear")):
            inputs[rows], target[rows] = taps.columns, taps.target
            if linear_predictions is not None:
                linear_predictions[rows] = taps.linear
        return replace(panel, inputs=inputs, target=target, input_names=names)

    def plausible(self, panel: Panel) -> Panel:
        """Leave out labels that are not plausible, as all of the below does by itself."""
        return panel if self.label_filter is None else self.label_filter(panel)

    def without_gaps(self, panel: Panel) -> Panel:
        """Fill gaps if that needs rows to come, or reject them; others are filled row by row."""
        if self.fill in ("forward", "zero"):
            return panel
        return fill_gaps(panel, self.fill, self.initial_inputs)

    def extra_inputs(self, panel: Panel) -> Callable[[slice], DoubleArray]:
        """Return what computes the inputs of the calendar and of peers, for some rows: (n, C).

        Inputs of the calendar are computed when they are needed, to save memory on long panels.
        """
        peers = self._peer_columns(panel) if self.peers else np.empty((len(panel), 0))

        def extra(rows: slice) -> DoubleArray:
            if not self.calendar:
                return peers[rows]
            time = None if panel.time is None else panel.time[rows]
            return np.column_stack([calendar_inputs(time, self.calendar), peers[rows]])

        return extra

    def _peer_columns(self, panel: Panel) -> DoubleArray:
        """Compute what rows see of other series: gap, change, and what the linear part left: (N, 3)."""
        columns = np.column_stack([self._of_peers(self.plausible(panel)), np.zeros(len(panel))])
        if self.linear is None:
            return columns
        calendar = replace(self, peers=False).extra_inputs(panel)
        residuals = np.empty(len(panel))
        alone = pipeline_model(self, panel.n_inputs)
        for rows, taps in run_panel(
            alone, panel, lambda some: np.column_stack([calendar(some), columns[some]]), wanted=("residual",)
        ):
            residuals[rows] = within(taps.residual, self.linear.largest_change)
        columns[:, -1] = self._residuals_of_peers(panel, residuals)
        return columns

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

    def _filled(self, panel: Panel) -> Panel:
        """Rows as the linear part is fitted on them: inputs filled, those of calendar and peers added."""
        filled = self._seen(fill_gaps(panel, self.fill, self.initial_inputs))
        return _with_columns(filled, self._of_peers(panel), PEER_INPUTS) if self.peers else filled

    def _of_peers(self, panel: Panel) -> DoubleArray:
        """Compute how far off the others' last labels are, and how these changed: (N, 2)."""
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


def _with_columns(panel: Panel, columns: FloatArray, names: tuple[str, ...]) -> Panel:
    return replace(
        panel,
        inputs=np.column_stack([panel.inputs, columns]),
        input_names=(*panel.input_names, *names),
    )
