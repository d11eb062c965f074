"""A step of the docs build: signatures and tables of parameters show each parameter's own type and default.

Signatures name constants (`defaults.HIDDEN_SIZE`), where a reader wants the number. In tables, the parser
takes the first of several choices for the default, and gives names that share a line the first one's.
So choices are written as alternatives, and such lines are taken apart, before it reads them.
"""

import importlib
import re
from typing import Any

import griffe

_PLAIN = (str, int, float, bool, tuple, type(None))
_CONSTANT = re.compile(r"^(\w+\.)*[A-Z][A-Z_]+$")
_CHOICES = re.compile(r"\{([^{}]*)\}")
_ITEM = re.compile(r"^(?P<names>\*{0,2}\w+(?:, \*{0,2}\w+)*) : (?P<type>.+)$")
_DEFAULT = re.compile(r",\s+default(?: |: |=)")


class TrueDefaults(griffe.Extension):
    """Put values in the place of constants, and let docstrings be read as they are meant."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Look up constants that are defaults."""
        for parameter in func.parameters:
            written = str(parameter.default)
            if _CONSTANT.match(written):
                value: Any = importlib.import_module(func.module.path)
                for name in written.split("."):
                    value = getattr(value, name)
                if isinstance(value, _PLAIN):
                    parameter.default = repr(value).replace("'", '"')

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the sections of parameters."""
        if obj.docstring is not None:
            obj.docstring.value = one_by_one(obj.docstring.value)


def one_by_one(docstring: str) -> str:
    r"""Give each parameter a line of its own, with its own type, and choices as alternatives.

    Examples
    --------
    >>> head = "Do.\n\nParameters\n----------\n"
    >>> print(one_by_one(head + "a, b : int, str\n    Both.\nc : {1, 2}, default=2\n    One.")[len(head):])
    a : int
        Both.
    b : str
        Both.
    c : 1 or 2, default=2
        One.
    """
    before, head, rest = docstring.partition("Parameters\n----------\n")
    if not head:
        return docstring
    section, blank, after = rest.partition("\n\n")
    items: list[list[str]] = []
    for line in section.splitlines():
        if line.startswith(" ") and items:
            items[-1].append(line)
        else:
            items.append([line])
    lines = [line for item in items for line in _apart(item)]
    return before + head + "\n".join(lines) + blank + after


def _apart(item: list[str]) -> list[str]:
    found = _ITEM.match(item[0])
    if found is None:
        return item
    names = found["names"].split(", ")
    kind = _CHOICES.sub(lambda choices: choices[1].replace(", ", " or "), found["type"])
    kinds, default, value = kind, "", ""
    if split := _DEFAULT.search(kind):
        kinds, default, value = kind[: split.start()], ", default=", kind[split.end() :]
    if len(names) == 1 and "(" not in kinds:
        kinds = kinds.replace(", ", " or ")
    each = kinds.split(", ")
    if len(each) != len(names):
        each = [kinds] * len(names)
    return [
        line
        for name, its in zip(names, each, strict=True)
        for line in (f"{name} : {its}{default}{value}", *item[1:])
    ]
