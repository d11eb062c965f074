"""What CONTRIBUTING.md tells to do is enough: examples work in a copy of the package."""

import runpy
from pathlib import Path
from typing import Any

import pytest

TOOL: dict[str, Any] = runpy.run_path(
    str(Path(__file__).parents[1] / "docs" / "tools" / "seams.py"), run_name="tool"
)


@pytest.mark.parametrize("addition", TOOL["ADDITIONS"], ids=lambda one: str(one.what))
def test_adding_something_takes_one_file_or_two(addition: Any) -> None:
    assert 1 <= len(addition.touched) <= 2
    addition.try_out()
