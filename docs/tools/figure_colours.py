"""A step of the docs build: figures take the colours of the page, light or dark, as the reader switches them.

Drawings of ours are written in the colour of the text around them. As images they would only follow the
reader's system, so they are put into the page itself. A picture `x-light.png` with an `x-dark.png` beside
it becomes both, of which the theme shows one.
"""

import html
import posixpath
import re
from pathlib import Path
from typing import Any

_IMAGE = re.compile(r'<img alt="([^"]*)" src="([^"]+)"([^>]*)>')
_OWN_COLOURS = re.compile(r"<style>svg\{color:.*?</style>")  # of a drawing that is a file of its own


def on_page_content(html: str, page: Any, config: Any, **_: Any) -> str:
    """Replace images by drawings, and by pairs of pictures."""
    folder = posixpath.dirname(page.file.dest_uri)

    def replaced(image: re.Match[str]) -> str:
        alt, address, rest = image.groups()
        file = Path(config["docs_dir"], posixpath.normpath(posixpath.join(folder, address)))
        if address.endswith(".svg") and file.exists():
            return _drawing(file.read_text(), alt) or image[0]
        dark = file.with_name(file.name.replace("-light.", "-dark."))
        if dark != file and dark.exists():
            other = address.replace("-light.", "-dark.")
            return "".join(
                f'<img alt="{alt}" src="{source}"{rest}>'
                for source in (f"{address}#only-light", f"{other}#only-dark")
            )
        return image[0]

    return _IMAGE.sub(replaced, html)


def _drawing(svg: str, alt: str) -> str | None:
    """Give a drawing in the colour of its text as part of a page; None for one that has its own."""
    if "currentColor" not in svg:
        return None
    svg = _OWN_COLOURS.sub("", svg[svg.index("<svg") :], count=1)
    described = html.escape(html.unescape(alt), quote=True)
    svg = re.sub(r'aria-label="[^"]*"', lambda _: f'aria-label="{described}"', svg, count=1)
    return f'<span class="drawing">{svg}</span>'
