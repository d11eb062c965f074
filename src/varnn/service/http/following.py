"""Server-sent events: rows and events of a stream as they come, gathered ten times a second.

A follower that reads too slowly loses rows, and is told so; the stream itself never waits for one.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from varnn.service.errors import Busy
from varnn.service.live_stream import LiveStream
from varnn.streaming.json_text import write

_EVERY = 0.1  # seconds between two batches
_MOST_WAITING = 5000  # rows that wait for a slow follower
_ALIVE = 15.0  # seconds after which something is sent even so, so that proxies keep the line open


class _Following:
    """What waits for one follower."""

    def __init__(self, wanted: set[str]) -> None:
        self._wanted = wanted
        self.rows: deque[dict[str, Any]] = deque(maxlen=_MOST_WAITING)
        self.events: deque[dict[str, Any]] = deque(maxlen=_MOST_WAITING)
        self.lost = 0

    def hear(self, rows: list[dict[str, Any]], events: list[dict[str, Any]]) -> None:
        """Take in what a stream tells, in the stream's thread."""
        if self._wanted:
            rows = [one for one in rows if json.dumps(one["series"]) in self._wanted]
            events = [one for one in events if json.dumps(one["series"]) in self._wanted]
        for waiting, new in ((self.rows, rows), (self.events, events)):
            self.lost += max(0, len(waiting) + len(new) - _MOST_WAITING)
            waiting.extend(new)  # a deque takes and gives in one step each, of any thread


async def followed(request: Request, live: LiveStream, wanted: set[str]) -> Response:
    """Answer with rows and events from here on, until the follower leaves or the service ends."""
    state = request.app.state
    if state.followers >= state.limits.followers:
        raise Busy(f"{state.limits.followers} followers are here, and that is the limit. Try again later.")
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    if request.method == "HEAD":  # what follows has no end to wait for
        return Response(media_type="text/event-stream", headers=headers)
    return StreamingResponse(
        _sent(request, live, _Following(wanted)), media_type="text/event-stream", headers=headers
    )


async def _sent(request: Request, live: LiveStream, following: _Following) -> AsyncIterator[bytes]:
    state = request.app.state
    state.followers += 1
    unfollow = live.follow(following.hear)
    try:
        yield b"retry: 2000\n\n: here\n\n"
        quiet = 0.0
        while not state.ending() and state.service.has_stream(live.name):
            await asyncio.sleep(_EVERY)
            quiet += _EVERY
            for name, waiting in (("rows", following.rows), ("events", following.events)):
                some = [waiting.popleft() for _ in range(len(waiting))]
                if some:
                    yield b"event: %s\ndata: %s\n\n" % (name.encode(), write(some))
                    quiet = 0.0
            if following.lost:
                lost, following.lost = following.lost, 0
                yield b"event: lagging\ndata: %d\n\n" % lost
            if quiet >= _ALIVE:
                yield b": alive\n\n"
                quiet = 0.0
    finally:
        unfollow()
        state.followers -= 1
