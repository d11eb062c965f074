"""Asking a stream that may be busy: wait and ask again, in order, until there is an answer or an end."""

import logging
from collections.abc import Sequence
from threading import Event
from typing import Any

from varnn.errors import OutputError
from varnn.service.errors import Busy, Closing, NotFound
from varnn.service.service import Service

_log = logging.getLogger(__name__)
_FIRST_WAIT, _LONGEST_WAIT = 0.02, 5.0  # seconds


def ask(
    service: Service, stream: str, messages: Sequence[dict[str, Any]], stop: Event, *, pure: bool = False
) -> list[dict[str, Any]] | None:
    """Answers that are on disk, in the order of the messages; None where the service ends first.

    A stream that is busy, changes its models or cannot write to its disk has done nothing with the messages,
    and is asked again.

    Parameters
    ----------
    service : Service
        Whose streams there are.
    stream : str
        Which of them to ask.
    messages : sequence of dict
        What to say.
    stop : Event
        Set when there is no more waiting.
    pure : bool, default=False
        Whether nothing may change.

    Raises
    ------
    NotFound
        There is no such stream.
    """
    wait, told = _FIRST_WAIT, False
    while not stop.is_set() and service.is_open:
        try:
            return service.stream(stream).submit(messages, pure=pure).result()
        except (Busy, Closing, OutputError) as error:
            if wait > 1 and not told:
                _log.warning("a connector waits, and holds back what it is sent: %s", error)
                told = True
        except NotFound:
            raise
        except Exception as error:  # a fault of ours: what one message met must not hold up those after it
            if len(messages) == 1:
                _log.exception("a message could not be answered")
                return [{"error": f"a fault of the service, which changed nothing: {error!r}"}]
            found = [ask(service, stream, [one], stop, pure=pure) for one in messages]
            return None if None in found else [answer for one in found for answer in one or ()]
        stop.wait(wait)
        wait = min(2 * wait, _LONGEST_WAIT)
    return None
