"""Pages that commands write with ``--report``: checked before the work, made with a bar, named at the end."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from varnn.cli.progress import counting_bar
from varnn.errors import ConfigError

if TYPE_CHECKING:
    from varnn.report import Report

OnStep = Callable[[int, int], None]


def check_page(report: Path | None, *, refused: str = "") -> None:
    """Refuse a page that cannot be written, or one of what there is no page of, before any work."""
    from varnn.data.files import check_writable

    if report is None:
        return
    if refused:
        raise ConfigError(f"--report shows one model and its rows, and {refused}. Leave it out.")
    check_writable(report)


def write_page(report: Path | None, words: Any, make: "Callable[[OnStep], Report]") -> None:
    """Make a page and write it, if one is asked for.

    Parameters
    ----------
    report : Path or None
        File to write.
    words : Console
        Where to say so.
    make : callable
        From a function to call with how much is done to the page.
    """
    if report is None:
        return
    with counting_bar() as progress:
        task = progress.add_task("measuring which inputs matter", total=None, visible=False)

        def on_step(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total, visible=True)

        page = make(on_step)
    page.write(report)
    words.print(f"Report: {report}", markup=False)
