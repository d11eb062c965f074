"""Inputs, then labels, one step at a time -> predictions: one series, a fleet, by name, linked; NumPy."""

from varnn.streaming.by_name import Streams
from varnn.streaming.late import LateLabels
from varnn.streaming.linked import LinkedStreams
from varnn.streaming.store import Store
from varnn.streaming.stream import Stream

__all__ = ["LateLabels", "LinkedStreams", "Store", "Stream", "Streams"]
