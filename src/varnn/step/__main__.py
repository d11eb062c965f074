"""``python -m varnn.step``: compile the step ahead of its first use, for example in an image."""

import sys

from varnn.step.kernel import use_compiled
from varnn.step.series import warm_up


def main() -> int:
    """Compile, and print what was done; return the exit code."""
    if not use_compiled():
        sys.stdout.write("Nothing to compile: numba cannot be imported, or VARNN_COMPILED=0 is set.\n")
        return 0
    from varnn.step.compiling import cache_folder  # late: it imports numba

    try:
        warm_up()
    except KeyboardInterrupt:
        sys.stderr.write("stopped.\n")
        return 130
    folder = cache_folder()
    where = "in memory only, as no folder can be written" if folder is None else f"in {folder}"
    sys.stdout.write(f"The prediction step is compiled, {where}.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
