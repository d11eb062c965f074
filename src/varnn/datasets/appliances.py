"""Appliances energy: one house near Mons, every 10 minutes for 4.5 months.

The target is the energy used by appliances, in Wh. The 27 inputs are the energy used by lights,
temperature and humidity of nine rooms, the weather of the nearest airport, and two columns of
random numbers (rv1, rv2) that the authors put in to test feature selection.
"""

import numpy as np

from varnn.data.panel import Panel
from varnn.datasets import _tables
from varnn.datasets._source import Source, checksums
from varnn.datasets.store import Members

SOURCE = Source(
    name="appliances",
    url="https://archive.ics.uci.edu/static/public/374/appliances+energy+prediction.zip",
    page="https://archive.ics.uci.edu/dataset/374/appliances+energy+prediction",
    licence="CC BY 4.0",
    citation=(
        "Candanedo, Feldheim, Deramaix (2017). Data driven prediction models of energy use of "
        "appliances in a low-energy house. Energy and Buildings 140, 81-97."
    ),
    rows=19_735,
    inputs=27,
    checksums=checksums("appliances.sha256"),
    largest=11_979_363,
    megabytes=32,
)


def read(members: Members, *, paper: bool) -> Panel:
    """Read the panel; the paper took it as it is published, so `paper` changes nothing."""
    (content,) = members.read(["energydata_complete.csv"])
    columns = _tables.columns(content)
    time = columns.pop("date").astype("datetime64[us]")
    target = columns.pop("Appliances")
    return Panel.from_arrays(
        np.column_stack(list(columns.values())),
        target,
        time=time,
        input_names=list(columns),
        target_name="Appliances",
    )
