"""Predictions of the scored rows -> scores, summed up over seeds and origins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from varnn._types import BoolArray, FloatArray
from varnn.evaluation.protocols import Parts
from varnn.evaluation.significance import Difference, difference


@dataclass(frozen=True, eq=False, kw_only=True)
class Score:
    """How one model did from one seed on the test rows, those of all origins pooled.

    Parameters
    ----------
    model, seed
        Which model, from which seed.
    mse, rmse, mae
        In the target's own units.
    scaled_mse
        Mean squared error in units of the target's range before the (first) test part, as the paper
        prints.
    median_series_mse
        Median over series of each series' own mean squared error, own units.
    skill
        1 - mse / mse of persistence.
    seconds
        Time to fit, at all origins together.
    predictions
        Of the scored rows.
    mse_by_origin, skill_by_origin
        What the pooled figures are made of: one after each origin.
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


@dataclass(frozen=True, eq=False)
class Comparison:
    """Scores of several models on the same rows; :meth:`rows` summarises them over seeds.

    Parameters
    ----------
    parts
        Where the panel was cut, or first cut.
    scores
        One per model and seed.
    truth
        Labels of the scored rows, origin after origin.
    later
        Further cuts, with rolling origins.
    fitted
        Models by name, as last fitted: from the last seed, at the last origin.
    """

    parts: Parts
    scores: list[Score]
    truth: FloatArray
    later: Sequence[Parts] = ()
    fitted: Mapping[str, Any] = field(default_factory=dict)

    @property
    def cuts(self) -> list[Parts]:
        """Every cut, one per origin."""
        return [self.parts, *self.later]

    @property
    def n_series(self) -> int:
        """Series that are scored."""
        return max(one.test.n_series for one in self.cuts)

    def of(self, model: str) -> list[Score]:
        """Give the scores of one model, one per seed."""
        return [score for score in self.scores if score.model == model]

    def rows(self) -> list[dict[str, Any]]:
        """Give one line per model, best first: means over seeds, and spread over seeds and origins.

        ``spread`` is one standard deviation of the scaled error over seeds. Lists by seed and
        by origin show what the pooled figures are made of.
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
                    "rmse": float(np.mean([score.rmse for score in scores])),
                    "mae": float(np.mean([score.mae for score in scores])),
                    "skill": float(np.mean([score.skill for score in scores])),
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
        """Give truth minus the mean prediction over seeds, for the scored rows."""
        return np.asarray(self.truth - np.mean([score.predictions for score in self.of(model)], axis=0))

    def losses(self, model: str) -> FloatArray:
        """Give the squared error of each scored row, mean over seeds: what one fit is to expect."""
        squared = [np.square(self.truth - score.predictions) for score in self.of(model)]
        return np.asarray(np.mean(squared, axis=0))

    def difference(self, model: str, other: str) -> Difference:
        """Compare two models' squared errors, by Diebold-Mariano and by paired bootstrap."""
        return difference(self.losses(model), self.losses(other))

    def against(self, model: str, other: str) -> tuple[float, float]:
        """Compare two models' squared errors: relative difference of their means, and its p value."""
        found = self.difference(model, other)
        return found.change, found.p


@dataclass(frozen=True, eq=False)
class TestBlock:
    """The scored rows of one cut, with what every score of them needs.

    Parameters
    ----------
    parts
        The cut.
    scored
        Which rows of the cut's lead-in are scored.
    persistence
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


def score_blocks(
    name: str,
    seed: int,
    blocks: Sequence[TestBlock],
    predictions: Sequence[FloatArray],
    seconds: Sequence[float],
) -> Score:
    """Score one model's predictions of some blocks, pooled.

    Parameters
    ----------
    name, seed
        Of the model.
    blocks, predictions, seconds
        The scored rows of each cut, the model's predictions of them, and its time to fit there.
    """
    errors = [block.truth - one for block, one in zip(blocks, predictions, strict=True)]
    naive = [block.truth - block.persistence for block in blocks]
    pooled = np.concatenate(errors)
    mse = _mean_square(pooled)
    _, codes, counts = np.unique(
        np.concatenate([block.series for block in blocks]), return_inverse=True, return_counts=True
    )
    return Score(
        model=name,
        seed=seed,
        mse=mse,
        rmse=mse**0.5,
        mae=float(np.mean(np.abs(pooled))),
        scaled_mse=mse / blocks[0].parts.unit ** 2,
        median_series_mse=float(np.median(np.bincount(codes, weights=pooled**2) / counts)),
        skill=_skill(pooled, np.concatenate(naive)),
        seconds=sum(seconds),
        predictions=np.concatenate(predictions),
        mse_by_origin=tuple(map(_mean_square, errors)),
        skill_by_origin=tuple(map(_skill, errors, naive)),
    )


def _mean_square(errors: FloatArray) -> float:
    return float(np.mean(np.square(errors)))


def _skill(errors: FloatArray, naive: FloatArray) -> float:
    reference = _mean_square(naive)
    return 1 - _mean_square(errors) / reference if reference else 0.0
