"""Logs: a line for each request that tells no secrets, ids that go there and back, and failures inside."""

import io
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from tests.service.asgi import Answer, App, Echo, ask
from tests.service.test_metrics import read
from varnn.errors import ConfigError
from varnn.service.http.access import Access
from varnn.service.http.logs import Log, Logged
from varnn.service.http.metrics import Metrics
from varnn.service.http.sessions import Sessions
from varnn.service.tokens import Tokens


class House:
    """An app with a log."""

    def __init__(self, app: App | None = None, **how: Any) -> None:
        self.file, self.metrics, self.inside = io.BytesIO(), Metrics("1"), Echo()
        self.app = Logged(app or self.inside, Log(self.file, **how), self.metrics)

    def ask(self, method: str, path: str, **how: Any) -> Answer:
        return ask(self.app, method, path, **how)

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.file.getvalue().splitlines()]

    def counted(self) -> list[tuple[str, str, str, float]]:
        samples = read(self.metrics.text())["varnn_request_duration_seconds"].samples
        return [
            (labels["method"], labels["route"], labels["status"], value)
            for suffix, labels, value in samples
            if suffix == "_count"
        ]


def test_a_request_is_one_line_by_its_template() -> None:
    house = House()
    said = house.ask("POST", "/v1/streams/house/step", body=b"secret row", query="x=secret", peer="10.0.0.9")
    (line,) = house.lines
    assert line.pop("time").endswith("Z")
    assert 0 <= line.pop("ms") < 10_000
    assert line.pop("request") == said.header("x-request-id")
    assert line == {
        "level": "info",
        "message": "request",
        "method": "POST",
        "route": "/v1/streams/{stream}/step",
        "status": 200,
        "bytes": len(said.body),
        "peer": "10.0.0.9",
        "token": None,
    }
    assert house.counted() == [("POST", "/v1/streams/{stream}/step", "2xx", 1)]


def test_no_name_and_no_secret_is_in_a_log(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "tokens.json")
    text = tokens.make("reader", "read")
    secret = text.split("_", 2)[2]
    house = House()
    sessions = Sessions(tokens)
    house.app = Logged(Access(house.inside, tokens, sessions), Log(house.file, level="debug"), house.metrics)
    assert house.ask("GET", "/v1/streams/private/series/name", token=text).status == 200
    assert house.lines[-1]["token"] == text.split("_")[1]
    cookie = str(house.ask("GET", "/", query=f"link={text}").header("set-cookie")).partition(";")[0]
    assert house.ask("GET", "/v1/streams", headers={"cookie": cookie}).status == 200
    assert house.lines[-1]["token"] == text.split("_")[1]
    house.ask("GET", f"/{text}", query=f"link={text}")
    house.ask("GET", "/v1/streams", token=text[:-1] + "!")
    house.ask("POST", "/login", body=text.encode())
    assert [line["status"] for line in house.lines] == [200, 303, 200, 401, 401, 200]
    written = house.file.getvalue().decode()
    for hidden in (secret, secret[:-1], cookie, cookie.partition("=")[2], "private", "name", "link="):
        assert hidden not in written


@pytest.mark.parametrize("given", ["abc-1.2:3_X", "x" * 64])
def test_a_sane_id_of_the_caller_is_kept(given: str) -> None:
    house = House()
    said = house.ask("GET", "/healthz", headers={"x-request-id": given})
    assert [value for name, value in said.headers if name == "x-request-id"] == [given]
    assert house.inside.states[-1]["request"] == given


@pytest.mark.parametrize("given", ["", "x" * 65, "a b", 'a"b', "a\x1b[31m", "é", "a\n", "{}"])
def test_other_ids_are_replaced(given: str) -> None:
    house = House()
    found = house.ask("GET", "/v1/streams", headers={"x-request-id": given}).header("x-request-id")
    assert found is not None and found != given and len(found) == 16
    assert house.lines[0]["request"] == found


def test_ids_differ_and_answers_are_not_to_be_guessed_at() -> None:
    house = House()
    answers = [house.ask("GET", "/v1/streams") for _ in range(50)]
    assert len({one.header("x-request-id") for one in answers}) == 50
    assert answers[0].header("x-content-type-options") == "nosniff"


def test_probes_are_not_written_unless_asked_for_or_wrong() -> None:
    house = House()
    for path in ("/healthz", "/readyz", "/metrics"):
        house.ask("GET", path)
    assert house.lines == []
    assert len(house.counted()) == 3
    house = House(level="debug")
    house.ask("GET", "/healthz")
    assert [line["level"] for line in house.lines] == ["debug"]

    async def unwell(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 503, "headers": []})
        await send({"type": "http.response.body", "body": b"ending"})

    house = House(unwell)
    house.ask("GET", "/readyz")
    assert [line["level"] for line in house.lines] == ["error"]


def test_unknown_paths_and_methods_do_not_make_metrics() -> None:
    house = House()
    for number in range(50):
        house.ask(f"M{number}", f"/wp-admin/{number}")
    assert house.counted() == [("other", "other", "2xx", 50)]
    assert {line["route"] for line in house.lines} == {"other"}


async def fails(scope: Any, receive: Any, send: Any) -> None:
    raise RuntimeError("of the inside")


def test_a_failure_inside_is_logged_and_not_told() -> None:
    house = House(fails)
    said = house.ask("GET", "/v1/streams")
    assert said.status == 500
    assert "of the inside" not in said.body.decode()
    failed, request = house.lines
    assert "RuntimeError: of the inside" in failed["traceback"]
    assert failed["request"] == request["request"] == said.json["request"] == said.header("x-request-id")
    assert (request["status"], request["level"]) == (500, "error")
    assert house.counted() == [("GET", "/v1/streams", "5xx", 1)]


def test_a_failure_after_half_an_answer_closes_the_connection() -> None:
    async def half(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        raise RuntimeError("of the inside")

    async def whole(scope: Any, receive: Any, send: Any) -> None:
        await Echo()(scope, receive, send)
        raise RuntimeError("of the inside")

    house = House(half)
    with pytest.raises(RuntimeError, match="of the inside"):  # which the server takes for that
        house.ask("GET", "/v1/streams")
    assert len(house.lines) == 2
    house = House(whole)
    assert house.ask("GET", "/v1/streams").status == 200
    assert [line["message"] for line in house.lines] == ["failed", "request"]


def test_a_caller_who_left_is_told_apart() -> None:
    async def silent(scope: Any, receive: Any, send: Any) -> None:
        return None

    house = House(silent)
    with pytest.raises(ValueError, match="not enough values"):
        house.ask("GET", "/v1/streams")
    assert house.lines[0]["status"] == 499


def test_followers_are_logged_at_their_end_and_not_measured() -> None:
    house = House()
    house.ask("GET", "/v1/streams/house/live")
    assert house.lines[0]["route"] == "/v1/streams/{stream}/live"
    assert house.counted() == []


def test_text_for_people_stays_on_its_line() -> None:
    file = io.BytesIO()
    log = Log(file, form="text")
    log.write("warning", "two\nlines\x1b[31m", folder="my house", other="a\nb", nothing=None, half="\ud800")
    (line,) = file.getvalue().decode().splitlines()
    assert line.partition(" ")[2] == ("warning two?lines?[31m folder='my house' other='a\\nb' half='\\ud800'")


def test_levels_and_formats_are_checked() -> None:
    file = io.BytesIO()
    log = Log(file, level="warning")
    log.write("info", "no")
    log.write("error", "yes")
    assert [json.loads(line)["message"] for line in file.getvalue().splitlines()] == ["yes"]
    with pytest.raises(ConfigError, match="format of logs"):
        Log(file, form="xml")
    with pytest.raises(ConfigError, match="level of logs"):
        Log(file, level="loud")


def test_a_log_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    closed = (tmp_path / "log").open("wb")
    closed.close()
    assert ask(Logged(Echo(), Log(closed), Metrics("1")), "GET", "/v1/streams").status == 200


def test_loggers_of_the_standard_library_write_there_too() -> None:
    file = io.BytesIO()
    logger = logging.getLogger("varnn.test of logs")
    Log(file).take_over(logger.name)
    try:
        logger.debug("no")
        logger.warning("disk %s", "full")
        try:
            raise RuntimeError("inside")
        except RuntimeError:
            logger.exception("failed")
        logger.critical("worst")
    finally:
        logger.handlers, logger.propagate = [], True
    lines = [json.loads(line) for line in file.getvalue().splitlines()]
    assert [(line["level"], line["message"]) for line in lines] == [
        ("warning", "disk full"),
        ("error", "failed"),
        ("error", "worst"),
    ]
    assert lines[0]["logger"] == logger.name
    assert "RuntimeError: inside" in lines[1]["traceback"]
