"""Innovations -> events (has the stream changed?) and diagnoses (what do the errors still hold?)."""

from varnn.monitoring.diagnosis import Diagnosis
from varnn.monitoring.diagnostics import diagnose, diagnose_trace
from varnn.monitoring.event import Event
from varnn.monitoring.failures import Failures, failures
from varnn.monitoring.monitor import Monitor, detect
from varnn.monitoring.trace import PredictionTrace
from varnn.monitoring.watching import Watched, watch

__all__ = [
    "Diagnosis",
    "Event",
    "Failures",
    "Monitor",
    "PredictionTrace",
    "Watched",
    "detect",
    "diagnose",
    "diagnose_trace",
    "failures",
    "watch",
]
