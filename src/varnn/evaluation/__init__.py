"""Models + panel -> scores: protocols cut the rows, models are fitted alike, metrics compare them."""

from varnn.evaluation import metrics
from varnn.evaluation.backtesting import Backtest, backtest
from varnn.evaluation.comparison import (
    DETERMINISTIC,
    Model,
    check_models,
    compare,
    make_model,
    predict_scored_rows,
)
from varnn.evaluation.importance import Importance, importance
from varnn.evaluation.protocols import PAPER_WINDOW, Parts, ProtocolName, checked, cut, rolling
from varnn.evaluation.scorers import OneStepScorer, one_step_scorer
from varnn.evaluation.scores import Comparison, Score

__all__ = [
    "DETERMINISTIC",
    "PAPER_WINDOW",
    "Backtest",
    "Comparison",
    "Importance",
    "Model",
    "OneStepScorer",
    "Parts",
    "ProtocolName",
    "Score",
    "backtest",
    "check_models",
    "checked",
    "compare",
    "cut",
    "importance",
    "make_model",
    "metrics",
    "one_step_scorer",
    "predict_scored_rows",
    "rolling",
]
