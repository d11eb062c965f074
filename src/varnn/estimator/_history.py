"""A line of the history -> a line of text."""


def print_epoch(line: dict[str, float]) -> None:
    """Print an epoch, as ``verbose=1`` asks for."""
    checked = f"  validation {line['validation_loss']:.6f}" if "validation_loss" in line else ""
    text = (
        f"{line['progress']:4.0%}  member {int(line['member']) + 1}  epoch {int(line['epoch'])}  "
        f"loss {line['loss']:.6f}{checked}  {line['seconds']:.2f} s"
    )
    print(text, flush=True)  # noqa: T201  # it is asked for
