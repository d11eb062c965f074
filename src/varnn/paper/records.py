"""Outcomes <-> CSV: one line per job, and one line per epoch of every job that has a learning curve.

The first file is what ``varnn reproduce --check`` compares a fresh run with, so its figures are kept to
the last bit and its settings with their types.
"""

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from varnn.errors import ConfigError, DataError
from varnn.paper.jobs import Job, Outcome
from varnn.paper.plan import PROTOCOLS

MADE = ("machine", "python", "torch", "numpy", "scikit-learn", "numba", "lightgbm", "date")  # of provenance()
_JOB = ("dataset", "protocol", "model", "settings", "split", "seed")
_COLUMNS = (*_JOB, "train", "test", "seconds", "epochs_run", "best_epoch", *MADE)
_CURVE = (*_JOB, "epoch", "training_loss", "validation_loss")
_SETTING = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|[^";=]*)(?:; |$)')
_PLAIN = re.compile(r"[\w.+-]+")  # texts that need no quotes

Value = TypeVar("Value")


@dataclass(frozen=True)
class Record:
    """What a file keeps of an outcome: all but its squared errors and its learning curve.

    ``made`` has the entries of `MADE`, empty where they are not known.
    """

    train: float
    test: float
    seconds: float
    epochs_run: int | None  # None where there is no learning curve
    best_epoch: int | None
    made: dict[str, str]


def outcomes_csv(outcomes: Mapping[Job, Outcome]) -> str:
    """Write one line per job, sorted by job: its figures to the last bit, and what made them.

    Examples
    --------
    >>> from varnn.paper.jobs import job
    >>> arx = job("appliances", "paper", "arx-lr", lags="correct")
    >>> print(outcomes_csv({arx: Outcome(train=0.004, test=0.0031875, seconds=0.1)}).splitlines()[1])
    appliances,paper,arx-lr,lags=correct,2025,2025,0.004,0.0031875,0.1,,,,,,,,,,
    """
    return _csv(_COLUMNS, ([*_job_cells(job), *_figures(outcomes[job])] for job in _sorted(outcomes)))


def epochs_csv(outcomes: Mapping[Job, Outcome]) -> str:
    """Write one line per epoch of every job that has a learning curve; losses in 7 significant digits.

    Examples
    --------
    >>> from varnn.paper.jobs import job
    >>> curve = [[1, 0.0123456789, 0.01], [2, 0.009, 0.008]]
    >>> rm = job("appliances", "paper", "RM")
    >>> print(epochs_csv({rm: Outcome(0.1, 0.1, 1.0, curve)}).splitlines()[1])
    appliances,paper,RM,,2025,2025,1,0.01234568,0.01
    """
    return _csv(
        _CURVE,
        (
            [*_job_cells(job), int(epoch), f"{loss:.7g}", f"{validation:.7g}"]
            for job in _sorted(outcomes)
            for epoch, loss, validation in outcomes[job].epochs
        ),
    )


def read_outcomes(path: Path) -> dict[Job, Record]:
    """Read what `outcomes_csv` wrote.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    dict of Job to Record
        In the order of the file.
    """
    found: dict[Job, Record] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = csv.reader(file, strict=True)
            _check_header(path, next(lines, []))
            for cells in lines:
                where = f"{path}, line {lines.line_num}"
                job, record = _read(where, cells)
                if job in found:
                    raise DataError(f"every job must stand once; {where}: {job} is there twice. {_AGAIN}")
                found[job] = record
    except OSError as error:
        raise DataError(f"{path} must be a file that can be read: {error.strerror}. Name another.") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path} must be text in UTF-8; byte {error.start} is not. {_AGAIN}") from None
    except csv.Error as error:
        raise DataError(f"{path}, line {lines.line_num} must be CSV: {error}. {_AGAIN}") from None
    return found


_AGAIN = "Write the file anew with varnn reproduce --finished."


def settings_text(settings: Iterable[tuple[str, Any]]) -> str:
    """Write settings as ``name=value; name=value``; a text that would read as another type has quotes.

    Examples
    --------
    >>> settings_text([("lags", "correct"), ("trees", 20)]), settings_text([("tag", "20")])
    ('lags=correct; trees=20', 'tag="20"')
    """
    return "; ".join(f"{name}={_value_text(name, value)}" for name, value in settings)


def read_settings(text: str) -> tuple[tuple[str, Any], ...]:
    """Read what `settings_text` wrote, with the type of each value.

    Examples
    --------
    >>> read_settings("fair=True; learning_rate=0.001; memory_size=16")
    (('fair', True), ('learning_rate', 0.001), ('memory_size', 16))
    """
    found: list[tuple[str, Any]] = []
    at = 0
    while at < len(text):
        part = _SETTING.match(text, at)
        if part is None:
            raise ValueError(f"settings must read name=value; name=value, and have {text!r}")
        name, value = part.groups()
        found.append((name, json.loads(value) if value.startswith('"') else _typed(value)))
        at = part.end()
    return tuple(found)


def _value_text(name: str, value: Any) -> str:
    if isinstance(value, bool | int):
        return str(value)
    if isinstance(value, float):
        return repr(float(value))
    if not isinstance(value, str):
        raise ConfigError(
            f"a setting of a job must be a number, a truth value or a text; {name!r} is {value!r}."
        )
    unchanged = _PLAIN.fullmatch(value) and isinstance(_typed(value), str)
    return value if unchanged else json.dumps(value)


def _typed(text: str) -> bool | int | float | str:
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _sorted(outcomes: Mapping[Job, Outcome]) -> list[Job]:
    return sorted(
        outcomes,
        key=lambda one: (
            one.dataset,
            one.protocol,
            one.model,
            settings_text(one.settings),
            one.split,
            one.seed,
        ),
    )


def _job_cells(job: Job) -> list[Any]:
    return [job.dataset, job.protocol, job.model, settings_text(job.settings), job.split, job.seed]


def _figures(outcome: Outcome) -> list[Any]:
    curve = outcome.epochs
    best = int(min(curve, key=lambda line: line[2])[0]) if curve else ""
    numbers = [repr(float(one)) for one in (outcome.train, outcome.test, outcome.seconds)]
    return [*numbers, len(curve) or "", best, *(outcome.made.get(name, "") for name in MADE)]


def _csv(columns: Iterable[str], lines: Iterable[list[Any]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(lines)
    return buffer.getvalue()


def _check_header(path: Path, names: list[str]) -> None:
    if tuple(names) != _COLUMNS:
        raise DataError(
            f"{path}, line 1 must name the columns {', '.join(_COLUMNS)}; it has "
            f"{', '.join(names) or 'none'}. Name a file that varnn reproduce wrote."
        )


def _read(where: str, cells: list[str]) -> tuple[Job, Record]:
    if len(cells) != len(_COLUMNS):
        raise DataError(f"{where} must have {len(_COLUMNS)} cells; it has {len(cells)}. {_AGAIN}")
    line = dict(zip(_COLUMNS, cells, strict=True))

    def cell(name: str, read: Callable[[str], Value]) -> Value:
        try:
            return read(line[name])
        except ValueError as error:
            raise DataError(f"{where}: {name} cannot be read: {error}. {_AGAIN}") from None

    job = Job(
        dataset=cell("dataset", _not_empty),
        protocol=cell("protocol", _protocol),
        model=cell("model", _not_empty),
        seed=cell("seed", int),
        settings=cell("settings", read_settings),
        split=cell("split", int),
    )
    record = Record(
        train=cell("train", _finite),
        test=cell("test", _finite),
        seconds=cell("seconds", _finite),
        epochs_run=cell("epochs_run", _int_or_none),
        best_epoch=cell("best_epoch", _int_or_none),
        made={name: line[name] for name in MADE},
    )
    return job, record


def _not_empty(text: str) -> str:
    if not text:
        raise ValueError("it is empty")
    return text


def _protocol(text: str) -> Any:
    if text not in PROTOCOLS:
        raise ValueError(f"it must be one of {', '.join(PROTOCOLS)}, and is {text!r}")
    return text


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"it must be finite, and is {text!r}")
    return value


def _int_or_none(text: str) -> int | None:
    return int(text) if text else None
