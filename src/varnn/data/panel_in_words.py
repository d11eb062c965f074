"""How a panel shows itself: in a line of text, and as HTML for a notebook."""

from typing import Any

import numpy as np

from varnn.data.display import Table, cell, counted, html_card, some
from varnn.data.understood import NONE, understood, written_time

Panel = Any  # a panel speaks in the words that are made here: to import it would be a circle
_ROWS, _COLUMNS = 5, 6  # of a panel that a notebook shows


def one_line(panel: Panel) -> str:
    """Say what a panel holds in one line, as its ``repr`` does.

    Examples
    --------
    >>> from varnn import Panel
    >>> Panel.from_arrays([[1.0], [2.0]], [3.0, None], time=[0, 10], target_name="load")
    <Panel: 2 rows of 1 series; target 'load', 50.0% missing; 1 input: x0; every 10 from 0 to 10>
    """
    found = understood(panel)
    said = [
        f"{counted(found.rows, 'row')} of {counted(found.series, 'series')}",
        f"target {found.target!r}"
        + (f", {found.target_missing:.1%} missing" if found.target_missing else ""),
        f"{counted(len(found.inputs), 'input')}: {some(found.inputs)}" if found.inputs else "no inputs",
    ]
    if found.first_time is not None:
        step = "" if found.step is None else f"{found.step} from "
        said.append(f"{step}{found.first_time} to {found.last_time}")
    return f"<Panel: {'; '.join(said)}>"


def html_of(panel: Panel) -> str:
    """Show a panel in a notebook: what it holds, and its first rows."""
    several, dated = panel.n_series > 1, panel.time is not None
    more = ["..."] if panel.n_inputs > _COLUMNS else []
    rows = []
    for row in range(min(_ROWS, len(panel))):
        series = [panel.ids[int(np.searchsorted(panel.starts, row, side="right")) - 1]] if several else []
        moment = [written_time(panel.time[row])] if dated else []
        values = [float(panel.target[row]), *map(float, panel.inputs[row, :_COLUMNS])]
        rows.append([*series, *moment, *map(cell, values), *more])
    columns = [
        *([panel.series_name or "series"] if several else []),
        *([panel.time_name or "time"] if dated else []),
        panel.target_name,
        *panel.input_names[:_COLUMNS],
        *more,
    ]
    title = f"Panel of {counted(len(panel), 'row')}" + (f": {panel.name}" if panel.name else "")
    facts = {name: value for name, value in understood(panel).lines().items() if value != NONE}
    notes = [f"{note.text}." for note in panel.notes]
    return html_card(title, facts, [Table("first rows", columns, rows)] if rows else (), notes)
