"""Objects <-> bytes that another process can read.

What is sent is written and read by processes of one user and one run; nothing is read from files.
"""

import pickle
from collections.abc import Callable
from typing import Any

from varnn.errors import ConfigError, VarnnError, require
from varnn.jobs._outcome import Done, Failure


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
    # late, as it is seldom needed
    cloudpickle = require("cloudpickle", extra="train", purpose="sending functions of a script to workers")
    return bytes(cloudpickle.dumps(value))


def common_bytes(function: Callable[[Any, Any], Any], shared: Any) -> bytes:
    """Write what all jobs share."""
    try:
        return dumps((function, shared))
    except VarnnError:
        raise
    except Exception as error:
        raise ConfigError(
            "the function of jobs, and what they share, must be something that can be pickled: "
            f"{type(error).__name__}: {error}. Leave open files, locks and the like out of it."
        ) from error


def loaded(number: int, payload: bytes | None, failure: Failure | None, seconds: float) -> Done[Any]:
    """Read what a worker sent."""
    if payload is None:
        return Done(number, None, failure, seconds)
    try:
        return Done(number, pickle.loads(payload), None, seconds)
    except Exception as error:
        return Done(number, None, Failure.of(error), seconds)
