"""What can go wrong, as one small tree.

::

    VarnnError
    ├── DataError        (ValueError)    the rows, columns or values given cannot be used
    │   └── RowError                     one row is at fault, which a file's reader knows by its line
    ├── ConfigError      (ValueError)    a setting is out of range, or two of them contradict
    ├── TrainingError    (RuntimeError)  training could not go on, as of a loss that is not finite
    ├── NotFittedError   (ValueError, AttributeError)  a model is asked for what only a fitted one has; also
    │                                    scikit-learn's error of that name, wherever that is loaded
    ├── ModelFileError   (ValueError)    a .varnn file or a snapshot is damaged, foreign or too new
    ├── OutputError      (OSError)       a file cannot be written
    ├── ThreadError      (RuntimeError)  two threads use one stream at the same time
    ├── WorkerError      (RuntimeError)  processes or machines that are to do the work cannot
    └── MissingExtraError (ImportError)  an optional package is needed and not installed

Every message says what must hold, what came, and what to do. The command turns these into one line
and exit code 2; anything else is a bug and keeps its traceback.
"""

import difflib
import importlib
import importlib.util
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple


class VarnnError(Exception):
    """Base of every error this library raises on purpose."""


class DataError(VarnnError, ValueError):
    """The rows, columns or values given cannot be used."""


class RowError(DataError):
    """One row is at fault.

    Parameters
    ----------
    message : str
        The message, with ``{where}`` where the row is named.
    row : int
        The row, counted from 0.
    where : str or None, default=None
        What to call it: those who read a file know its line.

    Examples
    --------
    >>> str(RowError("{where} is empty", row=3))
    'row 3 is empty'
    >>> str(RowError("{where} is empty", row=3).at("line 5"))
    'line 5 is empty'
    """

    def __init__(self, message: str, *, row: int, where: str | None = None) -> None:
        self.message, self.row = message, row
        super().__init__(message.replace("{where}", where or f"row {row}"))

    def at(self, where: str) -> "RowError":
        """The same error with another name for the row."""
        return RowError(self.message, row=self.row, where=where)

    def __reduce__(self) -> tuple[Any, ...]:
        """Keep what an exception's own way to be copied does not know of."""
        return _row_error, (self.message, self.row, str(self))


def _row_error(message: str, row: int, said: str) -> RowError:
    error = RowError(message, row=row)
    error.args = (said,)
    return error


class ConfigError(VarnnError, ValueError):
    """A setting is out of range, or two settings contradict each other."""


class TrainingError(VarnnError, RuntimeError):
    """Training could not go on."""


class NotFittedError(VarnnError, ValueError, AttributeError):
    """A model is asked for what only a fitted one has.

    It is an instance of scikit-learn's ``NotFittedError`` too, if that is loaded: who catches that has it.

    Examples
    --------
    >>> from sklearn.exceptions import NotFittedError as Theirs
    >>> isinstance(NotFittedError("Call fit first."), Theirs)
    True
    """

    def __new__(cls, *arguments: object) -> "NotFittedError":
        """Make an error that is scikit-learn's too, where there is one."""
        theirs = getattr(sys.modules.get("sklearn.exceptions"), "NotFittedError", None)
        return super().__new__(cls if theirs is None else _also(theirs), *arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        """Be copied by the name that is there in every process, with scikit-learn or without."""
        return NotFittedError, self.args


def _also(theirs: type[Exception]) -> type[NotFittedError]:
    """The error of both libraries, made once."""
    for one in NotFittedError.__subclasses__():
        if issubclass(one, theirs):
            return one
    return type("NotFittedError", (NotFittedError, theirs), {"__module__": NotFittedError.__module__})


class ModelFileError(VarnnError, ValueError):
    """A model file or a snapshot is damaged, foreign or too new."""


class OutputError(VarnnError, OSError):
    """A file cannot be written."""


class ThreadError(VarnnError, RuntimeError):
    """Two threads use one stream at the same time."""


class WorkerError(VarnnError, RuntimeError):
    """Processes or machines that are to do the work cannot."""


class Need(NamedTuple):
    """An optional package, the extra of this library that brings it, and what it is for: "... needs"."""

    module: str
    extra: str
    purpose: str

    @property
    def package(self) -> str:
        """What to install, which is not always what is imported."""
        name = self.module.split(".")[0]
        return _PROJECTS.get(name, name)


_PROJECTS = {"paho": "paho-mqtt", "sklearn": "scikit-learn"}


class MissingExtraError(VarnnError, ImportError):
    """An optional package is needed and not installed.

    Parameters
    ----------
    message : str
        What is needed, and how to get it.
    needs : sequence of Need, default=()
        The same for programs.
    """

    def __init__(self, message: str, needs: Sequence[Need] = ()) -> None:
        super().__init__(message)
        self.needs = tuple(needs)


def require(module: str, extra: str, purpose: str) -> ModuleType:
    """Import an optional package, or say how to get it. Ask before the work that needs it, not after.

    Parameters
    ----------
    module : str
        Name to import, such as ``"torch"``.
    extra : str
        The extra of this library that installs it.
    purpose : str
        What the package is needed for, in words that finish "... needs".

    Examples
    --------
    >>> require("json", extra="files", purpose="reading JSON").__name__
    'json'
    """
    return require_all([Need(module, extra, purpose)])[0]


def require_all(needs: Iterable[Need]) -> list[ModuleType]:
    """Import optional packages, or name all that are not there, and one line that installs them.

    Examples
    --------
    >>> needs = [Need("json", "files", "reading"), Need("csv", "files", "writing")]
    >>> [one.__name__ for one in require_all(needs)]
    ['json', 'csv']
    """
    found, missing = [], []
    for need in needs:
        try:
            found.append(importlib.import_module(need.module))
        except ModuleNotFoundError as error:
            if error.name is not None and error.name.split(".")[0] != need.module.split(".")[0]:
                raise  # the package is there, but broken: that is not ours to explain
            missing.append(need)
    if missing:
        raise _missing(missing)
    return found


def ask_all(checks: Iterable[Callable[[], object]]) -> None:
    """Call what asks for packages, each of them, and say in one error what all of them miss.

    Examples
    --------
    >>> ask_all([lambda: require("json", extra="files", purpose="reading JSON")])
    """
    needs: list[Need] = []
    for check in checks:
        try:
            check()
        except MissingExtraError as error:
            if not error.needs:
                raise
            needs += error.needs
    if needs:
        raise _missing(needs)


def _missing(needs: Sequence[Need]) -> MissingExtraError:
    """Say what is missing, each package once, by what it is for."""
    once = list({one.package: one for one in reversed(needs)}.values())[::-1]
    purposes: dict[str, list[str]] = {}
    for one in once:
        purposes.setdefault(one.purpose, []).append(repr(one.package))
    (purpose, first), *rest = purposes.items()
    several = "s" * (len(first) > 1)
    said = [f"{purpose} needs the package{several} {' and '.join(first)}"]
    said += [f"{purpose} {' and '.join(packages)}" for purpose, packages in rest]
    are, it = ("is", "it") if len(once) == 1 else ("are", "them")
    extras = list(dict.fromkeys(one.extra for one in once))
    line = _install_command(extras, [one.package for one in once])
    return MissingExtraError(f"{', '.join(said)}, which {are} not installed. Install {it} with: {line}", once)


def _install_command(extras: Sequence[str], packages: Sequence[str]) -> str:
    """A line that brings extras into the environment that runs now, however this library came into it."""
    from importlib import metadata  # late, as shutil below: an import of this library is to be light

    here, listed = Path(__file__).resolve(), ",".join(extras)
    clone = here.parents[2]
    if here.parents[1].name == "src" and (clone / "pyproject.toml").is_file():
        return f"{_installer()} -e {shlex.quote(f'{clone}[{listed}]')}"
    try:
        metadata.distribution("varnn")
    except metadata.PackageNotFoundError:  # copied there: pip would look for another varnn
        return f"{_installer()} {' '.join(packages)}"
    return f"{_installer()} 'varnn[{listed}]'"


def _installer() -> str:
    """``pip install`` for this very interpreter: a plain ``pip`` may belong to another one."""
    from shutil import which

    python = shlex.quote(sys.executable)
    if importlib.util.find_spec("pip") is None:  # as in environments that uv makes
        return f"uv pip install --python {python}"
    beside = which("pip")
    if beside is not None and Path(beside).parent == Path(sys.executable).parent:
        return "pip install"
    return f"{python} -m pip install"


def nearest(name: str, names: Iterable[str]) -> str:
    """A hint for a misspelt name, ready to end a message with.

    Examples
    --------
    >>> nearest("Aplliances", ["Appliances", "lights"])
    "Did you mean 'Appliances'? There are: 'Appliances', 'lights'."
    """
    known = list(names)
    close = difflib.get_close_matches(name, known, n=1)
    listed = ", ".join(repr(one) for one in known[:20]) + (", ..." if len(known) > 20 else "")
    hint = f"Did you mean {close[0]!r}? " if close else ""
    return f"{hint}There are: {listed}."


def check_choice(name: str, value: object, allowed: Sequence[str]) -> None:
    """Refuse a setting that is not one of its named choices.

    Examples
    --------
    >>> check_choice("scale", "minmax", ["minmax", "standard"])
    """
    if value not in allowed:
        raise ConfigError(f"{name} must be one of {list(allowed)}; got {value!r}.")
