"""``varnn fit``: a table in, a model file out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from varnn.cli.options import Data, Inputs, Series, Target, Time, listed

if TYPE_CHECKING:
    from varnn.panel import Panel


def fit(
    data: Data,
    target: Target,
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write.")],
    time: Time = None,
    series: Series = None,
    inputs: Inputs = None,
    variant: Annotated[str, typer.Option(help="RM, RM+AM, ARM or ARM+AM.")] = "ARM+AM",
    window: Annotated[
        int | None, typer.Option(help="Rows one prediction sees; chosen if not given.", min=1)
    ] = None,
    hidden_size: Annotated[int, typer.Option(help="Width of the hidden layer.", min=1)] = 64,
    epochs: Annotated[int | None, typer.Option(help="Epochs to train; chosen if not given.", min=1)] = None,
    learning_rate: Annotated[float, typer.Option(help="Step size of Adam.")] = 2e-3,
    ensemble: Annotated[int, typer.Option(help="Members to average.", min=1)] = 4,
    peers: Annotated[bool, typer.Option("--peers", help="Let each series see the others.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of weights and batches.")] = 2025,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Fit a model to a table and save it."""
    from rich.console import Console

    from varnn.cli.progress import training_bar
    from varnn.errors import OutputError
    from varnn.panel import Panel
    from varnn.regressor import VARNNRegressor

    console = Console(stderr=True)
    if not output.parent.is_dir():  # found out now, not after the training
        raise OutputError(
            f"the folder {str(output.parent)!r} for the model file does not exist. Make it first."
        )
    panel = Panel.read(data, target=target, time=time, series=series, inputs=listed(inputs))
    console.print(_understood(panel))
    model = VARNNRegressor(
        variant,  # type: ignore[arg-type]  # checked by fit, with a message of its own
        window=window,
        hidden_size=hidden_size,
        epochs=epochs,
        learning_rate=learning_rate,
        ensemble=ensemble,
        peers=peers,
        random_state=seed,
        device=device,
    )
    with training_bar("training") as on_epoch:
        model.fit(panel, on_epoch=on_epoch)
    model.save(output)
    best = min(line.get("validation_loss", line["loss"]) for line in model.history_)
    console.print(f"Best validation error {best:.6f} (scaled). Saved {output}.")


def _understood(panel: "Panel") -> str:
    """Say how the table was read, so that a wrong guess is seen at once."""
    import numpy as np

    names = ", ".join(panel.input_names[:6]) + (", ..." if panel.n_inputs > 6 else "")
    gaps = np.isnan(panel.inputs).mean() if panel.n_inputs else 0.0
    ignored = f" Left out (text): {', '.join(panel.ignored)}." if panel.ignored else ""
    return (
        f"{len(panel):,} rows in {panel.n_series} series; target {panel.target_name!r} "
        f"({np.isnan(panel.target).mean():.1%} missing), {panel.n_inputs} inputs "
        f"({names}; {gaps:.1%} missing).{ignored}"
    )
