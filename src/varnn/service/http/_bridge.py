"""Answers from the threads of streams to an event loop: one wake-up for all that came since the last one."""

import asyncio
from collections import deque
from concurrent.futures import Future
from typing import Any


class Bridge:
    """What asyncio's ``wrap_future`` does, for many futures that come together.

    A stream answers all requests of a transaction at once. To wake up the loop for each of them takes longer
    than the answers do.

    Parameters
    ----------
    loop : asyncio.AbstractEventLoop
        Where answers are awaited.

    Examples
    --------
    >>> async def twice() -> list[int]:
    ...     bridge, far = Bridge(asyncio.get_running_loop()), [Future(), Future()]
    ...     near = [bridge.awaited(one) for one in far]
    ...     for one in far:
    ...         one.set_result(7)
    ...     return await asyncio.gather(*near)
    >>> asyncio.run(twice())
    [7, 7]
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._done: deque[tuple[asyncio.Future[Any], Future[Any]]] = deque()
        self._is_awake = False

    def awaited(self, far: Future[Any]) -> asyncio.Future[Any]:
        """A future of the loop that has the result of another one; where it is cancelled, that is, too."""
        near: asyncio.Future[Any] = self.loop.create_future()
        near.add_done_callback(lambda near: near.cancelled() and far.cancel())
        far.add_done_callback(lambda far: self._came(near, far))
        return near

    def _came(self, near: asyncio.Future[Any], far: Future[Any]) -> None:
        """Hear of a result, in a stream's thread."""
        self._done.append((near, far))
        # Who finds it awake comes before it is put to sleep, and so before the list is gone through.
        if not self._is_awake:
            self._is_awake = True
            self.loop.call_soon_threadsafe(self._hand_over)

    def _hand_over(self) -> None:
        self._is_awake = False
        while self._done:
            near, far = self._done.popleft()
            if near.done() or far.cancelled():
                near.cancel()
                continue
            error = far.exception()
            if error is None:
                near.set_result(far.result())
            else:
                near.set_exception(error)
