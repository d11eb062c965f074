"""What is worth saying of how data were read."""

from typing import NamedTuple


class Note(NamedTuple):
    """A sentence, and whether it calls for a second look."""

    text: str
    is_doubt: bool = False
