"""Line protocol on standard input and output: which lines are rows, what is said of them, and the end."""

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.service.models import make_folder, save_model
from varnn.errors import ConfigError, DataError
from varnn.service.connectors.influx import InfluxConnector, Rows
from varnn.service.connectors.line_protocol import Point, read
from varnn.service.connectors.settings import InfluxSettings
from varnn.service.service import Service

POWER = InfluxSettings(measurement="power")
NOW = 1_763_280_000_000_000_000
MINUTE = 60_000_000_000


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("model") / "house.varnn")


@pytest.fixture
def folder(tmp_path: Path, model: Path) -> Path:
    return make_folder(tmp_path / "house.service", model)


class Pipe:
    """A connector with the other ends of its pipes."""

    def __init__(self, service: Service, settings: InfluxSettings = POWER) -> None:
        self.ended = Event()
        source, self._into = os.pipe()
        self._out, sink = os.pipe()
        self._source, self._sink = os.fdopen(source, "rb"), os.fdopen(sink, "wb")
        self.connector = InfluxConnector(service, settings, self._source, self._sink, self.ended.set)
        self.connector.start()

    def write(self, text: str | bytes) -> None:
        os.write(self._into, text if isinstance(text, bytes) else text.encode())

    def line(self) -> str:
        text = b""
        while not text.endswith(b"\n"):
            assert select.select([self._out], [], [], 20)[0], f"no line came; only {text!r}"
            text += os.read(self._out, 1)
        return text.decode().rstrip("\n")

    def point(self) -> Point:
        point = read(self.line())
        assert point is not None
        return point

    def finish(self) -> list[str]:
        """End the input; give the lines that were not read."""
        os.close(self._into)
        assert self.ended.wait(20)
        self.connector.close()
        self._source.close()
        self._sink.close()
        with os.fdopen(self._out, "rb") as out:
            return out.read().decode(errors="replace").splitlines()


@pytest.fixture
def service(folder: Path) -> Iterator[Service]:
    with Service(folder) as one:
        yield one


def line(number: int, fields: str, tags: str = ",house=a") -> str:
    return f"power{tags} {fields} {NOW + number * MINUTE}\n"


def test_a_whole_row_is_predicted_before_its_label_is_shown(service: Service) -> None:
    pipe = Pipe(service)
    pipe.write(line(0, "heat=0.5,wind=1i,load=0.7"))
    assert pipe.line() == line(0, "heat=0.5,wind=1i,load=0.7").rstrip()
    said = pipe.point()
    assert (said.measurement, said.tags, said.time) == ("power_varnn", {"house": "a"}, NOW)
    assert list(said.fields) == ["prediction", "lower", "upper", "innovation"]
    values = {name: float(value) for name, value in said.fields.items()}
    assert values["lower"] < values["prediction"] < values["upper"]
    assert values["innovation"] == pytest.approx(0.7 - values["prediction"])
    assert pipe.finish() == []


def test_a_label_may_come_later_with_the_time_of_its_row(service: Service) -> None:
    pipe = Pipe(service)
    pipe.write(line(0, "heat=0.5,wind=1"))
    pipe.line()
    predicted = pipe.point()
    assert list(predicted.fields) == ["prediction", "lower", "upper"]
    pipe.write(line(1, "heat=0.4,wind=1"))
    pipe.line(), pipe.line()
    pipe.write(line(0, "load=0.7"))
    pipe.line()
    labelled = pipe.point()
    assert (labelled.time, list(labelled.fields)) == (NOW, ["innovation"])
    assert labelled.fields["innovation"] == pytest.approx(0.7 - float(predicted.fields["prediction"]))
    assert pipe.finish() == []


def test_a_whole_line_after_the_inputs_alone_is_the_label_of_that_row(service: Service) -> None:
    pipe = Pipe(service)
    pipe.write(line(0, "heat=0.5,wind=1"))
    pipe.line()
    predicted = pipe.point()
    pipe.write(line(0, "heat=0.5,wind=1,load=0.7"))
    pipe.line()
    both = pipe.point()
    assert both.fields["prediction"] == predicted.fields["prediction"]
    assert both.fields["innovation"] == pytest.approx(0.7 - float(predicted.fields["prediction"]))
    assert pipe.finish() == []


def test_lines_sent_again_are_answered_as_they_were_and_count_once(folder: Path) -> None:
    lines = "".join(line(number, f"heat={number / 10},wind=1,load={number / 10}") for number in range(20))
    with Service(folder) as service:
        first = Pipe(service)
        first.write(lines + lines[: len(lines) // 2])
        said = first.finish()
        assert said[40:60] == said[:20]
    with Service(folder) as service:  # another process, as after a crash
        second = Pipe(service)
        second.write(lines + line(20, "heat=2,wind=1,load=2"))
        again = second.finish()
        assert again[:40] == said[:40]
        assert len(again) == 42
        [known] = service.stream("house").submit([{"series": "house=a", "y": 1.0, "for": str(NOW)}]).result()
        assert "error" in known


def test_others_go_through_and_nonsense_is_told_and_changes_nothing(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    pipe = Pipe(service)
    strange = [
        "cpu,host=x usage=1 5",
        "# a comment",
        "",
        "power,house=a other=1 7",
        "power,house=a heat=warm 5",
        "power,house=a heat=0.5,wind=1",
        'power,house=a heat="warm",wind=1 5',
        f"power,house=a load=1 {NOW}",
    ]
    pipe.write("\n".join(strange) + "\n")
    pipe.write(b"power,house=\xff heat=1 5\n")
    pipe.write(line(0, "heat=0.5,wind=1"))
    said = pipe.finish()
    assert said[: len(strange)] == strange
    assert [one for one in said if one.startswith("power_varnn")] == said[-1:]
    told = sorted(record.getMessage() for record in caplog.records)
    assert [one.partition(":")[0] for one in told] == ["line 5", "line 6", "line 7", "line 8", "line 9"]
    assert 'a number, true, false or a "text"' in told[0]
    assert "must have a time" in told[1]
    assert "x must hold numbers only" in told[2]
    assert "UTF-8" in told[4]


def test_a_last_line_without_an_end_counts_and_the_end_is_told(service: Service) -> None:
    pipe = Pipe(service)
    pipe.write(line(0, "heat=0.5,wind=1").rstrip("\n"))
    assert not pipe.ended.is_set()
    assert len(pipe.finish()) == 2


def test_closing_ends_the_reading(service: Service) -> None:
    pipe = Pipe(service)
    pipe.connector.close()
    pipe.write(line(0, "heat=1,wind=1"))
    assert not pipe.ended.is_set(), "whoever closes it knows"
    pipe.ended.set()
    assert pipe.finish() == []


def test_without_echo_only_answers_come_out(folder: Path) -> None:
    settings = InfluxSettings.from_text("measurement=power,echo=no,precision=s,series=house")
    with Service(folder) as service:
        pipe = Pipe(service, settings)
        pipe.write("power,house=a,floor=1 heat=1,wind=1,load=1 1763280000\ncpu usage=1 5\n")
        [said] = pipe.finish()
        assert said.startswith("power_varnn,house=a,floor=1 prediction=")
        assert said.endswith(" 1763280000")
        [answer] = (
            service.stream("house").submit([{"series": "a", "x": [0, 0], "key": "1763280000"}]).result()
        )
        assert (answer["row"], answer["seq"]) == (0, 1)


def test_what_is_missing_is_missing_and_truth_is_a_number() -> None:
    rows = Rows(InfluxSettings(measurement="m", target="z", precision="ms"), ["a", "b"], "load")
    [x, y] = rows.messages(Point("m", {}, {"b": True, "z": False, "load": 5.0}, 1500))
    assert x == {"series": None, "key": "1500", "time": "1970-01-01T00:00:01.500", "x": {"a": None, "b": 1.0}}
    assert y == {"series": None, "key": "y 1500", "for": "1500", "y": 0.0}


def test_a_model_without_inputs_has_rows_of_labels() -> None:
    rows = Rows(InfluxSettings(measurement="m"), [], "load")
    assert [message.get("x") for message in rows.messages(Point("m", {}, {"load": 5.0}, 1))] == [{}, None]


def test_series_are_named_by_tags() -> None:
    point = Point("m", {"house": "a", "floor": "1"}, {"x": 1.0}, 1)

    def named(series: tuple[str, ...] | None) -> object:
        return Rows(InfluxSettings(measurement="m", series=series), ["x"], "y").messages(point)[0]["series"]

    assert named(None) == "floor=1,house=a"
    assert named(("house",)) == "a"
    assert named(("house", "floor")) == "house=a,floor=1"
    with pytest.raises(DataError, match="it lacks \\['room'\\]"):
        named(("room",))


def test_an_alarm_is_a_field() -> None:
    rows = Rows(POWER, ["x"], "y")
    answers: list[dict[str, Any]] = [
        {"prediction": 1, "lower": None},
        {"innovation": 2.0, "events": [{"kind": "level shift"}]},
    ]
    point = rows.point(Point("power", {"a": "b"}, {"x": 1.0}, 3), answers)
    assert point == Point(
        "power_varnn", {"a": "b"}, {"prediction": 1.0, "innovation": 2.0, "alarm": "level shift"}, 3
    )
    assert rows.point(Point("power", {}, {"x": 1.0}, 3), [{"error": "no"}]) is None


def test_one_stream_is_found_and_of_several_one_is_named(folder: Path, model: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.varnn"
    other.write_bytes(model.read_bytes())
    with Service(folder) as service:
        service.serve(other)
        with pytest.raises(ConfigError, match=r"stream=NAME; got \['house', 'other'\]"):
            InfluxConnector(service, POWER, sys.stdin.buffer, sys.stdout.buffer, lambda: None)
        assert Pipe(service, InfluxSettings(measurement="power", stream="other")).finish() == []


@pytest.mark.parametrize(
    ("text", "said"),
    {
        "": "must be name=value",
        "measurement": "must be name=value",
        "measurement=a,measurement=b": "each once",
        "target=load": "measurement=NAME",
        "measurement=": "must have names",
        "measurement=a,series=": "must have names",
        "measurement=a,tags=b": "no setting 'tags'",
        "measurement=a,precision=minutes": "precision must be one of",
        "measurement=a,echo=true": "echo must be one of",
    }.items(),
)
def test_settings_that_cannot_be_are_refused(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        InfluxSettings.from_text(text)


def test_settings_as_one_text() -> None:
    read = InfluxSettings.from_text("measurement=a%2Cb,target=y,series=p+q%2Br,precision=us,stream=s,echo=no")
    assert read == InfluxSettings(
        measurement="a,b", target="y", series=("p", "q+r"), precision="us", stream="s", echo=False
    )


COMMAND = [sys.executable, "-c", "from varnn.cli.app import main; main()", "serve", "--port", "0"]


@pytest.mark.parametrize("end", ["of the input", "by a signal"])
def test_the_command_answers_line_by_line_and_ends_well(folder: Path, end: str) -> None:
    """As execd wants it: a line in, its answer out at once, and the end of the input is the end."""
    command = [*COMMAND, "--data", str(folder), "--influx", "measurement=power"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as process:  # type: ignore[call-overload]  # a mapping
        for number in range(3):
            process.stdin.write(line(number, "heat=0.5,wind=1,load=1").encode())
            process.stdin.flush()
            assert process.stdout.readline().startswith(b"power,house=a ")
            assert process.stdout.readline().startswith(b"power_varnn,house=a prediction=")
        if end == "by a signal":
            process.terminate()
            process.wait(30)
        said, told = process.communicate(timeout=30)
    assert (process.returncode, said) == (0, b""), told
    assert b"dashboard http" in told
    with Service(folder) as service:
        again = {"series": "house=a", "x": {}, "key": str(NOW + 2 * MINUTE)}
        [answer] = service.stream("house").submit([again]).result()
        assert answer["row"] == 2
