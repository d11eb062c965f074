"""What is counted of a service, by Prometheus' names; the text of ``GET /metrics``.

Labels are names of streams and models, which admins give, and words of closed lists (routes as templates,
kinds, reasons): never a name of a series, which callers give.
"""

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from varnn.service.http._openmetrics import CONTENT_TYPE, Counter, Family, Gauge, Histogram, Info, text

__all__ = ["CONTENT_TYPE", "Metrics"]

# Seconds: fine where a step should be (under 5 ms, 20 ms at worst), coarse up to what is cut off.
_REQUEST_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)
_COMMIT_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)


class Metrics:
    """All metrics of a service, one attribute each.

    ``collect`` holds functions that are called before each scrape: those that set the gauges of streams,
    which hold nothing from one scrape to the next.

    Parameters
    ----------
    version : str
        Version of this library.

    Examples
    --------
    >>> metrics = Metrics("1.0")
    >>> metrics.observations.add("house", by=100)
    >>> metrics.collect.append(lambda: metrics.queue_depth.set(7, "house"))
    >>> print(*[one for one in metrics.text().decode().splitlines() if "house" in one], sep=chr(10))
    varnn_observations_total{stream="house"} 100
    varnn_queue_depth{stream="house"} 7
    """

    def __init__(self, version: str) -> None:
        by_stream, by_model = ("stream",), ("stream", "model")
        self.requests = Histogram(
            "varnn_request_duration_seconds",
            "Time from a request to the end of its answer, but for live followers.",
            ("method", "route", "status"),
            unit="seconds",
            bounds=_REQUEST_BOUNDS,
        )
        self.observations = Counter("varnn_observations", "Labels taken in.", by_stream)
        self.predictions = Counter("varnn_predictions", "Predictions given.", by_stream)
        self.refused = Counter("varnn_refused", "Messages refused.", ("stream", "reason"))
        self.events = Counter("varnn_events", "Events of the monitor.", ("stream", "kind"))
        self.coverage = Gauge(
            "varnn_coverage_ratio", "Share of recent labels within their intervals.", by_model, unit="ratio"
        )
        self.innovation_scale = Gauge(
            "varnn_innovation_scale", "Size of recent innovations, in the target's unit.", by_model
        )
        self.skill = Gauge(
            "varnn_skill_ratio",
            "1 less the recent squared error over that of persistence.",
            by_model,
            unit="ratio",
        )
        self.queue_depth = Gauge("varnn_queue_depth", "Messages that wait.", by_stream)
        self.commits = Histogram(
            "varnn_commit_duration_seconds",
            "Time until a group of messages was on disk.",
            by_stream,
            unit="seconds",
            bounds=_COMMIT_BOUNDS,
        )
        self.series = Gauge("varnn_series", "Series known.", by_stream)
        self.followers = Gauge("varnn_followers", "Callers that follow live.")
        self.build = Info("varnn_build", "What runs here.", ("version", "python"))
        self.build.tell(version, ".".join(map(str, sys.version_info[:3])))
        self._started = Gauge(
            "process_start_time_seconds", "Start of the service, in seconds since 1970.", unit="seconds"
        )
        self._started.set(time.time())
        self._memory = Gauge("process_resident_memory_bytes", "Memory in use.", unit="bytes")
        self.collect: list[Callable[[], None]] = [lambda: self._memory.set(resident_bytes())]

    def text(self) -> bytes:
        """Give the document of a scrape, of the type ``CONTENT_TYPE``."""
        # What is looked up anew must not outlive its stream or its model.
        for gauge in (self.coverage, self.innovation_scale, self.skill, self.queue_depth, self.series):
            gauge.clear()
        for one in self.collect:
            one()
        return text([one for one in vars(self).values() if isinstance(one, Family)])


def resident_bytes() -> int | None:
    """Give the memory that this process has, as the system counts it; None where it does not say."""
    with suppress(OSError, ValueError, IndexError):
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return None
