"""A function and many jobs -> their results: on the cores of this machine, or on a Ray cluster."""

from varnn.jobs._outcome import Done, Failure
from varnn.jobs.run import run

__all__ = ["Done", "Failure", "run"]
