"""Progress bars on standard error, so that output stays clean; silent when nobody watches."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from varnn.cli.terminal import console

if TYPE_CHECKING:
    from threading import Event

    from rich.progress import Progress, TaskID

    from varnn.evaluation import Score
    from varnn.paper.jobs import Job, Outcome
    from varnn.scale.tuning.search import Step

Line = dict[str, float]
_LONGEST = 90  # characters beside a bar


@contextmanager
def training_bar(title: str, stop: "Event | None" = None) -> Iterator[Callable[[Line], None]]:
    """Show how much is trained, the latest loss and the time left; gives the function to call each epoch."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[loss]}"),
    )
    watched = console(stderr=True)
    with Progress(*columns, console=watched, disable=not watched.is_terminal) as progress:
        task = progress.add_task(title, total=1.0, loss="")

        def on_epoch(line: Line) -> None:
            checked = line.get("validation_loss", line["loss"])
            progress.update(task, completed=line["progress"], loss=f"validation {checked:.5f}")

        yield on_epoch
        if stop is None or not stop.is_set():  # else it stays where training was cut short
            progress.update(task, completed=1.0)


@contextmanager
def jobs_bar(total: int) -> "Iterator[Callable[[Job, Outcome], None]]":
    """Show jobs done, the latest one and the time left; gives the function to call after each job."""
    with counting_bar() as progress:
        task = progress.add_task("starting", total=total)

        def on_done(job: "Job", outcome: "Outcome") -> None:
            progress.update(task, advance=1, description=f"{job}: test {outcome.test:.6f}")

        yield on_done


@contextmanager
def fits_bar(total: int) -> "Iterator[Callable[[Score], None]]":
    """Show fits done, the latest one and the time left; gives the function to call after each fit."""
    with counting_bar() as progress:
        task = progress.add_task("fitting", total=total)

        def on_score(score: "Score") -> None:
            progress.update(task, advance=1, description=f"{score.model}: RMSE {score.rmse:.4g}")

        yield on_score


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


def counting_bar() -> "Progress":
    """Make a bar that counts what is done, with the time left and the latest in words."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    watched = console(stderr=True)
    return Progress(*columns, console=watched, disable=not watched.is_terminal)
