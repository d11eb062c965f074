"""The connectors that were asked for, started together, and ended together."""

import os
import sys
from collections.abc import Callable
from typing import Protocol

from varnn.errors import require
from varnn.service.connectors.influx import InfluxConnector
from varnn.service.connectors.settings import InfluxSettings, MqttSettings
from varnn.service.service import Service


class Connector(Protocol):
    """What can be started, and ended."""

    def start(self) -> None:
        """Begin."""

    def close(self) -> None:
        """Finish what is in hand, and end."""


def start(
    service: Service,
    *,
    mqtt: MqttSettings | None = None,
    influx: InfluxSettings | None = None,
    on_end: Callable[[], None] = lambda: None,
) -> Callable[[], None]:
    """Start connectors; give what ends them, to be called before the service is closed.

    Parameters
    ----------
    service : Service
        What they speak to.
    mqtt : MqttSettings or None, default=None
        Where the MQTT broker is; None for no MQTT.
    influx : InfluxSettings or None, default=None
        Which lines of standard input are rows; None to leave standard input and output alone.
    on_end : callable, default=does nothing
        Called, in a thread, when standard input ends: whoever sent lines wants no more.

    Returns
    -------
    callable
        What ends them.

    Examples
    --------
    >>> import tempfile
    >>> with Service(tempfile.mkdtemp()) as service:
    ...     close = start(service)                   # none was asked for
    ...     close()
    """
    connectors: list[Connector] = []
    if mqtt is not None:
        require("paho.mqtt.client", extra="mqtt", purpose="speaking MQTT")
        from varnn.service.connectors.mqtt import MqttConnector

        connectors.append(MqttConnector(service, mqtt))
    if influx is not None:
        sink = os.fdopen(_own_output(), "wb")
        connectors.append(InfluxConnector(service, influx, sys.stdin.buffer, sink, on_end))
    for one in connectors:  # once none of them can be wrong
        one.start()

    def close() -> None:
        for one in connectors:
            one.close()

    return close


def _own_output() -> int:
    """Standard output for us alone: what others print would be taken for a line, and goes to the log."""
    sys.stdout.flush()
    ours = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return ours
