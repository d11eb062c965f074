"""A real MQTT broker for tests, mosquitto, and a client that notes what it hears."""

import getpass
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from threading import Condition
from typing import Any

import pytest
from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

OF_LISTENER = ("certfile", "keyfile")  # settings that must come after its own
PATIENCE = 20.0  # seconds, on a machine that others use, too


def program() -> str:
    """Where mosquitto is; the test is skipped where it is not."""
    found = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")
    return found or pytest.skip("mosquitto, the MQTT broker, is not installed")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def wait_until(true: Callable[[], object], seconds: float = PATIENCE) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.02)


class Broker:
    """mosquitto in a folder of its own; sessions and retained messages outlive a restart."""

    def __init__(self, folder: Path, *settings: str) -> None:
        self.port = free_port()
        self._config = folder / "mosquitto.conf"
        lines = [
            "per_listener_settings false",
            f"user {getpass.getuser()}",
            "persistence true",
            f"persistence_location {folder}/",
            *(settings or ["allow_anonymous true"]),
        ]
        where = [f"listener {self.port} 127.0.0.1", *(one for one in lines if one.split()[0] in OF_LISTENER)]
        rest = [one for one in lines if one.split()[0] not in OF_LISTENER]
        self._config.write_text("\n".join([*rest, *where, ""]))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [program(), "-c", str(self._config)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(self.is_there)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(PATIENCE)

    def is_there(self) -> bool:
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", self.port)) == 0


class Ear:
    """A client that subscribes to topics, notes what comes, and speaks."""

    def __init__(self, broker: Broker, *topics: str) -> None:
        self.heard: list[paho.MQTTMessage] = []
        self._change = Condition()
        self.client = paho.Client(CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5)
        self.client.on_connect = lambda *_: self._subscribe(topics)
        self.client.on_message = lambda _client, _data, message: self._note(message)
        subscribed: list[object] = []
        self.client.on_subscribe = lambda *_: subscribed.append(True)
        self.client.connect("127.0.0.1", broker.port)
        self.client.loop_start()
        wait_until(lambda: subscribed)

    def __enter__(self) -> "Ear":
        return self

    def __exit__(self, *_: object) -> None:
        self.client.disconnect()
        self.client.loop_stop()

    def _subscribe(self, topics: tuple[str, ...]) -> None:
        self.client.subscribe([(one, 1) for one in topics])

    def _note(self, message: paho.MQTTMessage) -> None:
        with self._change:
            self.heard.append(message)
            self._change.notify_all()

    def say(
        self,
        topic: str,
        message: Any,
        *,
        qos: int = 1,
        reply_to: str | None = None,
        mark: bytes | None = None,
    ) -> None:
        """Publish, and wait until the broker has it."""
        properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]  # paho's own
        if reply_to is not None:
            properties.ResponseTopic = reply_to
        if mark is not None:
            properties.CorrelationData = mark
        payload = message if isinstance(message, bytes) else json.dumps(message)
        self.client.publish(topic, payload, qos=qos, properties=properties).wait_for_publish(PATIENCE)

    def of(self, topic: str) -> list[paho.MQTTMessage]:
        return [one for one in self.heard if one.topic == topic]

    def wait_for(self, topic: str, count: int = 1) -> list[Any]:
        """What was said on a topic, once that many messages have come."""
        with self._change:
            came = self._change.wait_for(lambda: len(self.of(topic)) >= count, PATIENCE)
        assert came, f"{count} of {topic}; heard {[(one.topic, one.payload) for one in self.heard]}"
        return [json.loads(one.payload) for one in self.of(topic)]
