"""Is the kernel that trains on a GPU right? ``python -m benchmarks.gpu.check``.

It runs every check, ``... check first_steps stops`` some, and prints each number; the exit code is 1 where
one is too large. On a machine without a GPU there is nothing to check, and it says so.
"""

import sys
import time
from collections.abc import Sequence

import torch

from benchmarks.gpu.checks import CHECKS, why_not


def main(names: Sequence[str]) -> int:
    """Run checks by name, all of them where none is named; the exit code."""
    if why := why_not():
        sys.stdout.write(f"nothing to check here: the kernel does not handle {why}.\n")
        return 1 if torch.cuda.is_available() else 0
    failed = number = 0
    for check in CHECKS:
        if names and check.__name__ not in names:
            continue
        sys.stdout.write(f"{check.__name__}: {(check.__doc__ or '').splitlines()[0]}\n")
        began = time.perf_counter()
        for one in check():
            number += 1
            failed += not one.holds
            mark = "ok    " if one.holds else "FAILED"
            sys.stdout.write(f"  {mark} {one.error:.2g} (at most {one.largest:g})  {one.what}\n")
            sys.stdout.flush()
        sys.stdout.write(f"  {time.perf_counter() - began:.1f} s\n")
    sys.stdout.write(f"{number - failed} of {number} hold.\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
