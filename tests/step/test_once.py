"""Each behaviour of a step is written once."""

import runpy
from pathlib import Path
from typing import Any

import pytest

TOOL: dict[str, Any] = runpy.run_path(
    str(Path(__file__).parents[2] / "docs" / "tools" / "behaviours.py"), run_name="tool"
)


@pytest.mark.parametrize("behaviour", TOOL["MARKS"])
def test_a_behaviour_has_one_implementation(behaviour: str) -> None:
    (module,) = TOOL["implementations"]()[behaviour]
    assert module.startswith("step/")
