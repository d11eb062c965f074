"""The record of a search: an Optuna study, in memory or in a SQLite file that a later search goes on with.

Trials are asked for and told in one process, the one that tunes, whatever runs them: the file has one writer.
"""

from __future__ import annotations

import json
import sqlite3
import warnings
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from varnn.data.files import check_writable
from varnn.data.locks import Lock
from varnn.errors import ConfigError, DataError, require
from varnn.jobs import Failure
from varnn.scale.tuning.pruning import Curve, mean_ratio
from varnn.scale.tuning.space import Space
from varnn.scale.tuning.trial import Default, TrialResult

NAME = "varnn"  # of the study in its file
FACTS, FINALS = "varnn", "finals"  # among its attributes: what it is of, and what the best came to in the end
RANDOM = 8  # trials that are drawn at random, before what they came to is learnt from
CUT_OFF = "cut off before it was through"
_HEAD = b"SQLite format 3\x00"
_OTHER = {
    "rows": "other rows",
    "model": "a model with other settings",
    "space": "another space",
    "origins": "another number of origins",
    "test_fraction": "another test_fraction",
}


class Study:
    """Trials of a search, asked for and told one by one.

    Parameters
    ----------
    space : Space
        What may change.
    facts : mapping
        What the study is of; a file that holds one of something else is refused.
    path : Path or None
        SQLite file; None keeps it in memory.
    seed : int
        Where trials are drawn from.
    """

    def __init__(self, space: Space, facts: Mapping[str, Any], path: Path | None, seed: int) -> None:
        self.optuna = require("optuna", extra="tune", purpose="tuning")
        self.space, self.path = space, path
        self._open: dict[int, Any] = {}  # trials that were asked for and not told
        self._lock: Lock | None = None
        self._storage: Any = None
        if path is not None:
            check_writable(path)
            _refuse_foreign(path)
            self._lock = Lock(path, "Choose another study.")
        try:
            with self._silence():
                if path is not None:
                    # Opened here: in an address, a ?, % or { of a path would name another file.
                    connect = partial(sqlite3.connect, path.resolve(), check_same_thread=False)
                    self._storage = self.optuna.storages.RDBStorage(
                        "sqlite:///study", engine_kwargs={"creator": connect}
                    )
                self.study = self.optuna.create_study(
                    storage=self._storage, study_name=NAME, load_if_exists=True
                )
                self._check(facts)
                self.end_open()
                self.study.sampler = self.optuna.samplers.TPESampler(
                    n_startup_trials=RANDOM, multivariate=True, seed=seed + len(self.study.trials)
                )
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Note what was not told as cut off, and let go of the file."""
        if hasattr(self, "study"):
            self.end_open()
        if self._storage is not None:
            self._storage.remove_session()
            self._storage.engine.dispose()
        if self._lock is not None:
            self._lock.release(and_remove=True)
            self._lock = None

    def ask(self, own: Mapping[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Number and settings of the next trial; with the model's own settings, that is the default."""
        with self._silence():
            if own is not None:
                self.study.enqueue_trial(dict(own), user_attrs={"default": True})
            trial = self.study.ask(self.space.distributions)
        self._open[trial.number] = trial
        return trial.number, {} if own is not None else self.space.settings(trial.params)

    def tell(self, number: int, result: TrialResult | None, failure: Failure | None, seconds: float) -> None:
        """Take in what a trial came to."""
        trial, states = self._open.pop(number), self.optuna.trial.TrialState
        with self._silence():
            trial.set_user_attr("seconds", round(seconds, 3))
            if result is None or result.ended == "out of time":
                if failure is not None:  # else it was cut off
                    trial.set_user_attr("reason", f"{failure.kind}: {failure.message}")
                self.study.tell(trial, state=states.FAIL)
                return
            trial.set_user_attr("errors", list(result.errors))
            if trial.user_attrs.get("default"):
                trial.set_user_attr("losses", list(result.losses))
                trial.set_user_attr("calendars", [list(one) for one in result.calendars])
                self.study.tell(trial, 1.0)
                return
            for step, value in result.curve.items():
                trial.report(value, step)
            if result.ended == "behind":
                self.study.tell(trial, state=states.PRUNED)
            else:
                default = self.default
                known = result.errors if default is None else default.errors
                self.study.tell(trial, mean_ratio(result.errors, known))

    def end_open(self) -> None:
        """Note trials that nobody runs any more as cut off: time was up, or their process was killed."""
        self._open.clear()
        with self._silence():
            while self._trials("WAITING"):  # the default, before it began
                self.study.ask()
            for one in self._trials("RUNNING"):
                self.study.tell(one.number, state=self.optuna.trial.TrialState.FAIL)

    @property
    def default(self) -> Default | None:
        """What trial 0 found of the default; None before it is through."""
        for one in self._trials("COMPLETE"):
            attributes = one.user_attrs
            if attributes.get("default"):
                calendars = tuple(tuple(names) for names in attributes["calendars"])
                return Default(tuple(attributes["errors"]), tuple(attributes["losses"]), calendars)
        return None

    @property
    def finished(self) -> int:
        """Trials that came to something: through, given up, or failed by themselves."""
        cut_off = [one for one in self._trials("FAIL") if "reason" not in one.user_attrs]
        return len(self._trials("COMPLETE", "PRUNED", "FAIL")) - len(cut_off)

    def curves(self) -> list[Curve]:
        """How trials stood that went through, step by step."""
        return [dict(one.intermediate_values) for one in self._trials("COMPLETE") if one.intermediate_values]

    def best(self, count: int) -> list[Any]:
        """The best trials but the default, of those that beat it, best first."""
        better = [
            one for one in self._trials("COMPLETE") if not one.user_attrs.get("default") and one.value < 1
        ]
        found: dict[str, Any] = {}  # settings may have been tried twice
        for one in sorted(better, key=lambda one: float(one.value)):
            found.setdefault(json.dumps(one.params, sort_keys=True, default=str), one)
        return list(found.values())[:count]

    def note_finals(self, ratios: Mapping[int, float]) -> None:
        """Keep what the best trials came to when they were measured again."""
        with self._silence():
            default = {
                str(one.number): 1.0 for one in self._trials("COMPLETE") if one.user_attrs.get("default")
            }
            self.study.set_user_attr(FINALS, default | {str(one): ratio for one, ratio in ratios.items()})

    def table(self) -> list[dict[str, Any]]:
        """One line for each trial, in their order."""
        lines, finals = [], self.study.user_attrs.get(FINALS, {})
        for one in self._trials():
            state = {"COMPLETE": "through", "PRUNED": "behind", "FAIL": "failed"}.get(one.state.name, "open")
            attributes = one.user_attrs
            began, ended = one.datetime_start, one.datetime_complete
            lines.append(
                {
                    "trial": one.number,
                    "default": bool(attributes.get("default")),
                    "ended": state,
                    "ratio": one.value,
                    "final_ratio": finals.get(str(one.number)),
                    "errors": attributes.get("errors"),
                    "seconds": attributes.get("seconds"),
                    "began": None if began is None else began.isoformat(timespec="seconds"),
                    "finished": None if ended is None else ended.isoformat(timespec="seconds"),
                    "reason": attributes.get("reason", CUT_OFF if state == "failed" else None),
                    "settings": {} if attributes.get("default") else self.space.settings(one.params),
                }
            )
        return lines

    def importances(self) -> dict[str, float]:
        """Share of each setting in how trials differ, by functional analysis of variance.

        Empty where trials that went through are too few to say.

        References
        ----------
        F. Hutter, H. Hoos and K. Leyton-Brown, "An efficient approach for assessing hyperparameter
        importance", ICML 2014.
        """
        if len(self._trials("COMPLETE")) < RANDOM:
            return {}
        with self._silence():
            evaluator = self.optuna.importance.FanovaImportanceEvaluator(seed=0)
            found = self.optuna.importance.get_param_importances(self.study, evaluator=evaluator)
        return {name: float(value) for name, value in found.items()}

    def _trials(self, *states: str) -> list[Any]:
        kinds = self.optuna.trial.TrialState
        wanted = tuple(getattr(kinds, one) for one in states) or None
        return list(self.study.get_trials(deepcopy=False, states=wanted))

    def _check(self, facts: Mapping[str, Any]) -> None:
        """Refuse a study of something else."""
        held = self.study.user_attrs.get(FACTS)
        mine = json.loads(json.dumps(dict(facts)))
        if held is None and not self.study.trials:
            self.study.set_user_attr(FACTS, mine)
            return
        other = [words for name, words in _OTHER.items() if (held or {}).get(name) != mine.get(name)]
        if other:
            raise ConfigError(
                f"a study goes on with what it was begun with; {str(self.path)!r} is of "
                f"{' and '.join(other)}. Give another file, or what it was begun with."
            )

    @contextmanager
    def _silence(self) -> Iterator[None]:
        """Keep what Optuna says to itself, and leave its loudness as it was."""
        before = self.optuna.logging.get_verbosity()
        self.optuna.logging.set_verbosity(self.optuna.logging.ERROR)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield
        finally:
            self.optuna.logging.set_verbosity(before)


def _refuse_foreign(path: Path) -> None:
    """Refuse a file that is no study: tables would be made in it."""
    if not path.exists() or not path.stat().st_size:
        return
    with path.open("rb") as file:
        is_database = file.read(len(_HEAD)) == _HEAD
    tables: set[str] = set()
    if is_database:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            try:
                tables = {one for (one,) in database.execute("SELECT name FROM sqlite_master")}
            except sqlite3.Error as error:
                raise DataError(
                    f"the study {str(path)!r} cannot be read: {error}. Give another file."
                ) from None
    if not is_database or (tables and "studies" not in tables):
        raise DataError(
            f"study must be a SQLite file of an earlier search, or one that is not there yet; {str(path)!r} "
            "is something else. Give another file."
        )
