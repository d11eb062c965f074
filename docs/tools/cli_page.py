"""The options of every command -> docs/reference/cli.md; run it after changing a command.

``python docs/tools/cli_page.py`` rewrites the page. It is made from the same records that ``--help`` prints
from, as tables instead of boxes, so that it looks the same whatever the width of a terminal.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from varnn.cli.app import app

PAGE = Path(__file__).parents[1] / "reference" / "cli.md"
_HEAD = """# The varnn command

<!-- Made by docs/tools/cli_page.py: change the command, not this page. -->

Results go to standard output, messages and progress bars to standard error. Exit code 0 is good; 2 is bad
use or bad data, with one line that says what to do; 1 is a bug, with its traceback, or a figure that
`varnn reproduce --check` did not find again. `NO_COLOR=1` turns colours off, and a pipe gets none anyway.

Every command takes `--quiet` (results and errors only) and `--verbose` (also what was read, chosen and
written, and how long it took), before its name or after it. From Python the same words are log records of
`varnn` at INFO: `logging.basicConfig(level=logging.INFO)` shows them.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([_HEAD, *_sections(typer.main.get_command(app), "varnn")])


def _sections(command: Any, path: str) -> Iterator[str]:
    """Describe a command, and those below it."""
    children = getattr(command, "commands", {})
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [
        one for one in command.params if one.param_type_name == "option" and one.name not in _EVERYWHERE
    ]
    words = [path, *map(_metavar, arguments)]
    words += ["COMMAND"] if children else ["[OPTIONS]"] if options else []
    yield f"## {path}\n\n{_paragraphs(command.help)}\n\n```text\n{' '.join(words)}\n```\n"
    if arguments:
        yield _table("argument", [(_metavar(one), one) for one in arguments])
    if options:
        yield _table("option", [(", ".join([*one.opts, *one.secondary_opts]), one) for one in options])
    for name, child in children.items():
        yield from _sections(child, f"{path} {name}")


_EVERYWHERE = {"help", "install_completion", "show_completion"}


def _table(kind: str, named: list[tuple[str, Any]]) -> str:
    lines = [f"| {kind} | meaning | default |", "| --- | --- | --- |"]
    for name, one in named:
        lines.append(f"| `{name}` | {one.help or ''} | {_default(one)} |")
    return "\n".join(lines) + "\n"


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    if parameter.default is None or isinstance(parameter.default, bool):
        return ""
    return f"`{parameter.default}`"


def _metavar(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())


def _paragraphs(text: str | None) -> str:
    """Undo the line breaks and the indentation of a docstring, keep its paragraphs."""
    return "\n\n".join(" ".join(one.split()) for one in (text or "").split("\n\n"))


if __name__ == "__main__":
    PAGE.write_text(page())
