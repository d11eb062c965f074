"""Progress bars on standard error, so that output stays clean; silent when nobody watches."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Line = dict[str, float]


@contextmanager
def training_bar(title: str, epochs: int) -> Iterator[Callable[[Line], None]]:
    """Show epochs done, the latest loss and the time left; gives the function to call each epoch."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("epochs"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[loss]}"),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(title, total=epochs, loss="")

        def on_epoch(line: Line) -> None:
            checked = line.get("validation_loss", line["loss"])
            progress.update(task, advance=1, loss=f"validation {checked:.5f}")

        yield on_epoch
        progress.update(task, completed=epochs)
