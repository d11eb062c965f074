"""Models and a service that the tests of the HTTP interface share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.serving import Served, save_models, served


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with model files."""
    return save_models(tmp_path_factory.mktemp("models"))


@pytest.fixture
def house(models: Path, tmp_path: Path) -> Iterator[Served]:
    """Give a service with the stream house."""
    with served(tmp_path / "service", models / "house.varnn") as found:
        yield found
