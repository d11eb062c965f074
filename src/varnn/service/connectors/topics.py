"""Names of streams and series as levels of MQTT topics, and back.

A level is the name itself, in UTF-8, with what a level cannot hold written as in web addresses: ``%2F`` for
``/``, ``%2B`` for ``+``, ``%23`` for ``#``, ``%25`` for ``%``, and control characters. The series without a
name is ``~``, and one that is called so ``%7E``.
"""

import re
from urllib.parse import unquote

_UNFIT = re.compile(r"[%/+#\x00-\x1f\x7f-\x9f]|^~$")
NAMELESS = "~"


def level_of(name: str | None) -> str:
    """Level of a topic that stands for a name.

    Examples
    --------
    >>> level_of("Zürich/3. floor"), level_of(None), level_of("~")
    ('Zürich%2F3. floor', '~', '%7E')
    """
    if name is None:
        return NAMELESS
    return _UNFIT.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), name)


def name_of_level(level: str) -> str | None:
    """Name that a level of a topic stands for.

    Examples
    --------
    >>> name_of_level("Zürich%2F3. floor"), name_of_level("~")
    ('Zürich/3. floor', None)
    """
    return None if level == NAMELESS else unquote(level, errors="strict")
