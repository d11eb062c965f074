"""Line protocol: the examples of its own documentation, its grammar, and back and forth."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from varnn.errors import DataError
from varnn.service.connectors.line_protocol import Point, Unsigned, read, write

LONG = 1556813561098000000

DOCUMENTED = {
    # InfluxDB v2, "Line protocol": elements, data types, special characters
    'myMeasurement,tag1=value1,tag2=value2 fieldKey="fieldValue" 1556813561098000000': Point(
        "myMeasurement", {"tag1": "value1", "tag2": "value2"}, {"fieldKey": "fieldValue"}, LONG
    ),
    'measurementName fieldKey="field string value" 1556813561098000000': Point(
        "measurementName", {}, {"fieldKey": "field string value"}, LONG
    ),
    "myMeasurement fieldKey=1.0": Point("myMeasurement", {}, {"fieldKey": 1.0}),
    "myMeasurement fieldKey=1": Point("myMeasurement", {}, {"fieldKey": 1.0}),
    "myMeasurement fieldKey=-1.234456e+78": Point("myMeasurement", {}, {"fieldKey": -1.234456e78}),
    "myMeasurement fieldKey=1i": Point("myMeasurement", {}, {"fieldKey": 1}),
    "myMeasurement fieldKey=-9223372036854775808i": Point("myMeasurement", {}, {"fieldKey": -(2**63)}),
    "myMeasurement fieldKey=12485903u": Point("myMeasurement", {}, {"fieldKey": Unsigned(12485903)}),
    "myMeasurement fieldKey=18446744073709551615u": Point(
        "myMeasurement", {}, {"fieldKey": Unsigned(2**64 - 1)}
    ),
    "myMeasurement fieldKey=t": Point("myMeasurement", {}, {"fieldKey": True}),
    "myMeasurement fieldKey=FALSE": Point("myMeasurement", {}, {"fieldKey": False}),
    r'my\ Measurement fieldKey="string value"': Point("my Measurement", {}, {"fieldKey": "string value"}),
    r'myMeasurement fieldKey="\"string\" within a string"': Point(
        "myMeasurement", {}, {"fieldKey": '"string" within a string'}
    ),
    r"myMeasurement,tag\ Key1=tag\ Value1,tag\ Key2=tag\ Value2 fieldKey=100": Point(
        "myMeasurement", {"tag Key1": "tag Value1", "tag Key2": "tag Value2"}, {"fieldKey": 100.0}
    ),
    'myMeasurement,tagKey=🍭 fieldKey="Launch 🚀" 1556813561098000000': Point(
        "myMeasurement", {"tagKey": "🍭"}, {"fieldKey": "Launch 🚀"}, LONG
    ),
    # InfluxDB v1, "Line protocol tutorial" and its README
    "weather,location=us-midwest,season=summer temperature=82,humidity=71 1465839830100400200": Point(
        "weather",
        {"location": "us-midwest", "season": "summer"},
        {"temperature": 82.0, "humidity": 71.0},
        1465839830100400200,
    ),
    r"weather,location=us\,midwest temperature=82 1465839830100400200": Point(
        "weather", {"location": "us,midwest"}, {"temperature": 82.0}, 1465839830100400200
    ),
    r"weather,location=us-midwest temp\=rature=82 1465839830100400200": Point(
        "weather", {"location": "us-midwest"}, {"temp=rature": 82.0}, 1465839830100400200
    ),
    r'weather,location=us-midwest temperature_str="too hot/cold" 1465839830100400201': Point(
        "weather", {"location": "us-midwest"}, {"temperature_str": "too hot/cold"}, 1465839830100400201
    ),
    r'weather,location=us-midwest temperature_str="too hot\cold" 1465839830100400202': Point(
        "weather", {"location": "us-midwest"}, {"temperature_str": r"too hot\cold"}, 1465839830100400202
    ),
    r'weather,location=us-midwest temperature_str="too hot\\\cold" 1465839830100400204': Point(
        "weather", {"location": "us-midwest"}, {"temperature_str": r"too hot\\cold"}, 1465839830100400204
    ),
    r'weather,location=us-midwest temperature_str="too hot\\\\\cold" 1465839830100400206': Point(
        "weather", {"location": "us-midwest"}, {"temperature_str": r"too hot\\\cold"}, 1465839830100400206
    ),
    '"weather",location="us-midwest" temperature=82': Point(
        '"weather"', {"location": '"us-midwest"'}, {"temperature": 82.0}
    ),
    r"cpu\,01,host=serverA,region=us-west value=1": Point(
        "cpu,01", {"host": "serverA", "region": "us-west"}, {"value": 1.0}
    ),
}


@pytest.mark.parametrize("line", DOCUMENTED)
def test_a_documented_line_says_what_the_documents_say(line: str) -> None:
    point = read(line)
    assert point == DOCUMENTED[line]
    assert point is not None
    assert {key: type(value) for key, value in point.fields.items()} == {
        key: type(value) for key, value in DOCUMENTED[line].fields.items()
    }


@pytest.mark.parametrize("line", DOCUMENTED)
def test_a_documented_line_survives_being_written(line: str) -> None:
    assert read(write(DOCUMENTED[line])) == DOCUMENTED[line]


@pytest.mark.parametrize("line", ["", "   ", "# This is a comment", "  # so is this", "\r"])
def test_comments_and_empty_lines_say_nothing(line: str) -> None:
    assert read(line) is None


@pytest.mark.parametrize(
    ("line", "said"),
    {
        "weather": "a space, and fields after it, must stand at character 8; got ''",
        "weather temperature": "= after 'temperature' must stand at character 20",
        "weather temperature=": 'a number, true, false or a "text" must stand at character 21',
        "weather temperature=82 now": "a time as a whole number must stand at character 24; got 'now'",
        "weather temperature=82 1.5": "the end of the line must stand at character 25; got '.5'",
        "weather temperature=82 1 2": "the end of the line",
        "weather temperature=82,": "the name of a field must stand at character 24",
        "weather,location temperature=82": "= after 'location' must stand at character 17",
        "weather,location= temperature=82": "the value of a tag must stand at character 18",
        "weather,a=1,a=2 temperature=82": "a tag may come once; got 'a' twice",
        ",a=1 temperature=82": "the name of a measurement must stand at character 1",
        'weather temperature="82': 'a number, true, false or a "text"',
        "weather temperature='82'": 'a number, true, false or a "text"',
        "weather temperature=82x": 'a number, true, false or a "text"',
        "weather temperature=NaN": 'a number, true, false or a "text"',
        "weather temperature=1e999": 'a number, true, false or a "text"',
        "weather temperature=٣": 'a number, true, false or a "text"',
        "weather temperature=9223372036854775808i": "must lie between -9223372036854775808 and",
        "weather temperature=-1u": "must lie between 0 and 18446744073709551615",
        "weather temperature=1 99999999999999999999999": "must lie between",
        "wea\tther temperature=1": "a space, and fields after it,",
        "weather temperature=1\x00": 'a number, true, false or a "text"',
        "weather\\": "a space, and fields after it,",
    }.items(),
)
def test_a_line_that_is_none_says_from_where_on(line: str, said: str) -> None:
    with pytest.raises(DataError, match=re.escape(said)):
        read(line)


@pytest.mark.parametrize(
    "point",
    [
        Point("m", {}, {}),
        Point("", {}, {"a": 1.0}),
        Point("#m", {}, {"a": 1.0}),
        Point("m\\", {}, {"a": 1.0}),
        Point("m", {"t": "a\nb"}, {"a": 1.0}),
        Point("m", {}, {"a": "two\nlines"}),
        Point("m", {}, {"a": float("nan")}),
        Point("m", {}, {"a": 2**63}),
        Point("m", {}, {"a": Unsigned(-1)}),
    ],
)
def test_what_the_protocol_cannot_say_is_refused(point: Point) -> None:
    with pytest.raises(DataError):
        write(point)


def test_long_nonsense_is_refused_at_once() -> None:
    """Backtracking over 100,000 backslashes would take hours."""
    for line in ("\\" * 100_000, "m " + "a" * 100_000, 'm a="' + "\\x" * 50_000, "m," + "a=b," * 30_000):
        with pytest.raises(DataError):
            read(line)


names = (
    st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=12)
    | st.text(r"\,= a\"'", min_size=1, max_size=8)
).filter(lambda name: not name.endswith("\\") and not name.startswith("#") and name == name.strip("\r"))
values = (
    st.floats(allow_nan=False, allow_infinity=False)
    | st.integers(-(2**63), 2**63 - 1)
    | st.integers(0, 2**64 - 1).map(Unsigned)
    | st.booleans()
    | st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=20)
    | st.text(r"\" ,=a", max_size=8)
)
points = st.builds(
    Point,
    names,
    st.dictionaries(names, names, max_size=3),
    st.dictionaries(names, values, min_size=1, max_size=4),
    st.none() | st.integers(-(2**63), 2**63 - 1),
)


@given(points)
def test_a_point_that_is_written_is_read_again(point: Point) -> None:
    line = write(point)
    again = read(line)
    assert again == point
    assert again is not None
    assert [type(one) for one in again.fields.values()] == [type(one) for one in point.fields.values()]
    assert write(again) == line


@given(st.text(st.characters(exclude_categories=["Cs"])) | st.text('m,= "\\t1iu.e-#'))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        point = read(text)
    except DataError:
        return
    if point is not None and not any("\n" in str(one) for one in point.fields.values()):
        assert read(write(point)) == point
