"""A stream -> what it is doing, in a line, or as HTML for a notebook."""

from typing import Any

import numpy as np

from varnn.data.display import Table, counted, html_card
from varnn.data.understood import written_time

Stream = Any  # a stream speaks in the words that are made here: to import it would be a circle


def one_line(stream: Stream, *, is_open: bool) -> str:
    """Say what a stream predicts, and how far it has come."""
    return f"<{_title(stream)}: {', '.join(_state(stream, is_open).values())}>"


def html_of(stream: Stream, *, is_open: bool) -> str:
    """Show a stream: how far it has come, and how much each expert counts by now."""
    tables = []
    if stream.model.experts is not None:
        columns = ["expert", "weight now" if stream.n_series is None else "mean weight now"]
        rows = [[name, f"{float(np.mean(one)):.0%}"] for name, one in stream.weights.items()]
        tables.append(Table("", columns, rows))
    return html_card(_title(stream), _state(stream, is_open), tables, [str(one) for one in stream.events])


def _title(stream: Stream) -> str:
    of = "" if stream.n_series is None else f" of {counted(stream.n_series, 'series')}"
    return f"Stream{of} that predicts {stream.model.target_name!r}"


def _state(stream: Stream, is_open: bool) -> dict[str, str]:
    found = {
        "inputs": counted(stream.n_inputs, "input"),
        "observed": f"{counted(stream.steps, 'row')} observed",
    }
    if stream.last_time is not None:
        found["last"] = f"the last at {written_time(stream.last_time)}"
    if is_open:
        found["open"] = "an x waits for its label"
    if stream.forecaster is not None:
        found["horizon"] = f"forecasts {counted(stream.forecaster.horizon, 'row')} ahead"
    if stream.monitor is not None:
        found["monitor"] = "watched for changes"
    return found
