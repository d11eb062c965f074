"""How much each caller may still do: a token bucket each, in a table that cannot grow without end."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable


class Buckets:
    """Token buckets by caller: each fills at a rate up to a burst, and what is done is taken out of it.

    A bucket may be overdrawn: who has anything left may do a thing of any size, and then waits until that is
    made up for. So a large request is never refused for good, and the rate holds in the long run. The table
    forgets who has not been seen for longest, so that it never has more than ``most`` entries; a caller who
    was forgotten begins with a full bucket.

    Parameters
    ----------
    rate : float
        What is filled in a second.
    burst : float
        What a bucket holds.
    most : int, default=10_000
        Callers that are remembered.
    clock : callable, default=time.monotonic
        Gives seconds.

    Examples
    --------
    >>> now = 0.0
    >>> buckets = Buckets(rate=10, burst=20, clock=lambda: now)
    >>> buckets.wait("a")
    0.0
    >>> buckets.take("a", 50)
    >>> buckets.wait("a")  # 31 too few for the next one
    3.1
    """

    def __init__(
        self, rate: float, burst: float, *, most: int = 10_000, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._burst, self._most, self._clock = rate, burst, most, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # what was left, and when

    def wait(self, caller: str) -> float:
        """Seconds until this caller may do the next thing; 0 is now."""
        left = self._now_left(caller, self._clock())
        return max(0.0, (1.0 - left) / self._rate)

    def take(self, caller: str, amount: float = 1.0) -> None:
        """Take something out of a caller's bucket."""
        now = self._clock()
        self._left[caller] = (self._now_left(caller, now) - amount, now)
        self._left.move_to_end(caller)
        if len(self._left) > self._most:
            self._left.popitem(last=False)

    def _now_left(self, caller: str, now: float) -> float:
        known = self._left.get(caller)
        if known is None:
            return self._burst
        left, since = known
        return min(self._burst, left + max(0.0, now - since) * self._rate)

    def __len__(self) -> int:
        return len(self._left)


def retry_after(seconds: float) -> tuple[bytes, bytes]:
    """Write the header that says when to come again, in whole seconds.

    Examples
    --------
    >>> retry_after(0.2)
    (b'retry-after', b'1')
    """
    return b"retry-after", str(max(1, math.ceil(seconds))).encode()
