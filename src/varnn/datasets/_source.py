"""What is published about one data set: its files, where they come from, under which terms."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from urllib.parse import unquote


@dataclass(frozen=True, kw_only=True)
class Source:
    """One published data set.

    Parameters
    ----------
    name : str
        What :func:`varnn.datasets.load` calls it.
    url : str
        The publisher's zip.
    page : str
        The publisher's page about the data, for people.
    licence, citation : str
        The terms of use, and what to cite.
    rows, inputs : int
        Size as the paper counts it (``paper=True``).
    checksums : mapping
        SHA-256 of each file that is used, by file name.
    largest : int
        Bytes of the largest of these files: one that expands to more is another.
    megabytes : int
        Most that the publisher's zip may have, with room to spare: a download that goes on beyond is stopped.
    inner_archives : tuple of str, default=()
        Names of zips inside the publisher's zip, which may also lie on disk by themselves.

    Examples
    --------
    >>> from varnn.datasets.appliances import SOURCE
    >>> SOURCE.archives, list(SOURCE.checksums)
    (('appliances.zip', 'appliances+energy+prediction.zip'), ['energydata_complete.csv'])
    """

    name: str
    url: str
    page: str
    licence: str
    citation: str
    rows: int
    inputs: int
    checksums: Mapping[str, str]
    largest: int
    megabytes: int
    inner_archives: tuple[str, ...] = ()

    @property
    def archives(self) -> tuple[str, ...]:
        """Names under which a zip of this data set is looked for; a download gets the first."""
        return (f"{self.name}.zip", unquote(self.url.rsplit("/", 1)[-1]), *self.inner_archives)


def checksums(file_name: str) -> dict[str, str]:
    """Read a list beside this module, in the format of ``sha256sum --check``.

    Examples
    --------
    >>> checksums("appliances.sha256")
    {'energydata_complete.csv': '2820bf712ad0275cb18b85a05250926100d8e65ebb9f4d2d016ca91ea152a25d'}
    """
    lines = resources.files("varnn.datasets").joinpath(file_name).read_text().splitlines()
    return {name: checksum for checksum, name in (line.split(maxsplit=1) for line in lines)}
