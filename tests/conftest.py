"""What every test shares."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from varnn.cli.app import main

Reproduce = Callable[..., tuple[int, str, str]]

# A shell that starts the tests in the background has them ignore Ctrl-C, and so would all that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Two test processes share two cores; a second thread each would only make them wait for each other.
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Give the folder of the real data sets, or skip."""
    folder = os.environ.get("VARNN_DATA_DIR")
    if not folder or not Path(folder).is_dir():
        pytest.skip("the real data sets are not here: set VARNN_DATA_DIR to their folder")
    return Path(folder)


@pytest.fixture(scope="session")
def local_ray() -> Iterator[None]:
    """Have a Ray of two workers on this machine; what takes ``cluster`` finds it, whatever it is given."""
    ray = pytest.importorskip("ray")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=100_000_000,
        log_to_driver=False,
        logging_level="ERROR",
    )
    yield
    ray.shutdown()


@pytest.fixture
def reproduce(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Reproduce:
    """Give a function that runs ``varnn reproduce`` and gives its exit code, output and words."""

    def once(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["varnn", "reproduce", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        assert isinstance(left.value.code, int)
        return left.value.code, *capfd.readouterr()

    return once
