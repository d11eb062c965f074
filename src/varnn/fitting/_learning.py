"""What a model goes on learning with: gains from training rows, first weights from validation rows."""

from dataclasses import replace

import numpy as np

from varnn._types import BoolArray, DoubleArray
from varnn.data.context import preceded
from varnn.data.panel import Panel
from varnn.fitting._boosting import grow
from varnn.model.adaptation import Adaptation, gain_of
from varnn.model.boosting import Trees
from varnn.model.experts import (
    FORGETTING,
    LINEAR_FORGETTING,
    MOST_JOINED,
    NEVER,
    Experts,
    names_of,
    read_by_readout,
)
from varnn.model.fitted import Fitted
from varnn.model.prediction import predict_chunks

LATEST = 20_000  # training rows that gains are learnt from, and validation rows that first weights are
_EVIDENCE = 100.0  # independent rows that validation rows count as, at most: models were chosen on them
_ROWS_EACH = 4.0  # of which each takes so many
_NEGLIGIBLE = 1e-12  # of the size of what a regressor is made of: a deviation that may be rounding
_UNIFORM = 0.05  # of the first weights is the same for all: validation rows do not know everything


def learn_experts(
    fitted: Fitted,
    training: Panel,
    validation: Panel | None,
    forgetting: tuple[float, ...] = FORGETTING,
    *,
    boosting: bool = False,
    seed: int = 0,
) -> Fitted:
    """Let a model go on learning.

    Parameters
    ----------
    fitted : Fitted
        A model that does not.
    training, validation : Panel, Panel or None
        Rows it was trained on, and rows it was not; without any, all experts are believed alike at first.
    forgetting : tuple of float, default=(0.9999, 0.999)
        Of the readout.
    boosting : bool, default=False
        Whether to grow trees beside the network.
    seed : int, default=0
        Of the trees.
    """
    experts = _gains(fitted, training, forgetting)
    if boosting:
        experts = _with_trees(experts, grow(fitted, experts, training, validation, seed=seed))
    seen = training.latest(LATEST) if validation is None else validation.latest(LATEST)
    joined, own = preceded(seen, training, fitted.reach) if validation is not None else (seen, None)
    labels = joined.target
    known = joined.counted if own is None else own & joined.counted
    weights = None if joined.weights is None else joined.weights
    model = replace(fitted, experts=experts)
    predictions, plain, squares = np.empty(len(joined)), np.empty(len(joined)), np.zeros(len(experts.prior))
    wanted = ("linear", "output", "experts", "weights")
    for chunk in predict_chunks(model, joined, wanted=wanted, teach=own):
        rows, taps = chunk.rows, chunk.taps
        errors = (labels[rows, None] - taps.linear[:, None] - taps.experts)[known[rows]]
        with np.errstate(over="ignore"):
            here = 1.0 if weights is None else weights[rows, None][known[rows]]
            squares += (here * np.square(errors)).sum(axis=0)
        predictions[rows] = chunk.prediction
        plain[rows] = taps.linear + fitted.pipeline.scaling.restore(taps.output)
    noise = _mean_square(labels - predictions, known)
    scaled = _mean_square(labels - plain, known) / fitted.pipeline.scaling.target_scale**2
    prior = experts.prior
    if validation is not None and known.any():
        prior = (1 - _UNIFORM) * _believed(squares, int(known.sum())) + _UNIFORM * prior
    return replace(fitted, experts=_with_noise(replace(experts, prior=prior, noise=noise), scaled))


def _believed(squares: DoubleArray, rows: int) -> DoubleArray:
    """Weights by the likelihood of Gaussian errors, tempered: (K,) sums of squares -> (K,)."""
    evidence = min(rows / _ROWS_EACH, _EVIDENCE)
    tiny = np.finfo(np.float64).tiny
    ratios = np.minimum(squares, 1e300) + tiny
    weights = (ratios.min() / ratios) ** (evidence / 2)
    return np.asarray(weights / weights.sum())


def relearn_experts(fitted: Fitted, before: Fitted, rows: Panel, *, seed: int = 0) -> Fitted:
    """Take over from a model that was trained on fewer rows what it goes on learning with.

    Gains are learnt anew, and as many trees as there were are grown anew.
    """
    if before.experts is None:
        return fitted
    gains = _gains(fitted, rows, before.experts.readout.forgetting)
    if before.experts.trees is not None:
        grown = grow(fitted, gains, rows, None, seed=seed, trees=len(before.experts.trees))
        gains = _with_trees(gains, grown)
    rescaled = (before.pipeline.scaling.target_scale / fitted.pipeline.scaling.target_scale) ** 2
    experts = replace(gains, prior=before.experts.prior, noise=before.experts.noise)
    return replace(fitted, experts=_with_noise(experts, before.experts.readout.noise * rescaled))


def _gains(fitted: Fitted, training: Panel, forgetting: tuple[float, ...]) -> Experts:
    """Learn gains from the latest training rows; all experts are believed alike."""
    found = [
        chunk.taps
        for chunk in predict_chunks(fitted, training.latest(LATEST), wanted=("hidden", "regressors"))
    ]
    hidden = np.concatenate([taps.hidden for taps in found], axis=1)
    regressors = np.concatenate([taps.regressors for taps in found])
    part, linear = fitted.pipeline.linear, None
    centre, deviation, unit = np.empty(0), np.empty(0), 0.0
    season = None if part is None else part.season
    features = hidden
    if part is not None:
        centre, deviation = regressors.mean(axis=0), regressors.std(axis=0)
        deviation[deviation <= _NEGLIGIBLE * part.form.sizes(regressors)] = NEVER
        standard: DoubleArray = (regressors - centre) / deviation
        linear = Adaptation(forgetting=LINEAR_FORGETTING, gain=gain_of(standard[None]), noise=1.0)
        if standard.shape[1] <= MOST_JOINED:
            unit = float(np.sqrt(np.mean(np.square(hidden, dtype=np.float64)))) or 1.0
            features = read_by_readout(hidden, standard, unit)
    names = names_of(forgetting, linear=part is not None, season=season is not None)
    return Experts(
        readout=Adaptation(forgetting=forgetting, gain=gain_of(features), noise=1.0),
        linear=linear,
        centre=centre,
        deviation=deviation,
        unit=unit,
        season=season,
        noise=fitted.pipeline.scaling.target_scale**2,
        prior=np.full(len(names), 1 / len(names)),
    )


def _with_trees(experts: Experts, trees: Trees) -> Experts:
    """Let trees be an expert, which is believed as all others are."""
    joined = replace(experts, trees=trees)
    return replace(joined, prior=np.full(len(joined.names), 1 / len(joined.names)))


def _with_noise(experts: Experts, scaled: float) -> Experts:
    """Let experts know the variance of what is left, in scaled units."""
    linear = None if experts.linear is None else replace(experts.linear, noise=scaled)
    return replace(experts, readout=replace(experts.readout, noise=scaled), linear=linear)


def _mean_square(errors: DoubleArray, known: BoolArray) -> float:
    """Mean square of errors that are known; 1 if there are none, or they are nothing."""
    with np.errstate(over="ignore"):
        found = float(np.mean(np.square(errors[known]))) if known.any() else 1.0
    return min(found, 1e100) or 1.0
