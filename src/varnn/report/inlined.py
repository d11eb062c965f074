"""The files of `assets/` -> the style and the script that a page carries in itself.

There is no build: modules are read in the order of `_MODULES`, their import lines and the word `export` are
left out, and what remains is one script. The dashboard of the service serves some of these files as they are.
"""

import base64
import hashlib
import re
from functools import cache
from pathlib import Path

ASSETS = Path(__file__).parent / "assets"
# What the dashboard has, too:
SHARED = ("uPlot.iife.min.js", "uPlot.min.css", "uPlot.LICENSE", "dom.js", "gestures.js", "numbers.js")
_MODULES = (
    "dom.js",
    "numbers.js",
    "gestures.js",
    "unpack.js",
    "times.js",
    "thin.js",
    "timeline.js",
    "start.js",
)


@cache
def style(*, charts: bool) -> str:
    """The style of a page, with that of the chart library where there are charts."""
    page = (ASSETS / "page.css").read_text(encoding="utf-8")
    return ((ASSETS / "uPlot.min.css").read_text(encoding="utf-8") if charts else "") + page


@cache
def script() -> str:
    """The one script of a page with charts; the licence of what is not ours stands on top.

    Examples
    --------
    >>> "Permission is hereby granted" in script(), "export" in script().partition("(() => {")[2]
    (True, False)
    """
    licence = (ASSETS / "uPlot.LICENSE").read_text(encoding="utf-8")
    library = (ASSETS / "uPlot.iife.min.js").read_text(encoding="utf-8")
    return f"/*! uPlot\n{licence}*/\n{library}\n(() => {{\n'use strict';\n{_modules()}}})();\n"


def policy(*, charts: bool) -> str:
    """What the page may do, for a browser to hold it to: run this script and no other, and ask nobody.

    Examples
    --------
    >>> policy(charts=False)
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    """
    allowed = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    if not charts:
        return allowed
    digest = base64.b64encode(hashlib.sha256(script().encode()).digest()).decode()
    return f"{allowed}; script-src 'sha256-{digest}'"


def _modules() -> str:
    """All modules as one text, in which each name stands alone."""
    texts = [(ASSETS / name).read_text(encoding="utf-8") for name in _MODULES]
    bare = [re.sub(r"^import .*\n", "", text, flags=re.MULTILINE) for text in texts]
    return "\n".join(re.sub(r"^export ", "", text, flags=re.MULTILINE) for text in bare)
