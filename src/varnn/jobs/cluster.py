"""A Ray cluster for those who need more of it than jobs: actors that stay."""

from varnn.jobs._ray import connected

__all__ = ["connected"]
