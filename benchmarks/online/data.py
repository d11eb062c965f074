"""The public files of the tables -> (T, C) numbers, names of channels, times; each file checked first.

They are no part of this project. They are looked for in the folder ``online`` of the places that
`varnn.datasets` looks in: ``$VARNN_DATA_DIR``, ``./data`` and the user's cache folder.
"""

import csv
import gzip
import hashlib
import io
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from varnn._types import DoubleArray
from varnn.datasets import store
from varnn.errors import DataError, check_choice

FOLDER = "online"  # of each place


@dataclass(frozen=True, kw_only=True)
class File:
    """What is published: a file, where, under which terms, and how its rows are read."""

    name: str
    published: str  # repository and path in it
    url: str
    licence: str
    sha256: str
    time_format: str | None = None  # of the first column; None: there are neither times nor names
    counters: tuple[str, ...] = ()  # columns that measure nothing


@dataclass(frozen=True, eq=False)
class Recorded:
    """One file, read: values (T, C), names of the C channels, times (T,) or None."""

    values: DoubleArray
    channels: tuple[str, ...]
    times: npt.NDArray[Any] | None


_RAW = "https://raw.githubusercontent.com"
FILES = {
    "ETTh1": File(
        name="ETTh1.csv",
        published="zhouhaoyi/ETDataset, ETT-small/ETTh1.csv",
        url=f"{_RAW}/zhouhaoyi/ETDataset/main/ETT-small/ETTh1.csv",
        sha256="f18de3ad269cef59bb07b5438d79bb3042d3be49bdeecf01c1cd6d29695ee066",
        licence="CC BY-ND 4.0",
        time_format="%Y-%m-%d %H:%M:%S",
    ),
    "ETTh2": File(
        name="ETTh2.csv",
        published="zhouhaoyi/ETDataset, ETT-small/ETTh2.csv",
        url=f"{_RAW}/zhouhaoyi/ETDataset/main/ETT-small/ETTh2.csv",
        sha256="a3dc2c597b9218c7ce1cd55eb77b283fd459a1d09d753063f944967dd6b9218b",
        licence="CC BY-ND 4.0",
        time_format="%Y-%m-%d %H:%M:%S",
    ),
    "WTH": File(
        name="WTH.csv",
        published="songjiang0909/DeepFS, data/WTH.csv",
        url="https://github.com/songjiang0909/DeepFS",
        licence="MIT (its repository)",
        sha256="a00aa96b7e73af4fab4e03a790572e78fff037a29eb579a36210a2da6d64032f",
        time_format="%m/%d/%Y %H:%M",
        counters=("time",),
    ),
    "Exchange": File(
        name="exchange_rate.txt.gz",
        published="laiguokun/multivariate-time-series-data, exchange_rate/exchange_rate.txt.gz",
        url=f"{_RAW}/laiguokun/multivariate-time-series-data/master/exchange_rate/exchange_rate.txt.gz",
        licence="none stated",
        sha256="6a4fbb561dcdee43f071a83badbeec9223a335552278348656738b556f1c2e9d",
    ),
}


def load(name: str) -> Recorded:
    """Read one of `FILES`, wherever on this machine it is, once its SHA-256 is right."""
    check_choice("data", name, tuple(FILES))
    file = FILES[name]
    return parsed(file, _content(file))


def parsed(file: File, content: bytes) -> Recorded:
    r"""Read rows of numbers, after a line of names and behind a time where the file has them.

    Examples
    --------
    >>> wth = parsed(FILES["WTH"], b"date,Wind,time\n1/2/2010 0:00,7,0\n1/2/2010 1:00,5,1\n")
    >>> wth.channels, wth.values.tolist(), str(wth.times[0])
    (('Wind',), [[7.0], [5.0]], '2010-01-02T00:00:00')
    """
    text = gzip.decompress(content) if file.name.endswith(".gz") else content
    rows = [row for row in csv.reader(io.StringIO(text.decode())) if row]
    if file.time_format is None:
        values = np.array(rows, dtype=np.float64)
        return Recorded(values, tuple(f"rate {number + 1}" for number in range(values.shape[1])), None)
    header, *rows = rows
    kept = [at for at, column in enumerate(header) if at and column not in file.counters]
    times = np.array([datetime.strptime(row[0], file.time_format) for row in rows], "datetime64[s]")
    values = np.array([[row[at] for at in kept] for row in rows], dtype=np.float64)
    return Recorded(values, tuple(header[at] for at in kept), times)


def _content(file: File) -> bytes:
    path = next((path for path in places(file) if path.is_file()), None)
    if path is None:
        looked = ", ".join(repr(str(one)) for one in places(file))
        unset = "" if len(places(file)) == 3 else f"${store.DIRECTORY_VARIABLE} is not set. "
        raise DataError(
            f"this bench needs {file.name!r}, which is not on this machine; looked for {looked}. {unset}"
            f"It is published as {file.published} ({file.url}): put it into one of these places."
        )
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != file.sha256:
        raise DataError(
            f"{str(path)!r} must have SHA-256 {file.sha256}; it has {found}. It is damaged or another "
            f"version: fetch it anew from {file.published} ({file.url})."
        )
    return content


def places(file: File) -> list[Path]:
    """List where a file may lie, first to last."""
    return [place / FOLDER / file.name for place in store.places()]
