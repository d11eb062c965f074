"""VARNNTuner: settings searched for, and kept only where they are better on rows that no choice has seen."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np

from varnn.data.panel import Panel
from varnn.data.preparation import split_in_time
from varnn.data.rules import Rule, number, optional, shown, whole
from varnn.errors import ConfigError, require
from varnn.estimator.contract import Regressor, check_is_fitted, unfitted
from varnn.estimator.input import (
    RowSeries,
    RowTime,
    check_parameters,
    latest_rows,
    panel_of,
    seed_of,
    take_names,
)
from varnn.estimator.regressor import VARNNRegressor
from varnn.model.forecast.rows import refuse_too_far
from varnn.scale._fingerprints import fingerprint
from varnn.scale.tuning.rows import Rows
from varnn.scale.tuning.search import OnStep, Step, Workers, finals, search, tested
from varnn.scale.tuning.space import Space
from varnn.scale.tuning.study import CUT_OFF, Study
from varnn.scale.tuning.trial import Common
from varnn.scale.tuning.verdict import Verdict, beside, compared
from varnn.streaming.resume import Resume
from varnn.streaming.stream import Stream

TRIALS = 30  # where neither trials nor minutes are given
SEEDS = 3  # of each model in the verdict
TEST_FRACTION = 0.2

_RULES: dict[str, Rule] = {
    "model": optional(Rule("a VARNNRegressor", lambda one: isinstance(one, VARNNRegressor))),
    "trials": optional(whole(1)),
    "minutes": optional(number(0, above=True)),
    "origins": whole(1),
    "test_fraction": number(0, 1, above=True, below=True),
    "seeds": whole(1),
    "study": optional(Rule("a path", lambda one: isinstance(one, str | Path))),
    "workers": optional(whole(1)),
    "random_state": whole(0, 2**31 - 1),
}
_NO_PART = ("verbose", "device", "details", "random_state", "details__engine")  # in what a study is of


class VARNNTuner(Regressor):
    """Search for settings of a regressor, and keep them only if they are better by more than chance.

    The rows given to ``fit`` are cut in time. The last part is set aside for the verdict; the rest is cut at
    several origins, at each of which a trial is trained, takes its epoch and the like on the rows after, and
    is scored on those after them. The score is the squared error one step ahead over that of the model as it
    was given, the default, averaged over origins. Optuna proposes trials; those that stand behind the others
    are given up. The best few are measured again with all their members, and the best of them and the default
    are fitted from several seeds and compared, once, on the rows that were set aside. What is taken is fitted
    again on all rows.

    Parameters
    ----------
    model : VARNNRegressor or None, default=None
        The default: where the search begins, and what is kept if nothing is better. None is
        ``VARNNRegressor()``.
    trials : int or None, default=None
        Trials in all, with the default and those that the study holds; None is as many as there is time
        for, or 30 without ``minutes``.
    minutes : float or None, default=None
        Time for trials. What comes after them, a verdict of about ``2 * seeds`` fits and a last one, is not
        counted.
    origins : int, default=3
        Origins that a trial is scored at.
    test_fraction : float, default=0.2
        Last share of each series, set aside for the verdict.
    seeds : int, default=3
        Seeds of each model in the verdict. With 1, what is luck in training passes for being better.
    study : str, Path or None, default=None
        SQLite file that keeps the trials. A later ``fit`` with the same model, rows and space goes on
        with it.
    workers : int or None, default=1
        Trials at a time, each in a process of one thread; None is one a core. With 1 they run in this
        process, and on a cluster as many at a time as it has cores.
    cluster : str or None, default=None
        A Ray cluster to run trials on: "auto", or an address.
    random_state : int, default=0
        Where trials are drawn from.
    space : mapping or None, default=None
        Settings to search by name: a pair (low, high), a list of values, or a distribution of Optuna. None is
        `varnn.scale.tuning.space.default_space`.

    Attributes
    ----------
    best_ : VARNNRegressor
        Fitted on all rows; with the default's settings, where these are kept.
    kept_default_ : bool
        Whether they are.
    verdict_ : Verdict
        Why, in words (``str``) and numbers.
    trials_ : list of dict
        One line per trial: its settings, how it ended, its ``ratio`` to the default, and why it failed.
    study_ : optuna.Study
        The study, for Optuna's own tools.
    importances_ : dict
        Share of each setting in how trials differ, by fANOVA; empty where trials are too few to say.

    References
    ----------
    T. Akiba, S. Sano, T. Yanase, T. Ohta and M. Koyama, "Optuna: a next-generation hyperparameter
    optimization framework", KDD 2019.

    J. Bergstra, R. Bardenet, Y. Bengio and B. Kegl, "Algorithms for hyper-parameter optimization", NIPS 2011.

    Examples
    --------
    >>> from varnn import VARNNRegressor, datasets
    >>> panel = datasets.load("synthetic", kind="regimes", rows=600, seed=1)
    >>> quick = VARNNRegressor(ensemble=1, epochs=3, hidden_size=8)
    >>> tuner = VARNNTuner(quick, trials=3, origins=2, seeds=1, space={"window": (6, 24)}).fit(panel)
    >>> len(tuner.trials_), tuner.trials_[0]["default"], tuner.best_.predict(panel).shape
    (3, True, (600,))
    """

    def __init__(
        self,
        model: VARNNRegressor | None = None,
        *,
        trials: int | None = None,
        minutes: float | None = None,
        origins: int = 3,
        test_fraction: float = TEST_FRACTION,
        seeds: int = SEEDS,
        study: str | Path | None = None,
        workers: int | None = 1,
        cluster: str | None = None,
        random_state: int = 0,
        space: Mapping[str, Any] | None = None,
    ) -> None:
        self.model = model
        self.trials = trials
        self.minutes = minutes
        self.origins = origins
        self.test_fraction = test_fraction
        self.seeds = seeds
        self.study = study
        self.workers = workers
        self.cluster = cluster
        self.random_state = random_state
        self.space = space

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        series: RowSeries = None,
        time: RowTime = None,
        on_step: OnStep | None = None,
    ) -> VARNNTuner:
        """Search, judge, and fit what is taken on all rows.

        Ctrl-C ends it; with ``study`` what is finished by then is kept, and the next ``fit`` goes on.

        Parameters
        ----------
        X, y, series, time : Panel, table or array_like, array_like, array_like, array_like
            Rows, as those of :meth:`varnn.VARNNRegressor.fit`.
        on_step : callable or None, default=None
            Called after each trial and fit with a `varnn.scale.tuning.search.Step`.
        """
        self._check()
        for package, extra in {"optuna": "tune", "torch": "train"}.items():
            require(package, extra=extra, purpose="tuning")
        if self.cluster is not None:
            require("ray", extra="ray", purpose="tuning on a cluster")
        report = on_step or (lambda _: None)
        model = unfitted(self.model) if self.model is not None else VARNNRegressor()
        check_parameters(model)  # of which trials do not use all
        model.set_params(random_state=seed_of(model.random_state))  # one for all trials
        space = Space(model, self.space)
        draft = copy(model)
        panel = latest_rows(
            panel_of(draft, X, y, series, time, fitting=True), model.get_params()["details__max_rows"]
        )
        _refuse_too_far(panel, model)
        common = Common(model, Rows.cut(panel, self.origins, self.test_fraction), space.by_epoch)
        where = Workers(self.workers, self.cluster)
        path = None if self.study is None else Path(self.study)
        study = Study(space, self._facts(model, panel, space), path, self.random_state)
        try:
            search(
                study,
                common,
                where,
                trials=TRIALS if self.trials is None and self.minutes is None else self.trials,
                seconds=math.inf if self.minutes is None else 60 * self.minutes,
                on_step=report,
            )
            best, ratio = finals(study, common, where, report)
            settings = {} if best is None else space.settings(best.params)
            verdict = self._verdict(settings, ratio, study, common, where, report)
            taken = {} if verdict.keeps_default else settings
            table, importances = study.table(), study.importances()
        finally:
            study.close()
        report(Step("refit", 0.0, 1.0, "the model on all rows"))
        fitted = unfitted(model).set_params(**taken)
        fitted.fit(
            panel, on_epoch=lambda line: report(Step("refit", line["progress"], 1.0, "the model on all rows"))
        )
        if fitted.fitted_.training.interrupted is not None:  # half a model is not what was judged
            raise KeyboardInterrupt
        take_names(self, fitted)
        self.best_, self.verdict_, self.kept_default_ = fitted, verdict, verdict.keeps_default
        self.trials_, self.importances_, self.study_ = table, importances, study.study
        return self

    def predict(self, X: Any, y: Any = None, **options: Any) -> Any:
        """Predict as ``best_`` does; see :meth:`varnn.VARNNRegressor.predict`."""
        return self._best().predict(X, y, **options)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, **options: Any) -> float:
        """R² of the one-step predictions, as ``best_.score`` gives it."""
        return self._best().score(X, y, sample_weight, **options)

    def forecast(self, *rows: Any, **options: Any) -> Any:
        """Forecast as ``best_`` does; see :meth:`varnn.VARNNRegressor.forecast`."""
        return self._best().forecast(*rows, **options)

    def stream(self, n_series: int | None = None, *, resume: Resume = False) -> Stream:
        """Start predicting and observing one step at a time, as ``best_`` does."""
        return self._best().stream(n_series, resume=resume)

    def save(self, path: str | Path) -> None:
        """Write ``best_`` to a ``.varnn`` file; the study is no part of it."""
        self._best().save(path)

    def _best(self) -> VARNNRegressor:
        check_is_fitted(self)
        best: VARNNRegressor = self.best_
        return best

    def _check(self) -> None:
        for name, rule in _RULES.items():
            if wrong := rule.broken(name, getattr(self, name)):
                raise ConfigError(wrong)
        if self.cluster is not None and not isinstance(self.cluster, str):
            raise ConfigError(f"cluster must be 'auto', an address or None; got {shown(self.cluster)}.")

    def _facts(self, model: VARNNRegressor, panel: Panel, space: Space) -> dict[str, Any]:
        """What a study is of: with anything else its trials could not be compared."""
        settings = {name: repr(one) for name, one in model.get_params().items() if name not in _NO_PART}
        return {
            "rows": fingerprint(panel, ""),
            "model": settings,
            "space": space.described(),
            "origins": self.origins,
            "test_fraction": self.test_fraction,
        }

    def _verdict(
        self,
        settings: Mapping[str, Any],
        ratio: float,
        study: Study,
        common: Common,
        where: Workers,
        report: OnStep,
    ) -> Verdict:
        """Read the test rows, once."""
        models: dict[str, Mapping[str, Any]] = {"default": {}} | ({"tuned": settings} if settings else {})
        squares = tested([*models.values()], self.seeds, common, where, report)
        errors = {
            name: [float(np.mean(one)) for one in found] for name, found in zip(models, squares, strict=True)
        }
        lines = [line for line in study.table() if line["reason"] != CUT_OFF]
        failed = [line["reason"] for line in lines if line["ended"] == "failed"]
        ended = Counter(line["ended"] for line in lines)
        return Verdict(
            settings=dict(settings),
            validation_ratio=ratio,
            test=compared(squares[1], squares[0]) if settings else None,
            errors=errors | beside(common.rows.test),
            rows=int(common.rows.test.scored().sum()),
            trials={name: ended[name] for name in ("through", "behind", "failed")},
            failed=failed[-1] if failed else "",
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_")


def _refuse_too_far(panel: Panel, model: VARNNRegressor) -> None:
    """Refuse a horizon that the last fit could not learn: trials look at the next row alone."""
    held_out = model.validation_fraction
    refuse_too_far(split_in_time(panel, 1 - held_out, held_out)[0], model.horizon, held_out)
