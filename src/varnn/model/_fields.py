"""Fields of records that are saved as arrays."""

from dataclasses import Field
from typing import Any


def is_number(field: Field[Any]) -> bool:
    """Whether a field holds one number; where annotations are postponed, its type is a text."""
    return field.type in (float, "float")
