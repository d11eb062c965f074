"""The linear part of n series in step, one row at a time, as `varnn.model.linear.LinearStream` has it.

What lies behind a row is carried in buffers that shift by one place a row, the latest first: changes of the
label, labels as far back as the longest season, and inputs. What a buffer holds from before a series began
is never read: nothing changed before the first label, a season counts once it was seen whole, and inputs
before the first row are those of the first row.
"""

from typing import NamedTuple

import numpy as np

from varnn.model.linear import LinearPart
from varnn.persistence.onnx._graph import Graph, Value


class LinearRow(NamedTuple):
    """What the linear part says of one row of each series; see `varnn.model.linear.LinearRows`."""

    prediction: Value  # (n,)
    last: Value  # (n,)
    regressors: Value  # (n, F)

    @property
    def added_inputs(self) -> list[Value]:
        """What the network sees besides: last label and step, (n, 1) each."""
        return [self.last.unsqueeze(1), (self.prediction - self.last).unsqueeze(1)]


class Linear:
    """The linear part of n series in step."""

    def __init__(self, graph: Graph, part: LinearPart) -> None:
        self.graph, self.part, form = graph, part, part.form
        packed = graph.state("linear", [4], np.float64)
        # Rows observed so far, whether one of them had a label, the last one, and what was predicted.
        self.rows, self.known, self.label, self.predicted = (packed[column] for column in range(4))
        self.places = {
            "changes": form.changes,
            "past_labels": max((period + 2 for period in form.periods), default=0),
            "past_inputs": form.n_inputs * max(form.input_lags, 0),
        }
        self.past = {
            name: graph.state(name, [places], np.float64) for name, places in self.places.items() if places
        }

    @property
    def last(self) -> Value:
        """The last label, or what stands in for it: (n,)."""
        return self.known.cast(np.bool_).where(self.label, self.part.mean)

    def observe(self, label: Value) -> Value:
        """Take in labels (n,) of the rows last predicted; give what the predictions left of them."""
        residual, missing, largest = label - self.predicted, label.is_missing(), self.part.largest_change
        change = missing.where(0.0, label - self.label) * self.known
        self.label = missing.where(self.label, label)
        self.known = missing.where(self.known, 1.0)
        self._shift("changes", change.clip(-largest, largest).unsqueeze(1))
        self._shift("past_labels", self.last.unsqueeze(1))
        return residual

    def within(self, residual: Value) -> Value:
        """Do what `varnn.model.linear.within` does: residuals larger than any change are missing."""
        small = (residual.apply("Abs") * -1.0).at_least(-self.part.largest_change)
        return small.where(residual, np.float64(np.nan))

    def predict(self, columns: list[Value]) -> LinearRow:
        """Predict rows with these inputs."""
        part, last = self.part, self.last
        found = [last.clip(part.low, part.high).unsqueeze(1)]
        if "changes" in self.past:
            found.append(self.past["changes"])
        found += [self._season(period, last) for period in part.form.periods]
        found += self._inputs(columns)
        regressors = self.graph.join(*found)
        prediction = last + part.constant + regressors @ part.weights
        packed = (self.rows + 1.0, self.known, self.label, prediction)
        self.graph.carry("linear", self.graph.join(*(one.unsqueeze(1) for one in packed)))
        for name, value in self.past.items():
            self.graph.carry(name, value)
        return LinearRow(prediction, last, regressors)

    def _season(self, period: int, last: Value) -> Value:
        """Regressors of one season, zeros until it was seen whole: (n, 4)."""
        labels = self.past["past_labels"]
        then, before, earlier, after = (labels[period - 1 - apart] for apart in (0, -1, -2, 1))
        changes = (then - before, before - earlier, after - then, then - last)
        seen, span = self.rows.at_least(period + 2.0).unsqueeze(1), self.part.high - self.part.low
        found = self.graph.join(*(one.unsqueeze(1) for one in changes))
        return seen.where(found.clip(-span, span), 0.0)

    def _inputs(self, columns: list[Value]) -> list[Value]:
        """Inputs now, and how past ones differ from them."""
        part, form = self.part, self.part.form
        if form.input_lags < 0 or not form.n_inputs:
            return []
        now = self.graph.join(*columns)
        if part.input_low is not None and part.input_high is not None:
            now = self.graph.node("Max", now, part.input_low)
            now = self.graph.node("Min", now, part.input_high)
        if not form.input_lags:
            return [now]
        repeated = self.graph.join(*[now] * form.input_lags)
        begun = self.rows.at_least(1.0).unsqueeze(1)
        past = self.past["past_inputs"] = begun.where(self.past["past_inputs"], repeated)
        self._shift("past_inputs", now)
        return [now, past - repeated]

    def _shift(self, name: str, latest: Value) -> None:
        """Put the latest values (n, any) at the front of a buffer, and lose as many at its end."""
        if name in self.past:
            joined = self.graph.join(latest, self.past[name])
            self.past[name] = joined.between(0, self.places[name], axis=1)
