"""Messages by MQTT: a topic for each series, answers beside it, nothing lost when either side dies.

::

    varnn/house/a/step        {"x": {...}, "time": "2026-11-16T10:00"}      in; /observe and /predict, too
    varnn/house/a/prediction  {"series": "a", "prediction": 1.5, ...}       out; /error where it was refused
    varnn/status              online, or offline                            retained

A message is acknowledged to the broker once its answer is on disk and the broker has it. Whatever dies before
that, the broker keeps the message in the session of this client and delivers it again; its ``key`` (or its
time) tells that it was taken, and it is answered as it was. Two threads work: that of the MQTT client puts
them in line, ours takes what waits there, asks the stream, publishes, acknowledges, all in the order
received. A stream that is busy is waited for; then the broker holds back what is more than ``_IN_FLIGHT``.
"""

import logging
import socket
import ssl
from itertools import groupby
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Condition, Event, Thread
from typing import Any, NamedTuple

from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from varnn.errors import ConfigError, DataError
from varnn.service.connectors._patience import ask
from varnn.service.connectors.home_assistant import announcements
from varnn.service.connectors.payloads import ACTIONS, message_of
from varnn.service.connectors.settings import MqttSettings
from varnn.service.connectors.topics import name_of_level
from varnn.service.errors import NotFound
from varnn.service.service import Service
from varnn.streaming.json_text import write

_log = logging.getLogger(__name__)
_IN_FLIGHT = 500  # messages that the broker sends before the first of them is acknowledged
_LARGEST = 1_000_000  # bytes of a message
_KEPT_FOR = 0xFFFFFFFF  # seconds that the broker keeps the session of a service that is away: for ever
_KEEPALIVE, _LONGEST_WAIT = 30, 60  # seconds: between signs of life, and between attempts to connect
_LAST_WAIT = 2.0  # seconds that the broker has to take the last answers when the service ends


class Delivery(NamedTuple):
    """A message as it was delivered."""

    session: int  # of the broker: acknowledgements count in their own alone
    number: int
    qos: int
    topic: str
    payload: bytes
    reply_to: str | None
    correlation: bytes | None


class Asked(NamedTuple):
    """A delivery that was understood: which stream is asked what."""

    delivery: Delivery
    stream: str
    pure: bool
    message: dict[str, Any]


class MqttConnector:
    """Series of a service by MQTT, from :meth:`start` to :meth:`close`.

    Parameters
    ----------
    service : Service
        Whose streams are spoken to.
    settings : MqttSettings
        Where the broker is.
    """

    def __init__(self, service: Service, settings: MqttSettings) -> None:
        self._service, self._settings = service, settings
        self._status = f"{settings.prefix}/status"
        self._waiting: SimpleQueue[Delivery | None] = SimpleQueue()
        self._pending: set[tuple[int, int]] = set()  # session and number of those not acknowledged
        self._session = 0
        self._announced: set[str] = set()
        self._published, self._confirmed = 0, 0  # messages of ours, and those of them that the broker has
        self._change = Condition()
        self._stop = Event()
        self._worker = Thread(target=self._work, name="mqtt", daemon=True)
        self._client = self._made()

    def start(self) -> None:
        """Connect, now or when the broker is there, and answer."""
        settings = self._settings
        asked = _properties(
            PacketTypes.CONNECT,
            SessionExpiryInterval=_KEPT_FOR,
            ReceiveMaximum=_IN_FLIGHT,
            MaximumPacketSize=_LARGEST,
        )
        self._client.connect_async(
            settings.host,
            settings.port_or_default,
            keepalive=_KEEPALIVE,
            clean_start=False,
            properties=asked,
        )
        self._worker.start()
        self._client.loop_start()

    def close(self) -> None:
        """Finish what is in hand, say that we are gone, and leave; what waits stays with the broker."""
        self._stop.set()
        self._waiting.put(None)
        with self._change:
            self._change.notify_all()
        self._worker.join()
        if self._client.is_connected():
            self._publish(self._status, b"offline", retain=True)
            with self._change:
                self._change.wait_for(lambda: self._confirmed >= self._published, _LAST_WAIT)
        self._client.disconnect()
        self._client.loop_stop()

    def _made(self) -> paho.Client:
        settings = self._settings
        client = paho.Client(
            CallbackAPIVersion.VERSION2, settings.client_id, protocol=paho.MQTTv5, manual_ack=True
        )
        if settings.username is not None:
            client.username_pw_set(settings.username, settings.password())
        if settings.tls:
            client.tls_set_context(_vouched_for(settings.ca_file))
        client.will_set(self._status, b"offline", qos=1, retain=True)
        client.reconnect_delay_set(1, _LONGEST_WAIT)
        client.enable_logger(_log)
        client.suppress_exceptions = True  # it would end its thread; the log has them
        client.on_socket_open = _send_at_once
        client.on_connect = self._on_connect
        client.on_connect_fail = self._on_connect_fail
        client.on_subscribe = self._on_subscribe
        client.on_disconnect = self._on_disconnect
        client.on_message = self._on_message
        client.on_publish = self._on_publish
        return client

    # The thread of the MQTT client:

    def _on_connect(
        self,
        client: paho.Client,
        _data: object,
        flags: paho.ConnectFlags,
        reason: Any,
        _properties: Properties | None,
    ) -> None:
        if reason.is_failure:
            _log.error("the MQTT broker %s refuses us: %s", self._settings.host, reason)
            return
        if not flags.session_present:  # it counts anew, and knows nothing of what it delivered before
            self._session += 1
        _log.info("connected to the MQTT broker %s", self._settings.host)
        options = SubscribeOptions(qos=1, retainHandling=SubscribeOptions.RETAIN_DO_NOT_SEND)
        client.subscribe([(f"{self._settings.prefix}/+/+/{one}", options) for one in ACTIONS])

    def _on_connect_fail(self, _client: paho.Client, _data: object) -> None:
        _log.warning("the MQTT broker %s cannot be reached, and is tried again", self._settings.host)

    def _on_subscribe(
        self, _client: paho.Client, _data: object, _number: int, reasons: Any, _properties: Properties | None
    ) -> None:
        if any(one.is_failure for one in reasons):
            _log.error("the MQTT broker does not let us hear %s/#: %s", self._settings.prefix, reasons)
        else:  # what is said from here on is heard, now or when we are back
            self._publish(self._status, b"online", retain=True)

    def _on_disconnect(
        self,
        _client: paho.Client,
        _data: object,
        _flags: object,
        reason: Any,
        _properties: Properties | None,
    ) -> None:
        if not self._stop.is_set():
            _log.warning("the MQTT broker %s is gone: %s", self._settings.host, reason)

    def _on_message(self, _client: paho.Client, _data: object, message: paho.MQTTMessage) -> None:
        properties = message.properties
        delivery = Delivery(
            self._session,
            message.mid,
            message.qos,
            message.topic,
            bytes(message.payload),
            getattr(properties, "ResponseTopic", None),
            getattr(properties, "CorrelationData", None),
        )
        if message.qos:
            if message.dup and (self._session, message.mid) in self._pending:
                return  # the first copy is still in line: it will be acknowledged under the same number
            self._pending.add((self._session, message.mid))
        self._waiting.put(delivery)

    def _on_publish(
        self, _client: paho.Client, _data: object, _number: int, reason: Any, _properties: Properties | None
    ) -> None:
        if reason is not None and reason.is_failure:
            _log.warning("the MQTT broker did not take an answer: %s", reason)
        with self._change:
            self._confirmed += 1
            self._change.notify_all()

    # Ours:

    def _work(self) -> None:
        while not self._stop.is_set():
            delivered = self._delivered()
            asked = [one for one in map(self._understood, delivered) if one is not None]
            for (stream, pure), group in groupby(asked, key=lambda one: (one.stream, one.pure)):
                if not self._answer(stream, list(group), pure=pure):
                    return  # the service ends; the broker keeps what is not acknowledged
            if not self._acknowledge(delivered):
                return

    def _delivered(self) -> list[Delivery]:
        """Wait for a delivery, and take all that are there."""
        found = [self._waiting.get()]
        while len(found) < _IN_FLIGHT:
            try:
                found.append(self._waiting.get_nowait())
            except Empty:
                break
        return [one for one in found if one is not None]

    def _understood(self, delivery: Delivery) -> Asked | None:
        levels = delivery.topic.removeprefix(f"{self._settings.prefix}/").split("/")
        try:
            stream, series = name_of_level(levels[0]), name_of_level(levels[1])
            message = message_of(delivery.payload, levels[2])
        except (DataError, UnicodeDecodeError) as error:
            self._send(delivery, {"error": str(error)})
            return None
        return Asked(delivery, stream or "", levels[2] == "predict", {"series": series} | message)

    def _answer(self, stream: str, group: list[Asked], *, pure: bool) -> bool:
        """Answer a group of one stream; False where the service ends first."""
        try:
            answers = ask(self._service, stream, [one.message for one in group], self._stop, pure=pure)
        except NotFound as error:
            answers = [{"error": str(error)} for _ in group]
        if answers is None:
            return False
        for one, answer in zip(group, answers, strict=True):
            self._send(one.delivery, answer)
            if self._settings.discovery and "prediction" in answer and not pure:
                self._announce(one, answer)
        return True

    def _announce(self, asked: Asked, answer: dict[str, Any]) -> None:
        """Tell Home Assistant of a series that it was not told of by this process."""
        topic, _, _ = asked.delivery.topic.rpartition("/")
        if topic in self._announced:
            return
        self._announced.add(topic)
        said = announcements(
            answer,
            state=f"{topic}/prediction",
            availability=self._status,
            prefix=self._settings.discovery_prefix,
            stream=asked.stream,
            series=asked.message["series"],
        )
        for place, config in said.items():
            self._publish(place, write(config), retain=True)

    def _send(self, delivery: Delivery, answer: dict[str, Any]) -> None:
        """Publish an answer beside its message, and where the message asked for it to go."""
        topic, _, _ = delivery.topic.rpartition("/")
        text = write(answer)
        self._publish(f"{topic}/{'error' if 'error' in answer else 'prediction'}", text)
        if delivery.reply_to:
            mark = {} if delivery.correlation is None else {"CorrelationData": delivery.correlation}
            self._publish(delivery.reply_to, text, properties=_properties(PacketTypes.PUBLISH, **mark))

    def _publish(
        self, topic: str, text: bytes, *, retain: bool = False, properties: Properties | None = None
    ) -> None:
        with self._change:
            self._published += 1
        try:
            self._client.publish(topic, text, qos=1, retain=retain, properties=properties)
        except ValueError as error:  # a topic that a sender asked for, and that none can be
            _log.warning("an answer cannot be published to %r: %s", topic, error)
            with self._change:
                self._published -= 1

    def _acknowledge(self, delivered: list[Delivery]) -> bool:
        """Acknowledge deliveries, in their order, once the broker has all answers; False if we end first."""
        with self._change:
            self._change.wait_for(lambda: self._confirmed >= self._published or self._stop.is_set())
            if not self._change.wait_for(lambda: self._confirmed >= self._published, _LAST_WAIT):
                return False
        for one in delivered:
            if one.qos:
                if one.session == self._session:
                    self._client.ack(one.number, one.qos)
                self._pending.discard((one.session, one.number))
        return True


def _vouched_for(file: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=file)
    except OSError as error:
        raise ConfigError(f"certificates cannot be read from {str(file)!r}, ca_file: {error}.") from None


def _send_at_once(_client: paho.Client, _data: object, connection: Any) -> None:
    """Do not hold small packets back until the last one is confirmed, which takes 40 ms."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _properties(kind: int, **values: Any) -> Properties:
    properties = Properties(kind)  # type: ignore[no-untyped-call]  # paho's own, which is typed but for it
    for name, value in values.items():
        setattr(properties, name, value)
    return properties
