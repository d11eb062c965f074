"""Write a file in one step, or leave what was there."""

import contextlib
import os
import secrets
from pathlib import Path

from varnn.errors import OutputError


def write_atomically(path: str | Path, blob: bytes) -> None:
    """Replace a file in one step, or leave it as it was."""
    place = Path(path)
    draft = place.with_name(f".{place.name}.{secrets.token_hex(4)}.part")
    try:
        with draft.open("wb") as file:
            file.write(blob)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(place)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise OutputError(
            f"{str(path)!r} cannot be written: {error.strerror or error}. Choose another place."
        ) from None
