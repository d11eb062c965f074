"""When to end a training before its time."""

from threading import Event


class OwnEvent(Event):
    """An event beside that of a caller: set when either is, and setting it leaves the caller's alone.

    Parameters
    ----------
    given : Event or None, default None
        The caller's.

    Examples
    --------
    >>> given = Event()
    >>> ours = OwnEvent(given)
    >>> given.set()
    >>> ours.is_set()
    True
    """

    def __init__(self, given: Event | None = None) -> None:
        super().__init__()
        self.given = given

    def is_set(self) -> bool:
        """Whether one of the two is set."""
        return super().is_set() or (self.given is not None and self.given.is_set())
