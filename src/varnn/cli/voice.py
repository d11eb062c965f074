"""How much a command says, and where warnings go: --quiet, --verbose, and the handler of log records.

Results are on standard output whatever is asked for here. What else there is to say goes to standard error:
with ``--quiet`` nothing, with ``--verbose`` also what was read and chosen and how long it took. A warning is
one line, said once, above any bar that is shown.
"""

import inspect
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Annotated, Any, TextIO

import typer

from varnn.cli import terminal
from varnn.cli.flags import flags_of

_QUIET = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print results and errors only: no words, no bars, no warnings.")
]
_VERBOSE = Annotated[
    int,
    typer.Option(
        "--verbose",
        "-v",
        count=True,
        show_default=False,
        help="Say what is read, chosen and written, and how long it takes; twice: still more.",
    ),
]
_LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)
_LONGEST = 500  # characters of a warning
_OURS = "varnn"


def spoken(command: Callable[..., None]) -> Callable[..., None]:
    """Add --quiet and --verbose to a command.

    Examples
    --------
    >>> def greet(name: str = "you") -> None:
    ...     print(f"hello {name}")
    >>> list(inspect.signature(spoken(greet)).parameters)
    ['name', 'quiet', 'verbose']
    >>> spoken(greet)(name="all", quiet=False, verbose=0)
    hello all
    """
    own = inspect.signature(command, eval_str=True)

    @wraps(command)
    def run(*given: Any, quiet: bool = False, verbose: int = 0, **named: Any) -> None:
        if quiet or verbose:  # else what stands before the command's name holds
            speak(quiet=quiet, verbose=verbose)
        terminal.voice.flags = flags_of(own)
        command(*given, **named)

    added = [
        inspect.Parameter("quiet", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=_QUIET),
        inspect.Parameter("verbose", inspect.Parameter.KEYWORD_ONLY, default=0, annotation=_VERBOSE),
    ]
    extended: Any = run
    extended.__signature__ = own.replace(parameters=[*own.parameters.values(), *added])
    extended.__annotations__ = {**command.__annotations__, "quiet": _QUIET, "verbose": _VERBOSE}
    return run


def speak(*, quiet: bool, verbose: int) -> None:
    """Say so much from here on."""
    terminal.voice.quiet = quiet
    terminal.voice.verbose = verbose
    level = logging.ERROR if quiet else _LEVELS[min(verbose, len(_LEVELS) - 1)]
    logging.getLogger(_OURS).setLevel(level)


@contextmanager
def heard() -> Iterator[None]:
    """Print log records and warnings in one line each, once, as long as a command runs."""
    root, ours = logging.getLogger(), logging.getLogger(_OURS)
    handler, level, show = _Handler(), ours.level, warnings.showwarning
    before = terminal.voice
    terminal.voice = terminal.Voice()
    # On the root, not on our own: who fits a thousand models keeps our logger from handing on.
    root.addHandler(handler)
    warnings.showwarning = _shown
    try:
        yield
    finally:
        root.removeHandler(handler)
        ours.setLevel(level)
        warnings.showwarning = show
        terminal.voice = before


class _Handler(logging.Handler):
    """Prints records on standard error, each text once."""

    def __init__(self) -> None:
        super().__init__()
        self.said: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record, unless it was printed before, or is not ours and no warning."""
        ours = record.name.split(".")[0] == _OURS
        if terminal.voice.quiet or not (ours or record.levelno >= logging.WARNING):
            return
        text = terminal.one_line(record.getMessage())[:_LONGEST]
        if text not in self.said:
            self.said.add(text)
            from rich.text import Text  # late, as all that only words need

            warned = record.levelno >= logging.WARNING
            # In one piece: a bar would be drawn between two.
            said = Text.assemble(("note:", "yellow"), " ", text) if warned else Text(text, style="dim")
            terminal.console(stderr=True).print(said)


def _shown(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Hand a warning of another library to the handler, without the lines of code around it."""
    logging.getLogger(_OURS).warning("%s (%s)", message, category.__name__)
