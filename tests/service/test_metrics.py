"""Metrics: their text by a strict reader of OpenMetrics, and labels that cannot grow without end."""

import math
import re
import threading
from typing import Any, NamedTuple

import pytest

from varnn.errors import ConfigError
from varnn.service.http._openmetrics import Counter, Gauge, Histogram, text
from varnn.service.http.metrics import CONTENT_TYPE, Metrics, resident_bytes

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
_SAMPLE = re.compile(rf"({_NAME})(?:\{{((?:{_LABEL})(?:,{_LABEL})*)?\}})? (\S+)")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]Inf|NaN")
_SUFFIXES = {
    "counter": {"_total"},
    "gauge": {""},
    "histogram": {"_bucket", "_count", "_sum"},
    "info": {"_info"},
}


class Family(NamedTuple):
    kind: str
    unit: str
    words: str
    samples: list[tuple[str, dict[str, str], float]]


def read(document: bytes) -> dict[str, Family]:
    """Read a document, and refuse what OpenMetrics 1.0 does."""
    content = document.decode()
    assert content.endswith("# EOF\n"), "a document ends with # EOF and a line break"
    lines = content[: -len("# EOF\n")].splitlines()
    found: dict[str, Family] = {}
    name = ""
    described: set[str] = set()
    for line in lines:
        if line.startswith("# "):
            kind, named, words = line[2:].split(" ", 2)
            if named != name:
                assert named not in found, f"{named} is interleaved"
                name, described = named, set()
                found[name] = Family("unknown", "", "", [])
            assert kind in ("TYPE", "UNIT", "HELP") and kind not in described
            assert not found[name].samples, "what a metric is stands before its values"
            described.add(kind)
            if kind == "UNIT":
                assert name.endswith("_" + words)
            if kind == "TYPE":
                assert words in _SUFFIXES
            one = found[name]
            found[name] = Family(
                kind=words if kind == "TYPE" else one.kind,
                unit=words if kind == "UNIT" else one.unit,
                words=words if kind == "HELP" else one.words,
                samples=one.samples,
            )
            continue
        match = _SAMPLE.fullmatch(line)
        assert match is not None, line
        assert _NUMBER.fullmatch(match[match.lastindex or 0]), line
        sample = match[1]
        suffix = sample.removeprefix(name)
        assert sample.startswith(name) and suffix in _SUFFIXES[found[name].kind], line
        labels = dict(re.findall(_LABEL, match[2] or ""))
        assert len(labels) == (match[2] or "").count('="'), "no label twice"
        value = float(match[match.lastindex or 0].replace("Inf", "inf"))
        found[name].samples.append((suffix, labels, value))
    for family in found.values():
        check(family)
    return found


def check(family: Family) -> None:
    """Refuse values that cannot be."""
    keys = [(suffix, tuple(sorted(labels.items()))) for suffix, labels, _ in family.samples]
    assert len(set(keys)) == len(keys), "no value twice"
    if family.kind == "counter":
        assert all(value >= 0 for _, _, value in family.samples)
    if family.kind != "histogram":
        return
    series: dict[Any, dict[str, Any]] = {}
    for suffix, labels, value in family.samples:
        bound = labels.pop("le", None)
        assert (bound is not None) == (suffix == "_bucket")
        one = series.setdefault(tuple(sorted(labels.items())), {"bounds": [], "counts": []})
        if bound is None:
            one[suffix] = value
        else:
            one["bounds"].append(float(bound.replace("Inf", "inf")))
            one["counts"].append(value)
    for one in series.values():
        assert one["bounds"] == sorted(one["bounds"]) and one["bounds"][-1] == math.inf
        assert one["counts"] == sorted(one["counts"]) and one["counts"][-1] == one["_count"]
        assert one["_sum"] >= 0


def filled() -> Metrics:
    metrics = Metrics("0.1.0")
    metrics.requests.observe(0.003, "POST", "/v1/streams/{stream}/step", "2xx")
    metrics.requests.observe(99.0, "POST", "/v1/streams/{stream}/step", "2xx")
    metrics.requests.observe(0.02, "GET", "other", "4xx")  # right on a bound
    metrics.observations.add("house", by=100)
    metrics.predictions.add("house")
    metrics.refused.add("house", "stale")
    metrics.events.add("house", "level")
    metrics.commits.observe(0.0004, "house")

    def collect() -> None:
        metrics.coverage.set(0.9, "house", "first")
        metrics.innovation_scale.set(1e-7, "house", "first")
        metrics.skill.set(-0.5, "house", "first")
        metrics.queue_depth.set(3, "house")
        metrics.series.set(10_000, "house")
        metrics.followers.set(0)

    metrics.collect.append(collect)
    return metrics


def test_the_document_is_openmetrics_and_says_what_was_counted() -> None:
    found = read(filled().text())
    names = {name: family.kind for name, family in found.items()}
    assert names == {
        "varnn_request_duration_seconds": "histogram",
        "varnn_observations": "counter",
        "varnn_predictions": "counter",
        "varnn_refused": "counter",
        "varnn_events": "counter",
        "varnn_coverage_ratio": "gauge",
        "varnn_innovation_scale": "gauge",
        "varnn_skill_ratio": "gauge",
        "varnn_queue_depth": "gauge",
        "varnn_commit_duration_seconds": "histogram",
        "varnn_series": "gauge",
        "varnn_followers": "gauge",
        "varnn_build": "info",
        "process_start_time_seconds": "gauge",
        "process_resident_memory_bytes": "gauge",
    }
    assert all(family.words for family in found.values())
    assert found["varnn_observations"].samples == [("_total", {"stream": "house"}, 100.0)]
    assert found["varnn_refused"].samples == [("_total", {"stream": "house", "reason": "stale"}, 1.0)]
    assert found["varnn_innovation_scale"].samples[0][2] == 1e-7
    assert found["varnn_skill_ratio"].samples[0][2] == -0.5
    assert found["varnn_build"].samples[0][1]["version"] == "0.1.0"
    below = {
        (labels["route"], labels["le"]): value
        for suffix, labels, value in read_raw(filled().text(), "varnn_request_duration_seconds")
        if suffix == "_bucket"
    }
    assert below["/v1/streams/{stream}/step", "0.0025"] == 0
    assert below["/v1/streams/{stream}/step", "0.005"] == 1
    assert below["/v1/streams/{stream}/step", "30.0"] == 1
    assert below["/v1/streams/{stream}/step", "+Inf"] == 2
    assert below["other", "0.01"] == 0 and below["other", "0.02"] == 1
    assert CONTENT_TYPE == "application/openmetrics-text; version=1.0.0; charset=utf-8"


def read_raw(document: bytes, name: str) -> list[tuple[str, dict[str, str], float]]:
    """Values of one metric with all their labels."""
    found = []
    for line in document.decode().splitlines():
        match = _SAMPLE.fullmatch(line)
        if match is not None and match[1].startswith(name):
            labels = dict(re.findall(_LABEL, match[2] or ""))
            found.append((match[1].removeprefix(name), labels, float(match[match.lastindex or 0])))
    return found


def test_an_empty_service_has_a_document_too() -> None:
    assert read(Metrics("1").text())["varnn_observations"].samples == []


def test_labels_are_escaped() -> None:
    wild = 'a"b\\c\nd,e="f"} 5\n# EOF'
    counter = Counter("wild", 'a "help"\nof two lines \\', ["name"])
    counter.add(wild)
    (sample,) = read(text([counter]))["wild"].samples
    assert re.sub(r'\\(["\\n])', lambda one: {"n": "\n"}.get(one[1], one[1]), sample[1]["name"]) == wild


def test_numbers_of_all_kinds_are_written() -> None:
    gauge = Gauge("g", "Any.", ["n"])
    values = [0, -1, 1.5, 1e300, 1e-300, float("inf"), float("-inf"), float("nan"), 2**60, True]
    for place, value in enumerate(values):
        gauge.set(value, str(place))
    found = [value for _, _, value in read(text([gauge]))["g"].samples]
    assert str(found) == str([float(one) for one in values])


def test_what_is_unknown_is_left_out_and_what_is_gone_stays_away() -> None:
    metrics = Metrics("1")
    values: list[float | None] = [0.5, None]
    metrics.collect.append(lambda: metrics.coverage.set(values[0], "a", "m"))
    assert len(read(metrics.text())["varnn_coverage_ratio"].samples) == 1
    values.pop(0)
    assert read(metrics.text())["varnn_coverage_ratio"].samples == []
    metrics.coverage.set(0.5, "retired", "m")  # by what no longer is there to set it
    assert read(metrics.text())["varnn_coverage_ratio"].samples == []


def test_labels_beyond_the_bound_are_counted_together() -> None:
    counter = Counter("c", "Any.", ["a", "b"], most=3)
    histogram = Histogram("h", "Any.", ["a"], most=3, bounds=[1])
    for number in range(100):
        counter.add(str(number), "x")
        histogram.observe(0.5, str(number))
    found = read(text([counter, histogram]))
    assert [value for _, _, value in found["c"].samples] == [1, 1, 1, 97]
    assert found["c"].samples[-1][1] == {"a": "other", "b": "other"}
    assert [value for suffix, _, value in found["h"].samples if suffix == "_count"] == [1, 1, 1, 97]


def test_wrong_labels_and_units_are_refused() -> None:
    with pytest.raises(ConfigError, match="has the labels"):
        Counter("c", "Any.", ["a"]).add("x", "y")
    with pytest.raises(ConfigError, match="must end with its unit 'seconds'"):
        Gauge("g", "Any.", unit="seconds")


def test_threads_that_count_at_once_lose_nothing() -> None:
    metrics = Metrics("1")

    def count() -> None:
        for _ in range(5000):
            metrics.observations.add("house")
            metrics.commits.observe(0.001, "house")

    threads = [threading.Thread(target=count) for _ in range(4)]
    for one in threads:
        one.start()
    for _ in range(20):
        read(metrics.text())  # a scrape in the middle is whole
    for one in threads:
        one.join()
    found = read(metrics.text())
    assert found["varnn_observations"].samples[0][2] == 20_000
    assert ("_count", {"stream": "house"}, 20_000) in found["varnn_commit_duration_seconds"].samples


def test_the_memory_is_that_of_this_process() -> None:
    used = resident_bytes()
    assert used is not None and 10_000_000 < used < 100_000_000_000
