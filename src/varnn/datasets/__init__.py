"""A name -> `Panel`: the three data sets of the paper, and synthetic streams."""

from varnn.datasets import synthetic
from varnn.datasets.registry import find, load, names, published

__all__ = ["find", "load", "names", "published", "synthetic"]
