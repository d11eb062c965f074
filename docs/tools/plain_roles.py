"""A step of the docs build: docstrings mark names as :class:`Stream`; a page shows the name alone."""

import re
from typing import Any

_ROLE = re.compile(r":(?:class|meth|func|mod|data|attr):(?=<code>)")


def on_page_content(html: str, **_: Any) -> str:
    """Take the marks out of a rendered page."""
    return _ROLE.sub("", html)
