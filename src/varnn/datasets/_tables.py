"""The bytes of a published CSV file -> one NumPy array per column."""

from typing import Any

import numpy.typing as npt

from varnn.errors import require


def columns(content: bytes) -> dict[str, npt.NDArray[Any]]:
    r"""Parse a CSV file; missing numbers become NaN and spaces around names and numbers are dropped.

    Examples
    --------
    >>> columns(b'"Time [s]", HR\n0," 94"\n1,NaN\n')
    {'Time [s]': array([0, 1]), 'HR': array([94., nan])}
    """
    csv = require("pyarrow.csv", extra="files", purpose="reading the published data sets")
    pyarrow = require("pyarrow", extra="files", purpose="reading the published data sets")
    options = csv.ConvertOptions(null_values=["NA", "NaN", ""])
    table = csv.read_csv(pyarrow.BufferReader(content), convert_options=options)
    return {name.strip(): table.column(index).to_numpy() for index, name in enumerate(table.column_names)}
