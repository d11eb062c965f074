"""JSON by orjson and by the standard library: one and the same to whoever sends lines and reads answers."""

import json
import math
import random
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.robustness.malformed import malformed
from varnn import VARNNRegressor
from varnn.cli import _serving
from varnn.streaming import json_text
from varnn.streaming.store import Store

orjson = pytest.importorskip("orjson", reason="lines are read by orjson where it is installed")
WAYS = {"orjson": orjson, "standard library": None}


@contextmanager
def read_by(way: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_text, "fast", WAYS[way])
        yield


@pytest.fixture(params=list(WAYS))
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    with read_by(request.param):
        yield request.param


@pytest.fixture(scope="module")
def model() -> VARNNRegressor:
    X = np.random.default_rng(0).normal(size=(200, 2))
    return VARNNRegressor(epochs=1, hidden_size=4, ensemble=2, window=4, device="cpu").fit(X, X[:, 0])


def outcome(text: bytes) -> str:
    """What comes of a text, with its types: 1 is not 1.0, and NaN is NaN."""
    try:
        return repr(json_text.read(text))
    except (ValueError, RecursionError) as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize(
    "text",
    [
        *('{"x": [NaN, 1e999, -Infinity]}', '{"y": -0, "x": [-0.0, 1E5, 5e-324, 1e-400]}', "", "nul", "[1,]"),
        *(
            '{"series": 18446744073709551616}',
            '{"series": -9223372036854775809, "x": []}',
            '{"a": 1, "a": 2}',
        ),
        *(
            '[{"seq": 36893488147419103232}, 1]',
            '{"seq": 1.5}',
            '{"y": 1' + "0" * 400 + "}",
            '"\\ud83d\\ude00"',
        ),
        *('{"series": "\\ud800"}', '"\\u0000"', '"\x01"', "\ufeff1", " [1]\r", "[" * 5000, "9" * 5000, "01"),
    ],
)
def test_every_text_is_read_as_the_standard_library_reads_it(text: str) -> None:
    with read_by("orjson"):
        found = outcome(text.encode())
    with read_by("standard library"):
        assert found == outcome(text.encode())


def test_bytes_that_are_no_text_are_refused(way: str) -> None:
    with pytest.raises(ValueError, match="invalid"):
        json_text.read(b'{"series": "\xc3\x28"}')


def test_numbers_keep_their_last_bit(way: str) -> None:
    drawn = random.Random(0)
    for _ in range(2000):
        (value,) = struct.unpack("d", drawn.randbytes(8))
        if math.isfinite(value):
            assert json.loads(json_text.write(value)) == value
            for text in (f"{value:.17g}", f"{value:.30g}", repr(value)):
                assert float(json_text.read(text)) == float(text) == json_text.read(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"series": "Zürich", "seq": 2, "prediction": 0.1}, '{"series":"Zürich","seq":2,"prediction":0.1}'),
        ({"series": "\ud800", "x": "ü"}, '{"series":"\\ud800","x":"\\u00fc"}'),
        ([{"series": 2**70}, None, True], '[{"series":1180591620717411303424},null,true]'),
        ({"x": [math.nan, -math.inf, 1.5]}, '{"x":[null,null,1.5]}'),
        ({"error": 'got "\x7f\x01\n</"'}, '{"error":"got \\"\x7f\\u0001\\n</\\""}'),
    ],
)
def test_both_write_the_same(way: str, value: Any, text: str) -> None:
    assert json_text.write(value) == text.encode()


def test_malformed_lines_are_answered_alike(model: VARNNRegressor, tmp_path: Path) -> None:
    lines = list(malformed(3000, 2))
    found = {}
    for name in WAYS:
        with read_by(name), Store(model, tmp_path / name) as store, np.errstate(all="ignore"):
            found[name] = [_serving.answer_line(line, number, store) for number, line in enumerate(lines, 1)]
    for line, one, other in zip(lines, *found.values(), strict=True):
        assert (json.loads(one[0]), one[1]) == (json.loads(other[0]), other[1]), line


@pytest.mark.parametrize("ways", [("orjson", "standard library"), ("standard library", "orjson")])
def test_a_state_goes_on_with_the_other_library(
    ways: tuple[str, str], model: VARNNRegressor, tmp_path: Path
) -> None:
    drawn = np.random.default_rng(1)
    lines = [
        json.dumps({"series": "ü", "x": x.tolist(), "y": x[0] * 1e-7, "seq": seq}).encode()
        for seq, x in enumerate(drawn.normal(size=(60, 2)), start=1)
    ]
    lines[7] = b'{"series": "\\u00fc", "x": [NaN, 0.1000000000000000055511151231257827], "y": null, "seq": 8}'

    def answered(store: Store, some: list[bytes]) -> list[bytes]:
        answers = [_serving.answer_line(line, 1, store)[0] for line in some]
        store.commit()
        return answers

    with read_by(ways[0]), Store(model, tmp_path / "whole") as store:
        whole = answered(store, lines)
    with read_by(ways[0]):
        first = Store(model, tmp_path / "state")
        before = answered(first, lines[:30])
        first._journal.close()  # type: ignore[union-attr]  # as a process that died leaves it
    with read_by(ways[1]), Store(model, tmp_path / "state") as store:
        assert answered(store, lines[:30]) == before  # to the letter
        assert list(map(json.loads, before + answered(store, lines[30:]))) == list(map(json.loads, whole))
