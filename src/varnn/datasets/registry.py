"""A name -> Panel: the three data sets of the paper, and synthetic streams.

The published files are not part of this library. They are found in ``$VARNN_DATA_DIR``, ``./data``
or the user's cache folder, or downloaded there, and every file is checked by SHA-256 before use.
"""

from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from varnn.data.panel import Panel
from varnn.datasets import appliances, beijing, bidmc, store
from varnn.datasets._source import Source
from varnn.errors import ConfigError, nearest

__all__ = ["appliances", "beijing", "bidmc", "find", "load", "names", "published"]

# Each module holds one SOURCE, and read(members, *, paper, **options) -> Panel.
_PUBLISHED: dict[str, ModuleType] = {"appliances": appliances, "bidmc": bidmc, "beijing": beijing}


def names() -> tuple[str, ...]:
    """Names that :func:`load` knows, those of the paper's data sets first.

    Examples
    --------
    >>> names()[:3]
    ('appliances', 'bidmc', 'beijing')
    """
    return (*_PUBLISHED, "synthetic")


def load(name: str, *, paper: bool = False, download: bool = True, **options: Any) -> Panel:
    """Load a data set as a panel, in original units.

    Parameters
    ----------
    name : str
        ``"appliances"``, ``"bidmc"``, ``"beijing"`` or ``"synthetic"``; :func:`names` lists all.
    paper : bool, default False
        Take exactly the paper's inputs and fill gaps as the paper did. Otherwise all inputs, and
        what is missing stays missing (NaN).
    download : bool, default True
        Fetch files that are not on this machine; otherwise their absence is an error.
    **options : Any
        Of the data set: ``inputs="waveform"`` or ``"numerics"`` for bidmc; those of
        ``varnn.datasets.synthetic.panel`` for synthetic.

    Returns
    -------
    Panel
        Its rows, with name, licence and citation.

    Examples
    --------
    >>> len(load("synthetic", rows=100))
    100
    >>> load("bejing")
    Traceback (most recent call last):
    varnn.errors.ConfigError: there is no data set 'bejing'. Did you mean 'beijing'? ...
    """
    if name == "synthetic":
        from varnn.datasets import synthetic

        if paper:
            raise ConfigError(
                "paper=True needs a data set of the paper; 'synthetic' is not one. Leave it out."
            )
        return synthetic.panel(**options)
    source = published(name)
    members = store.obtain(source, download=download)
    panel: Panel = _PUBLISHED[name].read(members, paper=paper, **options)
    return replace(panel, name=source.name, licence=source.licence, citation=source.citation)


def published(name: str) -> Source:
    """Record of what is published about a data set: its files and checksums, address and terms.

    Parameters
    ----------
    name : str
        One of :func:`names` but ``"synthetic"``, which has no files.

    Examples
    --------
    >>> published("beijing").licence
    'CC BY 4.0'
    """
    if name == "synthetic":
        raise ConfigError("'synthetic' is computed when it is loaded; there are no files of it.")
    if name not in _PUBLISHED:
        raise ConfigError(f"there is no data set {name!r}. {nearest(name, names())}")
    source: Source = _PUBLISHED[name].SOURCE
    return source


def find(name: str) -> Path | None:
    """Place of a published data set on this machine: its zip or folder, or None.

    Parameters
    ----------
    name : str
        One of :func:`names` but ``"synthetic"``.

    Examples
    --------
    >>> if find("beijing") is None:
    ...     hint = "run: varnn datasets fetch beijing"
    """
    members = store.locate(published(name))
    return None if members is None else members.place
