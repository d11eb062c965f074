"""Objects <-> bytes that another process can read.

What is sent is written and read by processes of one user and one run; nothing is read from files.
"""

import pickle
from typing import Any


def dumps(value: Any) -> bytes:
    """Write an object; functions and classes of a script, and those without a name, by value.

    A worker so has no need to import the script again, which would run it once more.

    Examples
    --------
    >>> pickle.loads(dumps(lambda x: x + 1))(2)
    3
    """
    try:
        found = pickle.dumps(value, protocol=5)
    except Exception:
        return _by_value(value)
    return _by_value(value) if b"__main__" in found else found


def _by_value(value: Any) -> bytes:
    import cloudpickle  # late, as it is seldom needed

    return bytes(cloudpickle.dumps(value))
