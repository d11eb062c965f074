"""An estimator -> what it is, in text and as HTML for a notebook: its settings, and what it was fitted to.

Its ``repr`` stays what scikit-learn's convention makes of it, the settings that are not the default, so that
it may be pasted into code; below it, as a comment, is what it was fitted to.
"""

import math
from typing import Any

from varnn.data.display import Table, cell, counted, html_card, some
from varnn.model.fitted import Fitted
from varnn.persistence.card import LABELS


class Shown:
    """What an estimator says of itself, before anything that its base classes would."""

    def __repr__(self) -> str:
        settings = super().__repr__()
        fitted = getattr(self, "fitted_", None)
        return settings if fitted is None else f"{settings}\n# fitted: {in_one_line(fitted)}"

    def _repr_html_(self) -> str:
        settings, fitted = super().__repr__(), getattr(self, "fitted_", None)
        if fitted is None:
            return html_card(settings, words=["Not fitted yet: call fit."])
        return html_of(settings, fitted, getattr(self, "forecaster_", None))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


def in_one_line(fitted: Fitted) -> str:
    """Say what a model was fitted to, and how well."""
    record, rows = fitted.training, ""
    if record.trained_on is not None and record.series is not None:
        rows = f" on {counted(record.trained_on, 'row')} of {counted(record.series, 'series')}"
    inputs = counted(len(fitted.input_names), "input") if fitted.input_names else "no inputs"
    when = "" if record.period is None else f", {record.period[0]} to {record.period[1]}"
    errors = {name: math.sqrt(record.validation[name]) for name in LABELS if name in record.validation}
    held_out = ""
    if "model" in errors:
        beside = f" (persistence {cell(errors['persistence'])})" if "persistence" in errors else ""
        held_out = f"; RMSE on rows held out {cell(errors['model'])}{beside}"
    return f"{fitted.target_name!r} from {inputs}{rows}{when}{held_out}"


def html_of(settings: str, fitted: Fitted, forecaster: Any) -> str:
    """Show a fitted model: what it predicts from what, how well, and who of its experts counts at first."""
    record, network, names = fitted.training, fitted.architecture, fitted.input_names
    seen = [f"the time of {one}" for one in fitted.pipeline.calendar] + list(fitted.seasons)
    facts = {
        "predicts": fitted.target_name,
        "from": f"{len(names)}: {some(names)}" if names else "labels alone",
        "calendar, seasons": some(seen),
        "fitted on": ""
        if record.trained_on is None or record.series is None
        else f"{counted(record.trained_on, 'row')} of {counted(record.series, 'series')}",
        "time": "" if record.period is None else " to ".join(record.period),
        "network": f"{counted(fitted.n_members, 'member')}, {network.hidden_size} hidden units, "
        f"memory of {network.memory_size}",
        "looks ahead": "" if forecaster is None else counted(forecaster.horizon, "row"),
        "cut short": record.interrupted or "",
    }
    tables = []
    if errors := [
        [said, cell(math.sqrt(record.validation[name]))]
        for name, said in LABELS.items()
        if name in record.validation
    ]:
        tables.append(Table("on rows held out", ["", "RMSE"], errors, 0))
    if fitted.experts is not None:
        weights = zip(fitted.experts.names, fitted.experts.prior.tolist(), strict=True)
        rows = [[name, f"{weight:.0%}"] for name, weight in weights]
        tables.append(Table("experts", ["", "weight at first"], rows))
    return html_card(settings, facts, tables)
