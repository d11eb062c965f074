"""A step of the docs build: sessions are coloured as such, and their copy buttons copy what one would type.

Blocks of Python in the docs are doctests, and `console` blocks are commands with their output. Whoever copies
one wants neither prompts nor outputs. Where a block has the attribute `data-copy`, the theme copies that.
A paragraph that is nothing but the name of a script of `examples/` becomes the script.
"""

import doctest
import html
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
_SCRIPT = re.compile(r"^`(examples/[\w/]+\.py)`$", re.MULTILINE)
_SESSION = re.compile(r"^```python\n(?=>>> )", re.MULTILINE)
_BLOCK = re.compile(r'<div class="highlight">(.*?)</div>', re.DOTALL)
_TAG = re.compile(r"<[^>]+>")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Let blocks that are sessions be coloured as sessions, and show scripts."""
    shown = _SCRIPT.sub(lambda name: f"`{name[1]}`:\n\n```python\n{_text(name[1])}```", markdown)
    return _SESSION.sub("```pycon\n", shown)


def on_page_content(html: str, **_: Any) -> str:
    """Say beside each session what is copied."""
    return _BLOCK.sub(_with_copy, html)


def typed(text: str) -> str:
    r"""Give what somebody typed in a session of Python, or else of a shell; nothing if it is none.

    Examples
    --------
    >>> typed(">>> for one in (1, 2):\n...     print(one)\n1\n2\n>>> 3\n3\n")
    'for one in (1, 2):\n    print(one)\n3\n'
    >>> typed("$ varnn fit house.csv \\\n    --target load\nhouse.csv:\n...\n$ ls\n")
    'varnn fit house.csv \\\n    --target load\nls\n'
    """
    if text.startswith(">>> "):
        return "".join(example.source for example in doctest.DocTestParser().get_examples(text))
    lines, goes_on = [], False
    for line in text.splitlines():
        if goes_on or line.startswith("$ "):
            lines.append(line if goes_on else line[2:])
            goes_on = line.endswith("\\")
    return "".join(f"{line}\n" for line in lines)


def _text(name: str) -> str:
    return (ROOT / name).read_text()


def _with_copy(block: re.Match[str]) -> str:
    copied = typed(html.unescape(_TAG.sub("", block[1])))
    if not copied:
        return block[0]
    escaped = html.escape(copied, quote=True).replace("\n", "&#10;")
    return f'<div class="highlight" data-copy="{escaped}">{block[1]}</div>'
