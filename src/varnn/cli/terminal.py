"""Where words go: results to standard output, all else to standard error; plain text where asked for."""

import os
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


@dataclass
class Voice:
    """How much the command that runs says, where its bar is, what its flags are, and what Ctrl-C leaves."""

    quiet: bool = False
    verbose: int = 0
    bar: "Console | None" = None  # while one is shown: words go above it
    flags: dict[str, str] = field(default_factory=dict)
    stopped: str = "stopped."  # what is said after Ctrl-C


voice = Voice()  # a new one for each command that runs; see `varnn.cli.voice`


def is_plain() -> bool:
    """Tell whether the user asked for no colours."""
    return bool(os.environ.get("NO_COLOR"))


def console(*, stderr: bool = False, quiet: bool = False, always: bool = False) -> "Console":
    """Make a console: no colours in a pipe or with NO_COLOR, and no line breaks of its own in a pipe.

    What goes to standard error is silent with ``--quiet``, unless it is ``always`` to be said, as errors are.
    While a bar is shown it is the bar's console, which prints above it.
    """
    if stderr and not quiet and voice.bar is not None:
        return voice.bar
    from rich.console import Console
    from rich.text import Text

    class Printable(Console):
        """A console that shows what a terminal would take as a command; names of columns may hold such."""

        def render_str(self, text: str, **how: Any) -> Text:
            """Make a text ready to be shown."""
            return super().render_str(printable(text), **how)

    # rich itself keeps bold and italics with NO_COLOR; to who asks for plain text these are noise as well.
    return Printable(
        stderr=stderr,
        quiet=quiet or (stderr and voice.quiet and not always),
        soft_wrap=not (sys.stderr if stderr else sys.stdout).isatty(),
        highlight=False,
        emoji=False,
        color_system=None if is_plain() else "auto",
    )


def printable(message: str) -> str:
    r"""Show what a terminal would take as a command; lines stay lines.

    Examples
    --------
    >>> print(printable("a\x1b[31m\nb"))
    a\x1b[31m
    b
    """
    return "".join(one if one.isprintable() or one == "\n" else repr(one)[1:-1] for one in message)


def one_line(message: str) -> str:
    r"""Put a message on one line, without what a terminal would take as a command.

    Examples
    --------
    >>> one_line("row 3 holds 'a\x1b[31m'\nCorrect it.")
    "row 3 holds 'a?[31m' Correct it."
    """
    return "".join(one if one.isprintable() else "?" for one in " ".join(message.split()))
