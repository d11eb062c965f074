"""Innovations -> events (has the stream changed?) and diagnoses (what do the errors still hold?)."""

from varnn.monitoring.diagnosis import Diagnosis
from varnn.monitoring.diagnostics import diagnose
from varnn.monitoring.event import Event
from varnn.monitoring.monitor import Monitor, detect

__all__ = ["Diagnosis", "Event", "Monitor", "detect", "diagnose"]
