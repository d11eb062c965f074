"""Memory given back to the system."""

import subprocess
import sys

import pytest

# A process of its own: what others have left there must not count.
LEFT = """
import pathlib
import numpy as np
from varnn.data import allocator

def held():
    words = pathlib.Path("/proc/self/status").read_text().split()
    return int(words[words.index("VmRSS:") + 1]) / 1024

np.zeros(4_000_000)  # C's allocator then takes smaller arrays from its heap, not from the system
arrays = [np.ones(100_000) for _ in range(100)]
kept = arrays[9::10]  # ... which it cannot give back by itself, as these lie in between
before = held()
del arrays
allocator.release()
print(before - held())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is nothing to call")
def test_arrays_that_are_no_more_are_given_back() -> None:
    done = subprocess.run([sys.executable, "-c", LEFT], capture_output=True, text=True, check=True)
    assert float(done.stdout) > 60  # of 69 MiB
