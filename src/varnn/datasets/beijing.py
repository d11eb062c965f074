"""Beijing air: hourly pollutants and weather at 12 stations, March 2013 to February 2017.

The target is PM2.5 in µg/m³; one series per station. The wind direction is text and is left out.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from varnn.data import preparation
from varnn.data.panel import Panel
from varnn.datasets import _tables
from varnn.datasets._source import Source, checksums
from varnn.datasets.store import Members

SOURCE = Source(
    name="beijing",
    url="https://archive.ics.uci.edu/static/public/501/beijing+multi+site+air+quality+data.zip",
    page="https://archive.ics.uci.edu/dataset/501/beijing+multi+site+air+quality+data",
    licence="CC BY 4.0",
    citation=(
        "Zhang, Guo, Dong, He, Xu, Chen (2017). Cautionary tales on air-quality improvement in "
        "Beijing. Proceedings of the Royal Society A 473, 20170457."
    ),
    rows=420_768,
    inputs=9,
    checksums=checksums("beijing.sha256"),
    largest=2_871_076,
    megabytes=64,
    inner_archives=("PRSA2017_Data_20130301-20170228.zip",),
)

TARGET = "PM2.5"
INPUTS = ("PM10", "SO2", "NO2", "CO", "O3", "TEMP", "PRES", "DEWP", "RAIN", "WSPM")
PAPER_INPUTS = tuple(name for name in INPUTS if name != "PM10")


def read(members: Members, *, paper: bool) -> Panel:
    """Read the panel; `paper` takes PM10 out and interpolates what is missing, target included.

    Interpolation draws lines to values that are measured later, so figures made with
    ``paper=True`` look into the future, as the published ones do.
    """
    names = PAPER_INPUTS if paper else INPUTS
    files = sorted(members.source.checksums)
    stations = [_tables.columns(content) for content in members.read(files)]
    panel = Panel.from_arrays(
        np.concatenate([np.column_stack([station[name] for name in names]) for station in stations]),
        np.concatenate([station[TARGET] for station in stations]),
        series=np.repeat([_name(file) for file in files], [len(station[TARGET]) for station in stations]),
        time=np.concatenate([_time(station) for station in stations]),
        input_names=names,
        target_name=TARGET,
    )
    panel = replace(panel, ignored=("wd",))
    return preparation.fill_gaps(panel, "interpolate", target=True) if paper else panel


def _name(file: str) -> str:
    """PRSA_Data_Dongsi_20130301-20170228.csv -> Dongsi."""
    return file.split("_")[2]


def _time(station: dict[str, npt.NDArray[Any]]) -> npt.NDArray[np.datetime64]:
    months = (station["year"] - 1970) * 12 + station["month"] - 1
    hours = (station["day"] - 1) * 24 + station["hour"]
    first_days = months.astype("datetime64[M]").astype("datetime64[us]")
    time: npt.NDArray[np.datetime64] = first_days + hours.astype("timedelta64[h]")
    return time
