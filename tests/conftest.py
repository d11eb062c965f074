"""What every test shares."""

import os
from pathlib import Path

import pytest
import torch

# Two test processes share two cores; a second thread each would only make them wait for each other.
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Give the folder of the real data sets, or skip."""
    folder = os.environ.get("VARNN_DATA_DIR")
    if not folder or not Path(folder).is_dir():
        pytest.skip("the real data sets are not here: set VARNN_DATA_DIR to their folder")
    return Path(folder)
