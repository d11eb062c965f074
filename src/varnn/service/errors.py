"""What a service refuses for reasons of its own, each with the status that HTTP has for it."""

from varnn.errors import VarnnError


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
