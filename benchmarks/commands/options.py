"""What the benches have in common: options, and where figures go."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from varnn.cli.terminal import console
from varnn.data.files import STANDARD, check_writable

if TYPE_CHECKING:
    from rich.console import Console

Json = Annotated[
    Path | None,
    typer.Option("--json", help="Also write the figures here; - prints them, and nothing else, as JSON."),
]
DataSets = Annotated[str | None, typer.Option(help="Data sets, separated by semicolons; default: all.")]
FitThreads = Annotated[int, typer.Option(help="Threads of a fit.", min=1)]


def picked(what: str, names: str | None, offered: Sequence[str], separator: str = ";") -> list[str]:
    """Split names (at semicolons, where some hold commas), and refuse those that are not offered."""
    from varnn.errors import check_choice

    picked = [one.strip() for one in names.split(separator)] if names else list(offered)
    for name in picked:
        check_choice(what, name, offered)
    return picked


@contextmanager
def kept_in(json_path: Path | None) -> Iterator[Path | None]:
    """File to keep figures in; of standard output it is one that is printed when all is done."""
    if json_path != STANDARD:
        if json_path is not None:
            check_writable(json_path)  # now, and not after two hours
        yield json_path
        return
    with TemporaryDirectory() as folder:
        draft = Path(folder) / "figures.json"
        yield draft
        typer.echo(draft.read_text(), nl=False)


def words_for(json_path: Path | None) -> "Console":
    """Where tables are shown: nowhere, if JSON is to be alone on standard output."""
    return console(quiet=json_path == STANDARD)
