"""All commands under one name, and how they end.

Exit codes: 0 good; 2 bad use or bad data, with one clear line; 130 interrupted; 1 a bug, with its
traceback, or a figure that ``reproduce --check`` did not find again. Nothing heavy is imported before a
command needs it, so that ``varnn --help`` answers at once.
"""

import os
import sys
from collections.abc import Callable
from typing import Any

import typer

from varnn.cli import (
    compare,
    datasets,
    demo,
    fit,
    forecast,
    inspect,
    monitor,
    predict,
    reproduce,
    serve,
    stream,
    terminal,
    token,
    tune,
)
from varnn.cli.flags import with_flags
from varnn.cli.terminal import console, one_line
from varnn.cli.voice import heard, speak, spoken
from varnn.errors import VarnnError

app = typer.Typer(
    name="varnn",
    help="Regression on streams that answer back: a predictor whose own recent errors are its memory.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # others show flags as settings that have a type, and leave words 18 columns of 80
)


def _add(name: str, command: Callable[..., None], in_short: str) -> None:
    """Add a command; in the list of commands it has one line, its own help says all."""
    app.command(name, short_help=in_short)(spoken(command))


_add("demo", demo.demo, "Make a stream; fit, compare, and write a report.")
_add("fit", fit.fit, "Fit a model to a table and save it.")
_add("predict", predict.predict, "Predict each row of a table from those before it.")
_add("forecast", forecast.forecast, "Forecast the rows after the end of a table.")
_add("monitor", monitor.monitor, "Say where the errors of a model changed.")
_add("stream", stream.stream, "Predict and observe live: JSON lines in and out.")
_add("serve", serve.serve, "Serve models live over HTTP, with a dashboard.")
_add("inspect", inspect.inspect, "Show what is in a model file.")
_add("compare", compare.compare, "Compare models on a table, honestly.")
_add("tune", tune.tune, "Search for settings that beat the default.")
_add("reproduce", reproduce.reproduce, "Run the paper's tables, figures and ablations.")
app.add_typer(datasets.app, name="datasets")
app.add_typer(token.app, name="token")


@app.callback(invoke_without_command=True)
def _main(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and leave."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Print results and errors only."),
    verbose: int = typer.Option(
        0, "--verbose", "-v", count=True, show_default=False, help="Say what is read, chosen and written."
    ),
) -> None:
    speak(quiet=quiet, verbose=verbose)
    if version:
        from varnn import __version__

        typer.echo(f"varnn {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


_INTERRUPTED = 130  # also where a model was saved as it was when its training was cut short
# The base of all usage errors; typer exports only its children, and may or may not bring its own click.
_BAD_USE: Any = next(one for one in typer.BadParameter.__mro__ if one.__name__ == "ClickException")


def main() -> None:
    """Run the command; the entry point of the console script."""
    run(app)


def run(command: typer.Typer) -> None:
    """Run a command line, and leave with its exit code; bad use is one line, and no traceback."""
    with heard():
        _run(command)


def _run(command: typer.Typer) -> None:
    complaints = console(stderr=True, always=True)
    try:
        code = command(standalone_mode=False)
    except (VarnnError, _BAD_USE) as error:
        said = str(error) if isinstance(error, VarnnError) else error.format_message()
        if said:  # a group asked for nothing shows its help, and that is all
            complaints.print("[red]error:[/red]", end=" ")
            complaints.print(one_line(with_flags(said, terminal.voice.flags)), markup=False)
        code = 2
    except (typer.Abort, KeyboardInterrupt):
        code = _INTERRUPTED
    except SystemExit as left:
        # The reader of our output has gone, as with `| head`; click says 1 then, which is for bugs.
        if not isinstance(left.__context__, BrokenPipeError):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is still to be flushed
        code = 0
    if code == _INTERRUPTED:  # typer turns Ctrl-C into this code
        complaints.print(terminal.voice.stopped, markup=False)
    sys.exit(code if isinstance(code, int) else 0)
