"""Lines of the history as text, while a model is fitted."""

from collections.abc import Callable

Line = dict[str, float]
_REFIT = 3  # of `varnn.fitting.Stage`, which comes with torch: losses on validation rows are those of before


def reporter(verbose: int, on_epoch: Callable[[Line], None] | None) -> Callable[[Line], None]:
    """What to call after each epoch: it prints the line, where that is asked for, and hands it on."""

    def report(line: Line) -> None:
        if verbose:
            print_epoch(line)
        if on_epoch is not None:
            on_epoch(line)

    return report


def print_epoch(line: dict[str, float]) -> None:
    """Print an epoch, as ``verbose=1`` asks for."""
    checked = f"  validation {line['validation_loss']:.6f}" if "validation_loss" in line else ""
    stage = "  refit" if line.get("stage") == _REFIT else ""
    text = (
        f"{line['progress']:4.0%}  member {int(line['member']) + 1}  epoch {int(line['epoch'])}  "
        f"loss {line['loss']:.6f}{checked}  {line['seconds']:.2f} s{stage}"
    )
    print(text, flush=True)  # noqa: T201  # it is asked for
