"""The MQTT connector against a real broker: answers, announcements, and what survives a kill or a restart."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import pytest

from tests.service.broker import Broker, Ear, wait_until
from tests.service.models import make_folder, save_model
from varnn.errors import ConfigError
from varnn.service.connectors.mqtt import MqttConnector
from varnn.service.connectors.settings import MqttSettings
from varnn.service.connectors.topics import level_of, name_of_level
from varnn.service.service import Service

START = np.datetime64("2026-11-16T10:00")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("model") / "house.varnn")


@pytest.fixture
def folder(tmp_path: Path, model: Path) -> Path:
    return make_folder(tmp_path / "house.service", model)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    place = tmp_path / "broker"
    place.mkdir()
    one = Broker(place)
    one.start()
    yield one
    one.stop()


@contextmanager
def connected(broker: Broker, folder: Path, **settings: Any) -> Iterator[Service]:
    """A service with a connector that hears, or will when the broker is there."""
    with Service(folder) as service:
        connector = MqttConnector(service, MqttSettings(host="127.0.0.1", port=broker.port, **settings))
        connector.start()
        if broker.is_there():
            wait_for_service(broker, settings.get("prefix", "varnn"))
        try:
            yield service
        finally:
            connector.close()


def wait_for_service(broker: Broker, prefix: str = "varnn") -> None:
    with Ear(broker, f"{prefix}/status") as ear:
        wait_until(lambda: [one.payload for one in ear.heard][-1:] == [b"online"])


def row(number: int, **more: Any) -> dict[str, Any]:
    return {"x": [number / 10, 0.5], "time": str(START + np.timedelta64(number, "m")), **more}


def test_round_trip(broker: Broker, folder: Path) -> None:
    with connected(broker, folder), Ear(broker, "varnn/#") as ear:
        ear.say("varnn/house/a/step", row(0))
        ear.say("varnn/house/a/observe", {"y": 1.0})
        ear.say("varnn/house/a/predict", row(1))
        ear.say("varnn/house/a/step", row(1))
        step, observed, asked, second = ear.wait_for("varnn/house/a/prediction", 4)
        assert step["series"] == "a"
        assert step["lower"] < step["prediction"] < step["upper"]
        assert observed["innovation"] == pytest.approx(1.0 - step["prediction"])
        assert asked["prediction"] == second["prediction"] != step["prediction"]
        assert not any(one.retain for one in ear.of("varnn/house/a/prediction"))


def test_home_assistant_is_told_once_in_retained_messages(broker: Broker, folder: Path) -> None:
    with connected(broker, folder), Ear(broker, "varnn/+/+/prediction") as ear:
        for number in range(3):
            ear.say("varnn/house/kitchen/step", row(number, y=1.0))
        ear.say("varnn/house/nobody/predict", row(0))  # no row, and so no series
        ear.wait_for("varnn/house/nobody/prediction")
        state = ear.wait_for("varnn/house/kitchen/prediction", 3)
    with Ear(broker, "homeassistant/#") as late:
        wait_until(lambda: len(late.heard) == 5)
    configs = {one.topic.split("/")[3]: json.loads(one.payload) for one in late.heard}
    assert sorted(configs) == ["alarm", "innovation", "lower", "prediction", "upper"]
    for name, config in configs.items():
        kind = "binary_sensor" if name == "alarm" else "sensor"
        identifier = config["device"]["identifiers"][0]
        assert f"homeassistant/{kind}/{identifier}/{name}/config" in [one.topic for one in late.heard]
        assert set(identifier + name) <= set("abcdefghijklmnopqrstuvwxyz0123456789_")
        assert config["unique_id"] == f"{identifier}_{name}"
        assert config["state_topic"] == "varnn/house/kitchen/prediction"
        assert config["availability_topic"] == "varnn/status"
        assert config["device"]["name"] == "house kitchen"
    assert len({one["unique_id"] for one in configs.values()}) == 5
    shown = {name: rendered(config["value_template"], state[0]) for name, config in configs.items()}
    assert shown["alarm"] == "OFF"
    assert float(shown["prediction"]) == state[0]["prediction"]
    assert float(shown["innovation"]) == state[0]["innovation"]
    assert (
        rendered(configs["alarm"]["value_template"], state[0] | {"events": [{"kind": "level shift"}]}) == "ON"
    )
    assert rendered(configs["innovation"]["value_template"], {"prediction": 1.0}) == ""
    assert rendered(configs["alarm"]["value_template"], {"prediction": 1.0}) == ""


def rendered(template: str, state: dict[str, Any]) -> str:
    """A template as Home Assistant renders it; what is not there must not be touched."""
    return jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(template).render(value_json=state)


def test_no_discovery_and_other_topics_if_asked_for(broker: Broker, folder: Path) -> None:
    settings = {"prefix": "cellar/varnn", "discovery": False}
    with Ear(broker, "#") as ear:
        with connected(broker, folder, **settings):
            ear.say("cellar/varnn/house/a/step", row(0))
            ear.wait_for("cellar/varnn/house/a/prediction")
        wait_until(lambda: len(ear.of("cellar/varnn/status")) == 2)
    assert {one.topic.split("/")[0] for one in ear.heard} == {"cellar"}
    assert [one.payload for one in ear.of("cellar/varnn/status")] == [b"online", b"offline"]


def test_the_response_topic_of_a_message_is_answered_too(broker: Broker, folder: Path) -> None:
    with connected(broker, folder), Ear(broker, "varnn/+/+/prediction", "mine") as ear:
        ear.say("varnn/house/a/step", row(0), reply_to="mine", mark=b"\x00seven")
        [beside] = ear.wait_for("varnn/house/a/prediction")
        assert ear.wait_for("mine") == [beside]
        assert getattr(ear.of("mine")[0].properties, "CorrelationData", None) == b"\x00seven"


@pytest.mark.parametrize(
    ("topic", "payload", "said"),
    [
        ("varnn/house/a/step", b"{", "must be JSON"),
        ("varnn/house/a/step", b"\xff\xfe", "must be JSON"),
        ("varnn/house/a/step", b"[" * 100_000, "must be JSON"),
        ("varnn/house/a/step", b"[]", "must be an object with 'x'"),
        ("varnn/house/a/step", b'{"y": 1}', "must be an object with 'x'"),
        ("varnn/house/a/observe", b'{"x": [1, 2]}', "must be an object with 'y'"),
        ("varnn/house/a/step", b'{"x": [1, 2], "series": "b"}', "the topic names the series"),
        ("varnn/house/a/step", b'{"x": [1, "2"]}', "x must hold numbers only"),
        ("varnn/house/a/observe", b'{"y": 1}', "none is. Open one with x"),
        ("varnn/nowhere/a/step", b'{"x": [1, 2]}', "nowhere"),
        ("varnn/house/%FF/step", b'{"x": [1, 2]}', "utf-8"),
    ],
)
def test_a_bad_payload_is_answered_as_an_error_and_does_not_come_again(
    broker: Broker, folder: Path, topic: str, payload: bytes, said: str
) -> None:
    place, _, _ = topic.rpartition("/")
    with connected(broker, folder), Ear(broker, "varnn/#") as ear:
        ear.say(topic, payload)
        [error] = ear.wait_for(f"{place}/error")
        assert said in error["error"]
        ear.say("varnn/house/a/step", row(0))
        ear.wait_for("varnn/house/a/prediction")
    with connected(broker, folder), Ear(broker, "varnn/#") as ear:
        ear.say("varnn/house/b/step", row(0))
        ear.wait_for("varnn/house/b/prediction")
        assert not ear.of(f"{place}/error")


def test_what_is_said_while_the_service_is_away_is_answered_in_order_when_it_is_back(
    broker: Broker, folder: Path
) -> None:
    with connected(broker, folder), Ear(broker, "varnn/house/a/prediction") as ear:
        ear.say("varnn/house/a/step", row(0, y=1.0))
        ear.wait_for("varnn/house/a/prediction")
    with Ear(broker, "varnn/house/a/#") as ear:
        for number in range(1, 30):
            ear.say("varnn/house/a/step", row(number, y=number / 10))
        with connected(broker, folder):
            answers = ear.wait_for("varnn/house/a/prediction", 29)
        assert [one["seq"] for one in answers] == list(range(2, 31))
        assert not ear.of("varnn/house/a/error")


def test_a_broker_that_restarts_is_waited_for(broker: Broker, folder: Path) -> None:
    with connected(broker, folder):
        with Ear(broker, "varnn/house/a/prediction") as ear:
            ear.say("varnn/house/a/step", row(0))
            ear.wait_for("varnn/house/a/prediction")
        broker.stop()
        broker.start()
        wait_for_service(broker)
        with Ear(broker, "varnn/house/b/prediction") as ear:
            ear.say("varnn/house/b/step", row(0))
            ear.wait_for("varnn/house/b/prediction")


def test_a_broker_that_is_not_there_yet_is_waited_for(
    broker: Broker, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broker.stop()
    with connected(broker, folder):
        wait_until(partial(is_logged, caplog, "cannot be reached"))
        broker.start()
        wait_for_service(broker)
        with Ear(broker, "varnn/house/a/prediction") as ear:
            ear.say("varnn/house/a/step", row(0))
            ear.wait_for("varnn/house/a/prediction")


COMMAND = [sys.executable, "-c", "from varnn.cli.app import main; main()", "serve", "--port", "0"]


def test_after_a_kill_every_message_counts_once(broker: Broker, folder: Path, model: Path) -> None:
    """Killed again and again while it works; numbers must be those of a service that nothing happened to."""
    rounds, each = 4, 100
    command = [*COMMAND, "--data", str(folder), "--mqtt", f"mqtt://127.0.0.1:{broker.port}"]
    with Ear(broker, "varnn/house/a/#", "varnn/status") as ear:
        for one in range(rounds):
            end = signal.SIGKILL if one < rounds - 1 else signal.SIGTERM
            with subprocess.Popen(command, stderr=subprocess.DEVNULL) as server:
                try:
                    if one == 0:  # from then on the broker keeps what is said to it
                        wait_for_service(broker)
                    for number in range(one * each, (one + 1) * each):
                        text = json.dumps(row(number, y=number / 10))
                        ear.client.publish("varnn/house/a/step", text, qos=1)
                    goal = one * each + each // 3 if one < rounds - 1 else rounds * each
                    wait_until(partial(has_answers, ear, goal))
                finally:
                    server.send_signal(end)
            assert server.returncode == (0 if end == signal.SIGTERM else -end)
        wait_until(lambda: ear.of("varnn/status")[-1].payload == b"offline")
        found = answered(ear)
        assert not ear.of("varnn/house/a/error")
    assert sorted(found) == list(range(1, rounds * each + 1))
    assert all(one == copies[0] for copies in found.values() for one in copies)
    with Service(folder.parent / "undisturbed.service") as service:
        said = [{"series": "a", **row(number, y=number / 10)} for number in range(rounds * each)]
        undisturbed = service.serve(model).submit(said).result()
    assert [found[one["seq"]][0] for one in undisturbed] == undisturbed


def answered(ear: Ear) -> dict[int, list[dict[str, Any]]]:
    """Answers of a series by their number, all that came."""
    found: dict[int, list[dict[str, Any]]] = {}
    for one in list(ear.heard):
        if one.topic == "varnn/house/a/prediction":
            answer = json.loads(one.payload)
            found.setdefault(answer["seq"], []).append(answer)
    return found


def has_answers(ear: Ear, count: int) -> bool:
    return len(answered(ear)) >= count


def test_a_message_that_was_taken_is_known_by_its_key_or_its_time(broker: Broker, folder: Path) -> None:
    with connected(broker, folder), Ear(broker, "varnn/house/a/#") as ear:
        said = [
            ("step", row(0)),
            ("observe", {"y": 1.0, "time": row(0)["time"]}),
            ("step", {"x": [0.1, 0.2], "key": "second"}),
            ("observe", {"y": 2.0, "for": "second"}),
            ("step", {"x": [0.1, 0.2], "key": "third"}),
            ("observe", {"y": 2.0, "row": 2, "time": "2026-11-16T12:00"}),
        ]
        for _ in range(2):
            for action, message in said:
                ear.say(f"varnn/house/a/{action}", message)
        answers = ear.wait_for("varnn/house/a/prediction", 12)
        assert answers[:6] == answers[6:]
        assert not ear.of("varnn/house/a/error")


@pytest.mark.parametrize(
    "name", ["plain", "Zürich/3. floor", "a+b#c", "100 %", "~", "", "\n\x85", None, "🍭"]
)
def test_any_name_is_a_level_and_back(name: str | None) -> None:
    level = level_of(name)
    assert not set(level) & set("+#/\x00\n\x85")
    assert name_of_level(level) == name


def test_a_series_with_an_odd_name_is_answered_under_it(broker: Broker, folder: Path) -> None:
    name = "Zürich/3. floor +#"
    with connected(broker, folder), Ear(broker, "varnn/house/+/prediction") as ear:
        ear.say(f"varnn/house/{level_of(name)}/step", row(0))
        [answer] = ear.wait_for(f"varnn/house/{level_of(name)}/prediction")
        assert answer["series"] == name


def test_settings_as_one_text(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("s3cret\nnot this\n")
    read = MqttSettings.from_url(
        "mqtts://me%40home@broker.lan:8884/a/b?client_id=c&discovery_prefix=ha&ca_file=ca.pem", secret
    )
    assert (read.host, read.port_or_default, read.username) == ("broker.lan", 8884, "me@home")
    assert (read.prefix, read.client_id, read.discovery_prefix) == ("a/b", "c", "ha")
    assert (read.tls, read.ca_file, read.discovery, read.password()) == (True, Path("ca.pem"), True, "s3cret")
    assert MqttSettings.from_url("broker.lan") == MqttSettings(host="broker.lan")


@pytest.mark.parametrize(
    ("url", "said"),
    {
        "http://broker": "must be one of",
        "mqtt://broker:0x": "port must be",
        "mqtt://broker:70000": "port must be",
        "mqtt://me:secret@broker": "must not have the password in it",
        "mqtt://broker?discover=no": "Did you mean 'discovery'",
        "mqtt://broker?discovery=false": "must be one of",
        "mqtt://broker/a+b": "prefix must be levels of a topic",
        "mqtt://broker?discovery_prefix=a//b": "discovery_prefix must be levels of a topic",
    }.items(),
)
def test_settings_that_cannot_be_are_refused(url: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        MqttSettings.from_url(url)


def test_a_broker_may_want_a_password_and_speak_tls(
    tmp_path: Path, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tools = [shutil.which("openssl"), shutil.which("mosquitto_passwd")]
    if None in tools:
        pytest.skip("openssl or mosquitto_passwd is not installed")
    key, certificate, users = (str(tmp_path / name) for name in ("key.pem", "cert.pem", "users"))
    made = ["-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2"]
    named = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(["openssl", "req", "-x509", *made, *named], check=True, capture_output=True)
    subprocess.run(["mosquitto_passwd", "-b", "-c", users, "me", "s3cret"], check=True, capture_output=True)
    place = tmp_path / "broker"
    place.mkdir()
    settings = [
        "allow_anonymous false",
        f"password_file {users}",
        f"certfile {certificate}",
        f"keyfile {key}",
    ]
    broker = Broker(place, *settings)
    broker.start()
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    right.write_text("s3cret\n")
    wrong.write_text("guess\n")
    url = f"mqtts://me@127.0.0.1:{broker.port}?ca_file={certificate}"
    try:
        with Service(folder) as service:
            for password, said in ((right, "connected to"), (wrong, "refuses us: Not authorized")):
                connector = MqttConnector(service, MqttSettings.from_url(url, password))
                with caplog.at_level("INFO"):
                    connector.start()
                    wait_until(partial(is_logged, caplog, said))
                connector.close()
    finally:
        broker.stop()


def is_logged(caplog: pytest.LogCaptureFixture, words: str) -> bool:
    return any(words in record.getMessage() for record in list(caplog.records))


def test_certificates_must_be_there(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("")
    with Service(folder) as service:
        for name in ("missing.pem", "empty.pem"):
            settings = MqttSettings(tls=True, ca_file=tmp_path / name)
            with pytest.raises(ConfigError, match="certificates cannot be read"):
                MqttConnector(service, settings)


def test_a_password_needs_a_user_and_its_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="name one"):
        MqttSettings.from_url("mqtt://broker", tmp_path / "password")
    with pytest.raises(ConfigError, match="cannot be read"):
        MqttSettings.from_url("mqtt://me@broker", tmp_path / "password").password()
