"""``varnn serve``: a model as a live service, with a page to look at.

::

    varnn serve house.varnn
    curl -d '{"series": "north", "x": {"heat": 20.5}}' http://127.0.0.1:8000/v1/streams/house/step
    curl -d '{"series": "north", "y": 60.0}' http://127.0.0.1:8000/v1/streams/house/observe

Every answer to a change is on disk before it is sent, and the service goes on from there after any end.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from varnn.service.service import Service

_LIMITS, _KEEPING, _ACCESS, _CONNECTORS = "Limits", "Keeping", "Access", "Connectors"


def serve(
    models: Annotated[
        list[Path] | None,
        typer.Argument(help="Model files; each makes, or goes on with, the stream of its name."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder to keep everything in; by default NAME.service of the first model."),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; others than loopback need tokens.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 for any that is free.", min=0, max=65535)] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(help="File of tokens (varnn token); by default in the folder.", rich_help_panel=_ACCESS),
    ] = None,
    tls_cert: Annotated[
        Path | None, typer.Option(help="Certificate in PEM, to serve https.", rich_help_panel=_ACCESS)
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its key in PEM.", rich_help_panel=_ACCESS)] = None,
    level: Annotated[
        float,
        typer.Option(help="Level of the intervals given with every prediction.", rich_help_panel=_KEEPING),
    ] = 0.9,
    late: Annotated[
        int, typer.Option(help="Rows that a label may come late.", min=1, rich_help_panel=_KEEPING)
    ] = 24,
    future: Annotated[
        float,
        typer.Option(
            help="Seconds that a row may be ahead of the clock; 0 for any.", min=0, rich_help_panel=_KEEPING
        ),
    ] = 86_400.0,
    watch: Annotated[
        bool,
        typer.Option(help="Tell level shifts, changes of variance, lost coverage.", rich_help_panel=_KEEPING),
    ] = True,
    history: Annotated[
        int, typer.Option(help="Rows of history kept of each series.", min=1, rich_help_panel=_KEEPING)
    ] = 10_000,
    history_in_all: Annotated[
        int,
        typer.Option(help="Rows of history kept of all series, about.", min=1, rich_help_panel=_KEEPING),
    ] = 5_000_000,
    in_memory: Annotated[
        int,
        typer.Option(help="Series held in memory; others wait on disk.", min=1, rich_help_panel=_KEEPING),
    ] = 10_000,
    answers: Annotated[
        int,
        typer.Option(
            help="Answers kept of each series, for messages sent again.", min=1, rich_help_panel=_KEEPING
        ),
    ] = 1000,
    sync: Annotated[
        bool,
        typer.Option(
            help="Wait for the disk itself: answers then outlive a loss of power, too.",
            rich_help_panel=_KEEPING,
        ),
    ] = True,
    most_series: Annotated[
        int, typer.Option(help="Series taken by each stream.", min=1, rich_help_panel=_LIMITS)
    ] = 100_000,
    most_rows: Annotated[
        int, typer.Option(help="Messages in a request.", min=1, rich_help_panel=_LIMITS)
    ] = 10_000,
    most_bytes: Annotated[
        int, typer.Option(help="Bytes of a request.", min=1000, rich_help_panel=_LIMITS)
    ] = 8 << 20,
    rate: Annotated[
        float, typer.Option(help="Rows a second of one caller; 0 for any.", min=0, rich_help_panel=_LIMITS)
    ] = 0.0,
    queue: Annotated[
        int, typer.Option(help="Messages that may wait in a stream.", min=1, rich_help_panel=_LIMITS)
    ] = 50_000,
    mqtt: Annotated[
        str | None,
        typer.Option(help="Also speak MQTT: mqtt://user@host:port.", rich_help_panel=_CONNECTORS),
    ] = None,
    mqtt_password_file: Annotated[
        Path | None, typer.Option(help="File with the broker's password.", rich_help_panel=_CONNECTORS)
    ] = None,
    influx: Annotated[
        str | None,
        typer.Option(
            help="Also read lines of Influx from standard input, and end with it: measurement=power,...",
            rich_help_panel=_CONNECTORS,
        ),
    ] = None,
    log_format: Annotated[str, typer.Option(help="json or text.")] = "json",
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "warning",
) -> None:
    """Serve models live: predict, observe, history and a dashboard over HTTP, kept on disk."""
    from varnn.cli import _packages
    from varnn.cli.terminal import console
    from varnn.errors import ConfigError

    _packages.ask_for(service=True, mqtt=mqtt is not None)
    from varnn.service.http.access import is_own_name
    from varnn.service.http.limits import Limits
    from varnn.service.http.logs import Log
    from varnn.service.http.server import Address, run
    from varnn.service.live_stream import StreamSettings
    from varnn.service.service import Service
    from varnn.service.tokens import Tokens

    if not models and data is None:
        raise ConfigError("varnn serve needs a model file, or --data with the folder of an earlier service.")
    if not models and data is not None and not data.is_dir():
        raise ConfigError(
            f"--data {str(data)!r} is no folder of an earlier service. Name one, or a model file."
        )
    if (tls_cert is None) != (tls_key is None):
        raise ConfigError("--tls-cert and --tls-key go together; one of them is missing.")
    if not 0.5 <= level <= 0.999:
        raise ConfigError(f"--level must lie between 0.5 and 0.999; got {level}.")
    folder = data or Path(f"{(models or [Path()])[0].stem}.service")
    settings = StreamSettings(
        level=level,
        late=late,
        future=future,
        watch=watch,
        history=history,
        history_in_all=history_in_all,
        in_memory=in_memory,
        most_series=most_series,
        answers=answers,
        queue=queue,
        synchronous=sync,
    )
    limits = Limits(most_rows=most_rows, most_bytes=most_bytes, rate=rate, queue=queue)
    log = Log(form=log_format, level=log_level)
    with Service(folder, settings, models or ()) as service:
        for path in models or ():
            service.serve(path)
        tokens = Tokens(token_file or folder / "tokens.json")
        out = console(stderr=True)

        def ready(url: str) -> None:
            names = ", ".join(live.name for live in service.streams()) or "none yet"
            out.print(
                f"dashboard {url}/  (streams: {names}; kept in {folder}/; Ctrl-C ends it)", markup=False
            )

        if tls_cert is None and not is_own_name(host):
            out.print("note: without --tls-cert, or a proxy that has one, tokens can be read on their way.")
        for live in service.streams():
            live.is_warm.wait()
        run(
            service,
            tokens,
            Address(host, port, tls_cert, tls_key),
            limits=limits,
            log=log,
            ready=ready,
            beside=lambda stop: _connected(service, mqtt, mqtt_password_file, influx, stop),
        )
    out.print(f"ended; everything is kept in {folder}/", markup=False)


@contextmanager
def _connected(
    service: "Service",
    mqtt: str | None,
    password_file: Path | None,
    influx: str | None,
    stop: Callable[[], None],
) -> Iterator[None]:
    """Start the connectors that were asked for, and end them before the service is closed."""
    if mqtt is None and influx is None:
        yield
        return
    from varnn.service.connectors import InfluxSettings, MqttSettings, start

    end = start(
        service,
        mqtt=None if mqtt is None else MqttSettings.from_url(mqtt, password_file),
        influx=None if influx is None else InfluxSettings.from_text(influx),
        on_end=stop,
    )
    try:
        yield
    finally:
        end()
