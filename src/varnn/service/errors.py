"""What a service refuses for reasons of its own, each with the status that HTTP has for it."""

from typing import Any

from varnn.errors import VarnnError
from varnn.streaming.messages import LONGEST_NAME


class ServiceError(VarnnError):
    """A request that cannot be done; ``status`` is that of its answer."""

    status = 400


class NotFound(ServiceError):  # noqa: N818 - the name that HTTP has for it
    """There is no such stream, series or model."""

    status = 404


class Conflict(ServiceError):  # noqa: N818 - the name that HTTP has for it
    """It contradicts what is there."""

    status = 409


class Busy(ServiceError):  # noqa: N818 - what is said of a queue that is full
    """More is waiting than is let wait; ``after`` says how many seconds to wait before another try."""

    status = 429
    after = 1


class Closing(ServiceError):  # noqa: N818 - what is said of a service that ends
    """The service, or the stream, is ending."""

    status = 503
    after = 5


def refusal(message: Any, why: str) -> dict[str, Any]:
    """Answer to a message that is refused before its series is looked up, which it names where it can.

    Examples
    --------
    >>> refusal({"series": "north"}, "it has no x.")
    {'series': 'north', 'error': 'it has no x.'}
    """
    name = message.get("series") if isinstance(message, dict) else None
    if type(name) not in (str, int) or len(str(name)) > LONGEST_NAME:
        return {"error": why}
    return {"series": name, "error": why}
