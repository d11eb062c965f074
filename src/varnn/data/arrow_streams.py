"""Anything that hands over Arrow -> a pyarrow table: streams, batches, data sets, other libraries' tables.

The Arrow PyCapsule interface [1]_ is how libraries give each other rows without knowing each other: what has
``__arrow_c_stream__`` (or ``__arrow_c_array__``, a single batch) can be read. A stream can be read once.

References
----------
.. [1] "The Arrow PyCapsule Interface", Apache Arrow's format documentation.
"""

from typing import Any

from varnn.errors import DataError, require

_CAPSULES = ("__arrow_c_stream__", "__arrow_c_array__")


def is_table(rows: Any) -> bool:
    """Tell whether rows come with columns: a frame, a relation, an Arrow stream; not an array or a series.

    Examples
    --------
    >>> import polars
    >>> is_table(polars.DataFrame({"load": [1.0]})), is_table(polars.Series([1.0])), is_table([[1.0]])
    (True, False, False)
    """
    kind = type(rows)
    if hasattr(kind, "columns"):
        return True
    if any(hasattr(kind, one) for one in _CAPSULES):  # a column has a type and no schema
        return not hasattr(kind, "dtype") and not hasattr(kind, "type")
    return _is_arrow_dataset(rows)


def as_table(rows: Any) -> Any:
    """Make a pyarrow table of what hands over Arrow, and is no table by itself; leave the rest as it is.

    Examples
    --------
    >>> import pyarrow
    >>> table = pyarrow.table({"load": [1.0, 2.0]})
    >>> as_table(table.to_reader()).equals(table)
    True
    """
    if _is_arrow_dataset(rows):
        return rows.to_table()
    if not any(hasattr(type(rows), one) for one in _CAPSULES):
        return rows
    pyarrow = require("pyarrow", extra="files", purpose=f"reading rows of a {type(rows).__name__}")
    try:
        return pyarrow.table(rows)
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise DataError(
            f"rows must come in columns; {type(rows).__name__} cannot be read so: {reason.rstrip('.')}. "
            "Give a frame, or a stream that was not read before."
        ) from None


def _is_arrow_dataset(rows: Any) -> bool:
    """Tell pyarrow's data sets and scanners, which offer no capsule."""
    return type(rows).__module__.startswith("pyarrow.") and hasattr(type(rows), "to_table")
