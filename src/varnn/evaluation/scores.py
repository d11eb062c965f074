"""Predictions of the scored rows -> scores, summed up over seeds and origins."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from varnn._types import BoolArray, DoubleArray, FloatArray
from varnn.baselines.forecasts import persistence_ahead
from varnn.data.display import Table, cell, counted, drawn, html_card, text_table
from varnn.data.in_words import percent
from varnn.data.leaks import exact_leak
from varnn.evaluation import metrics
from varnn.evaluation.metrics import DEFAULT
from varnn.evaluation.protocols import Parts
from varnn.evaluation.significance import Difference, difference
from varnn.evaluation.verdict import in_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH = 100  # columns of the sentence below a table


@dataclass(frozen=True, eq=False, kw_only=True)
class Score:
    """How one model did from one seed on the test rows, those of all origins pooled.

    Parameters
    ----------
    model : str
        Name of the model.
    seed : int
        What it drew from.
    mse, rmse, mae : float
        In the target's own units.
    scaled_mse : float
        Mean squared error in units of the target's range before the (first) test part, as the paper
        prints.
    median_series_mse : float
        Median over series of each series' own mean squared error, own units.
    skill : float
        1 - mse / mse of persistence.
    seconds : float
        Time to fit, at all origins together.
    predictions : array of shape (N,)
        Of the scored rows.
    mse_by_origin, skill_by_origin : tuple of float
        What the pooled figures are made of: one after each origin.
    metrics : mapping from str to float or None
        The metrics that were asked for, by name; None where the model gives no intervals.
    """

    model: str
    seed: int
    mse: float
    rmse: float
    mae: float
    scaled_mse: float
    median_series_mse: float
    skill: float
    seconds: float
    predictions: FloatArray
    mse_by_origin: tuple[float, ...] = ()
    skill_by_origin: tuple[float, ...] = ()
    metrics: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Scores of several models on the same rows; :meth:`rows` summarises them over seeds.

    Parameters
    ----------
    parts : Parts
        Where the panel was cut, or first cut.
    scores : list of Score
        One per model and seed.
    truth : array of shape (N,)
        Labels of the scored rows, origin after origin.
    later : sequence of Parts, default ()
        Further cuts, with rolling origins.
    fitted : mapping from str to model, default {}
        Models by name, as last fitted: from the last seed, at the last origin.
    metrics : tuple of str, default ("rmse", "mae", "skill")
        Names of the metrics that were asked for, as :meth:`rows` and tables show them.
    level : float, default 0.9
        Level of the intervals that some of them judge.
    """

    parts: Parts
    scores: list[Score]
    truth: FloatArray
    later: Sequence[Parts] = ()
    fitted: Mapping[str, Any] = field(default_factory=dict)
    metrics: tuple[str, ...] = DEFAULT
    level: float = 0.9

    @property
    def cuts(self) -> list[Parts]:
        """Every cut, one per origin."""
        return [self.parts, *self.later]

    @property
    def leak(self) -> str | None:
        """Which inputs determine the target of their own row, in words, at any origin; None if none do."""
        return next((leak for one in self.cuts if (leak := exact_leak(one.train)) is not None), None)

    @property
    def n_series(self) -> int:
        """Series that are scored."""
        return max(one.test.n_series for one in self.cuts)

    def of(self, model: str) -> list[Score]:
        """Scores of one model, one per seed."""
        return [score for score in self.scores if score.model == model]

    def rows(self) -> list[dict[str, Any]]:
        """One line per model, the smallest squared error first: means over seeds, and what they are made of.

        Each metric that was asked for is there by name, and None where a model gives no intervals or the
        metric is not defined. ``spread`` is one standard deviation of the scaled error over seeds. Lists by
        seed and by origin show what the pooled figures are made of.
        """
        names = list(dict.fromkeys(score.model for score in self.scores))
        lines = []
        for name in names:
            scores = self.of(name)
            values = np.array([score.scaled_mse for score in scores])
            lines.append(
                {
                    "model": name,
                    "seeds": len(scores),
                    **{one: _mean([score.metrics.get(one) for score in scores]) for one in self.metrics},
                    "scaled_mse": float(values.mean()),
                    "spread": float(values.std(ddof=1)) if len(values) > 1 else 0.0,
                    "median_series_mse": float(np.mean([one.median_series_mse for one in scores])),
                    "seconds": float(np.mean([score.seconds for score in scores])),
                    "rmse_by_seed": [score.rmse for score in scores],
                    "rmse_by_origin": (
                        np.mean([one.mse_by_origin for one in scores], axis=0) ** 0.5
                    ).tolist(),
                    "skill_by_origin": np.mean([one.skill_by_origin for one in scores], axis=0).tolist(),
                }
            )
        return sorted(lines, key=lambda line: float(line["scaled_mse"]))

    def errors(self, model: str) -> FloatArray:
        """Truth minus the mean prediction over seeds, for the scored rows: (N,)."""
        return np.asarray(self.truth - np.mean([score.predictions for score in self.of(model)], axis=0))

    def losses(self, model: str) -> FloatArray:
        """Squared error of each scored row, mean over seeds: what one fit is to expect, (N,)."""
        squared = [np.square(self.truth - score.predictions) for score in self.of(model)]
        return np.asarray(np.mean(squared, axis=0))

    def difference(self, model: str, other: str) -> Difference:
        """Difference of two models' squared errors, by Diebold-Mariano and by paired bootstrap."""
        return difference(self.losses(model), self.losses(other))

    def plot(self) -> Figure:
        """Draw the error of each model, best on top, with a dot for each seed or origin; needs matplotlib."""
        return drawn("comparison", self)

    def __repr__(self) -> str:
        shown = self._table()
        said = "\n".join(textwrap.wrap(self._verdict, _WIDTH, initial_indent="  ", subsequent_indent="  "))
        return f"<{self._title()}>\n{text_table(shown.columns, shown.rows)}{said and chr(10)}{said}"

    def _repr_html_(self) -> str:
        return html_card(self._title(), None, [self._table()], [self._verdict] if self._verdict else ())

    @cached_property
    def _verdict(self) -> str:
        """Who is best, in words; kept, as its tests draw thousands of samples."""
        return in_words(self) if self.scores else ""

    def _title(self) -> str:
        lines, origins = self.rows(), len(self.cuts)
        said = f"Comparison of {counted(len(lines), 'model')} on {counted(len(self.truth), 'row')}"
        seeds = counted(max((line["seeds"] for line in lines), default=0), "seed")
        return f"{said}, {seeds}" + (f", {counted(origins, 'origin')}" if origins > 1 else "")

    def _table(self) -> Table:
        rows = [
            [line["model"], *(_written(one, line[one]) for one in self.metrics), f"{line['seconds']:.1f}"]
            for line in self.rows()
        ]
        return Table("", ["model", *self.metrics, "seconds to fit"], rows, 0 if rows else None)

    def against(self, model: str, other: str) -> tuple[float, float]:
        """Relative difference of two models' mean squared errors, and its Diebold-Mariano p value."""
        found = self.difference(model, other)
        return found.change, found.p


@dataclass(frozen=True, eq=False)
class TestBlock:
    """The scored rows of one cut, with what every score of them needs.

    Parameters
    ----------
    parts : Parts
        The cut.
    scored : array of bool
        Which rows of the cut's lead-in are scored.
    persistence : array of shape (N,)
        Predictions of the scored rows by persistence, the reference of skill.
    """

    parts: Parts
    scored: BoolArray
    persistence: FloatArray

    @property
    def truth(self) -> FloatArray:
        """Labels of the scored rows."""
        return self.parts.lead_in.target[self.scored]

    @property
    def series(self) -> npt.NDArray[Any]:
        """Id of the series of each scored row."""
        lead_in = self.parts.lead_in
        return np.repeat(np.array(lead_in.ids), lead_in.lengths)[self.scored]

    @cached_property
    def scale(self) -> DoubleArray:
        """Mean absolute error of persistence on the training rows of each scored row's series.

        A series that has none there, as of a cut by series, takes that of all.
        """
        train = self.parts.train
        errors = np.abs(train.target - persistence_ahead(train, 1)[:, 0])
        known = ~np.isnan(errors)
        series = np.repeat(np.arange(train.n_series), train.lengths)[known]
        counts = np.bincount(series, minlength=train.n_series)
        sums = np.bincount(series, weights=errors[known], minlength=train.n_series)
        of_all = sums.sum() / max(1, counts.sum())
        means = np.divide(sums, counts, out=np.full(len(sums), of_all), where=counts > 0)
        by_id = dict(zip(train.ids, means, strict=True))
        lead_in = self.parts.lead_in
        own = np.array([by_id.get(one, of_all) for one in lead_in.ids], dtype=np.float64)
        return np.repeat(own, lead_in.lengths)[self.scored]


class Predicted(NamedTuple):
    """Predictions of the scored rows of a block, and their bounds where the model gives intervals."""

    prediction: FloatArray
    lower: FloatArray | None = None
    upper: FloatArray | None = None


def score_blocks(
    name: str,
    seed: int,
    blocks: Sequence[TestBlock],
    predictions: Sequence[Predicted],
    seconds: Sequence[float],
    *,
    asked: Sequence[str] = DEFAULT,
    level: float = 0.9,
) -> Score:
    """Score of one model's predictions of some blocks, pooled.

    Parameters
    ----------
    name : str
        Name of the model.
    seed : int
        What it drew from.
    blocks, predictions, seconds : sequence
        The scored rows of each cut, the model's predictions of them, and its time to fit there.
    asked : sequence of str, default ("rmse", "mae", "skill")
        Metrics to give, beside those that a score has anyway.
    level : float, default 0.9
        Level of the bounds.
    """
    truth = np.concatenate([block.truth for block in blocks])
    naive = np.concatenate([block.persistence for block in blocks])
    pooled = np.concatenate([one.prediction for one in predictions])
    mse = metrics.mse(truth, pooled)
    _, codes, counts = np.unique(
        np.concatenate([block.series for block in blocks]), return_inverse=True, return_counts=True
    )
    pairs = [(block, one.prediction) for block, one in zip(blocks, predictions, strict=True)]
    scaled = any("scale" in metrics.needs(one) for one in asked)
    given = {
        "truth": truth,
        "prediction": pooled,
        "naive": naive,
        "lower": _joined([one.lower for one in predictions]),
        "upper": _joined([one.upper for one in predictions]),
        "level": level,
        "scale": np.concatenate([block.scale for block in blocks]) if scaled else None,
    }
    return Score(
        model=name,
        seed=seed,
        mse=mse,
        rmse=metrics.rmse(truth, pooled),
        mae=metrics.mae(truth, pooled),
        scaled_mse=mse / blocks[0].parts.unit ** 2,
        median_series_mse=float(np.median(np.bincount(codes, weights=np.square(truth - pooled)) / counts)),
        skill=metrics.skill(truth, pooled, naive),
        seconds=sum(seconds),
        predictions=pooled,
        mse_by_origin=tuple(metrics.mse(block.truth, one) for block, one in pairs),
        skill_by_origin=tuple(metrics.skill(block.truth, one, block.persistence) for block, one in pairs),
        metrics={one: _measured(one, given) for one in asked},
    )


def _measured(name: str, given: Mapping[str, Any]) -> float | None:
    """Value of a metric, or None where something that it needs is not given."""
    needed = {argument: given[argument] for argument in metrics.needs(name)}
    return None if any(one is None for one in needed.values()) else float(metrics.METRICS[name](**needed))


def _written(metric: str, value: float | None) -> str:
    """Write the value of a metric, a share in percent; nothing where there is none."""
    return percent(value) if value is not None and metric in metrics.SHARES else cell(value)


def _joined(arrays: Sequence[FloatArray | None]) -> FloatArray | None:
    known = [one for one in arrays if one is not None]
    return np.concatenate(known) if len(known) == len(arrays) else None


def _mean(values: Sequence[float | None]) -> float | None:
    """Mean over seeds; None where there is nothing, or what there is is not defined."""
    known = [one for one in values if one is not None and not np.isnan(one)]
    return float(np.mean(known)) if len(known) == len(values) else None
