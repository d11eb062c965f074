"""Compiled kernels, kept in the user's cache folder: a shape is compiled once on a machine."""

import hashlib
import logging
from collections.abc import Callable
from pathlib import Path

from varnn.data.files import user_cache, write_atomically
from varnn.errors import OutputError

logger = logging.getLogger(__name__)
_DIGEST = 32  # bytes of SHA-256 before the code, so that a damaged file is told from a good one


def kept(made_from: str, make: Callable[[], bytes]) -> bytes:
    """Code that was made before from the same, or else is made now and kept.

    Parameters
    ----------
    made_from : str
        All that the code depends on: source, options, versions.
    make : callable
        Makes it.
    """
    try:
        path = user_cache() / "cuda" / f"{hashlib.sha256(made_from.encode()).hexdigest()[:32]}.cubin"
    except RuntimeError:  # a user without a home: nowhere else would be theirs alone
        return make()
    code = _read(path)
    if code is None:
        code = make()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, hashlib.sha256(code).digest() + code)
        except (OSError, OutputError) as error:
            logger.info("the compiled kernel is not kept: %s", error)
    return code


def _read(path: Path) -> bytes | None:
    """Code in a file; None where there is none, or it is damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, code = content[:_DIGEST], content[_DIGEST:]
    return code if code and hashlib.sha256(code).digest() == digest else None
