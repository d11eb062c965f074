"""Progress bars on standard error, so that output stays clean; silent when nobody watches.

What is said while a bar is shown goes above it: `varnn.cli.terminal.console` knows where the bar is.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from varnn.cli import terminal
from varnn.cli._remaining import FitsLeft, Remaining, in_words, stage_in_words
from varnn.cli.terminal import console

if TYPE_CHECKING:
    from threading import Event

    from rich.progress import Progress, ProgressColumn, TaskID

    from varnn.paper.jobs import Job, Outcome
    from varnn.scale.tuning.search import Step

Line = dict[str, float]
_LONGEST = 90  # characters beside a bar


@contextmanager
def training_bar(
    title: str, stop: "Event | None" = None, *, members: int = 1
) -> Iterator[Callable[[Line], None]]:
    """Show the stage, how much is done and the time left; gives the function to call each epoch.

    Parameters
    ----------
    title : str
        What is trained, for a bar that has nothing else to say yet.
    stop : Event or None, default=None
        Set where training is cut short: the bar then stays where it was.
    """
    with _timed_bar() as progress:
        task, remaining = progress.add_task(f"{title}: preparing", total=None, left="", note=""), Remaining()

        def on_epoch(line: Line) -> None:
            if line["epoch"] > 1:  # the first may have loaded code: nothing can be told from it
                remaining.update(line["seconds_left"])
            checked = line.get("validation_loss", line["loss"])
            progress.update(
                task,
                description=f"{title}: {stage_in_words(line)}",
                total=1.0,
                completed=remaining.share(),
                left=remaining,
                note=f"validation {checked:.4g}",
            )

        yield on_epoch
        if stop is None or not stop.is_set():
            said = f"{title} took {in_words(remaining.elapsed())}"
            progress.update(task, description=said, total=1.0, completed=1.0, left="done", note="")


class Fits:
    """What to call while several models are fitted, one after the other or side by side."""

    def __init__(self, names: Sequence[str], show: Callable[[str, int, FitsLeft | str, str], None]) -> None:
        self._left, self._count, self._show = FitsLeft(names), len(names), show
        self._tell("")

    @property
    def so_far(self) -> str:
        """How many are done, in words."""
        return f"{len(self._left.seconds)} of {self._count} fits"

    def done(self, name: str, seconds: float, note: str = "") -> None:
        """Take in a fit that is done."""
        self._left.done(name, seconds)
        self._tell(note)

    def epoch(self, line: Line) -> None:
        """Take in an epoch of the fit under way."""
        if line["epoch"] > 1:
            self._left.under_way(line["seconds_left"])
        self._tell(stage_in_words(line))

    def _tell(self, note: str) -> None:
        done = len(self._left.seconds)
        if done == self._count:
            spent = in_words(self._left.shown.elapsed())
            self._show(f"{done} {'fit' if done == 1 else 'fits'} took {spent}", done, "done", "")
        else:
            self._show(f"{done} of {self._count}, fitting {self._left.next}", done, self._left, note)


@contextmanager
def fits_bar(names: Sequence[str]) -> Iterator[Fits]:
    """Show fits done, the one under way and the time left; gives what to call after each fit and epoch.

    Parameters
    ----------
    names : sequence of str
        The model of each fit that is to be made, in order.
    """
    with _timed_bar() as progress:
        task = progress.add_task("fitting", total=len(names), left="", note="")

        def show(said: str, done: int, left: FitsLeft | str, note: str) -> None:
            progress.update(task, description=said, completed=done, left=left, note=note)

        yield Fits(names, show)


@contextmanager
def jobs_bar(total: int) -> "Iterator[Callable[[Job, Outcome], None]]":
    """Show jobs done, the latest one and the time left; gives the function to call after each job."""
    with counting_bar() as progress:
        task = progress.add_task("starting", total=total)

        def on_done(job: "Job", outcome: "Outcome") -> None:
            progress.update(task, advance=1, description=f"{job}: test {outcome.test:.6f}")

        yield on_done


@contextmanager
def backtest_bar() -> "Iterator[Callable[[int, int], None]]":
    """Show fits of a backtest done, and the time left; gives the function to call after each fit."""
    with counting_bar() as progress:
        task = progress.add_task("fitting", total=None)

        def on_fit(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        yield on_fit


@contextmanager
def tuning_bar() -> "Iterator[Callable[[Step], None]]":
    """Show trials done, the latest one and the time left; then what comes after them, each with a bar."""
    with counting_bar() as progress:
        tasks: dict[str, TaskID] = {}

        def on_step(step: "Step") -> None:
            if step.stage not in tasks:
                tasks[step.stage] = progress.add_task(step.words, total=step.total)
            progress.update(
                tasks[step.stage], completed=step.done, total=step.total, description=step.words[:_LONGEST]
            )

        yield on_step


@contextmanager
def counting_bar() -> "Iterator[Progress]":
    """Show a bar that counts what is done, with the time left and the latest in words."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

    columns = (
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
        TextColumn("{task.description}", markup=False),
    )
    with _shown(*columns) as progress:
        yield progress


@contextmanager
def _timed_bar() -> "Iterator[Progress]":
    """Show a bar whose time left is told to it, and counts down between two epochs."""
    from rich.progress import BarColumn, TextColumn
    from rich.table import Column

    columns = (
        BarColumn(bar_width=20),
        TextColumn("{task.fields[left]}", markup=False, table_column=Column(min_width=9)),
        TextColumn("{task.description}", markup=False),
        TextColumn("{task.fields[note]}", markup=False, style="dim"),
    )
    with _shown(*columns) as progress:
        yield progress


@contextmanager
def _shown(*columns: "ProgressColumn") -> "Iterator[Progress]":
    """Show a bar, where somebody watches; until it is gone, all words on standard error go above it."""
    from rich.progress import Progress

    watched = console(stderr=True)
    hidden = not watched.is_terminal or terminal.voice.quiet
    before = terminal.voice.bar
    with Progress(*columns, console=watched, disable=hidden, get_time=time.monotonic) as progress:
        terminal.voice.bar = None if hidden else watched
        try:
            yield progress
        finally:
            terminal.voice.bar = before
