"""What a value must be, once in words and once as a test: for settings, and for what files say."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

_SHOWN = 80  # characters of a value in a message


class Rule(NamedTuple):
    """What must hold of a value.

    Parameters
    ----------
    words : str
        What it must be, so that they finish "window must be ...".
    holds : callable
        Whether it is.

    Examples
    --------
    >>> optional(whole(1)).broken("window", "five")
    "window must be a whole number, at least 1, or None; got 'five'."
    >>> optional(whole(1)).broken("window", 5) is None
    True
    """

    words: str
    holds: Callable[[Any], bool]

    def broken(self, name: str, value: Any) -> str | None:
        """Say what is wrong with a value, in one sentence; None if nothing is."""
        return None if self.holds(value) else f"{name} must be {self.words}; got {shown(value)}."


def whole(low: int, high: int | None = None) -> Rule:
    """Ask for a whole number; True and False are none."""
    words = f"a whole number, at least {low}" if high is None else f"a whole number from {low} to {high}"
    most = math.inf if high is None else high
    return Rule(words, lambda one: _is(one, int | np.integer) and low <= one <= most)


def number(low: float, high: float = math.inf, *, above: bool = False, below: bool = False) -> Rule:
    """Ask for a finite number within bounds; ``above`` and ``below`` leave the bounds themselves out."""
    least = f"above {low:g}" if above else f"at least {low:g}"
    most = "" if high == math.inf else f" and {'below' if below else 'at most'} {high:g}"

    def holds(one: Any) -> bool:
        if not _is(one, int | float | np.integer | np.floating) or not _finite(one):
            return False
        return bool((low < one if above else low <= one) and (one < high if below else one <= high))

    return Rule(f"a number, {least}{most}", holds)


def choice(*names: str) -> Rule:
    """Ask for one of some names."""
    return Rule(f"one of {list(names)}", lambda one: isinstance(one, str) and one in names)


def optional(rule: Rule) -> Rule:
    """Let None do as well."""
    return Rule(f"{rule.words}, or None", lambda one: one is None or rule.holds(one))


def either(*rules: Rule) -> Rule:
    """Ask for one thing or another."""
    return Rule(" or ".join(one.words for one in rules), lambda value: any(one.holds(value) for one in rules))


def listed(rule: Rule, words: str, *, unique: bool = True, most: float = math.inf) -> Rule:
    """Ask for a list of things, none of them twice."""

    def holds(value: Any) -> bool:
        if not isinstance(value, Sequence) or isinstance(value, str | bytes) or len(value) > most:
            return False
        return all(map(rule.holds, value)) and (not unique or len(set(value)) == len(value))

    return Rule(words, holds)


flag = Rule("True or False", lambda one: isinstance(one, bool | np.bool_))
text = Rule("a text", lambda one: isinstance(one, str))
names = listed(text, "a list of names, each of them once")
table = Rule("a table of named values", lambda one: isinstance(one, Mapping))


def shown(value: Any) -> str:
    """Show a value in a message: on one line, and not at length.

    Examples
    --------
    >>> shown("x" * 200)[-5:], shown(10**9999)
    ('xx...', 'a number of more digits than can be shown')
    """
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 1000:
        return "a number of more digits than can be shown"
    line = " ".join(repr(value).split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}..."


def _is(value: Any, kinds: Any) -> bool:
    return isinstance(value, kinds) and not isinstance(value, bool)


def _finite(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond any float
        return False
