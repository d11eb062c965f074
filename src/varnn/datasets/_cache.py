"""Arrays that took seconds to parse, kept in one .npz beside their source or in the user's cache.

A kept file is used only when its format, its source's files (path, size, time of change) and the
SHA-256 of its arrays all agree; otherwise it is built again, never repaired.
"""

import hashlib
import json
import logging
import os
import zipfile
import zlib
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from varnn.data.files import user_cache, write_atomically
from varnn.datasets.store import Members

Arrays = dict[str, npt.NDArray[Any]]

_log = logging.getLogger(__name__)

# What np.load raises on a damaged file depends on which byte is wrong.
_DAMAGE = (OSError, ValueError, TypeError, KeyError, EOFError, MemoryError, RuntimeError)
_DAMAGED_ZIP = (zipfile.BadZipFile, zlib.error)


def remembered(members: Members, build: Callable[[Members], Arrays], *, version: int) -> Arrays:
    """Arrays of a data set: from the cache when it holds them, else built and kept.

    Parameters
    ----------
    members : Members
        The files the arrays are made from.
    build : callable
        Makes the arrays.
    version : int
        Number of the format; raise it whenever ``build`` gives something else.
    """
    identity = json.dumps({"version": version, "files": members.fingerprint()})
    beside = members.place if members.loose else members.place.parent
    paths = [folder / f"{members.source.name}-arrays.npz" for folder in (beside, user_cache())]
    for path in paths:
        arrays = _read(path, identity)
        if arrays is not None:
            return arrays
    arrays = build(members)
    _write(next((path for path in paths if _is_open_for_writing(path.parent)), paths[-1]), identity, arrays)
    return arrays


def _is_open_for_writing(folder: Path) -> bool:
    """Tell whether the folder takes files; one marked read-only does not, not even from root."""
    return os.access(folder, os.W_OK) and bool(folder.stat().st_mode & 0o222)


def _read(path: Path, identity: str) -> Arrays | None:
    try:
        # Opened here: np.load would leave the file open when it finds the archive damaged.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as kept:
            if any(one.compress_type != zipfile.ZIP_STORED for one in kept.zip.infolist()):
                raise ValueError("it is compressed, which none of ours is")  # and may expand without end
            if str(kept["identity"]) != identity:
                return None
            arrays = {name: kept[name] for name in kept.files if name not in ("identity", "checksum")}
            if str(kept["checksum"]) == _checksum(arrays):
                return arrays
        reason: object = "its arrays have another checksum"
    except (FileNotFoundError, PermissionError):
        return None
    except (*_DAMAGE, *_DAMAGED_ZIP) as error:
        reason = error
    _log.warning("%s is damaged and will be built again: %s", path, reason)
    return None


def _write(path: Path, identity: str, arrays: Arrays) -> None:
    """Keep the arrays if that is possible: without room for them, the next load is slow, no more."""
    everything = {"identity": np.array(identity), "checksum": np.array(_checksum(arrays)), **arrays}
    blob = BytesIO()
    np.savez(blob, allow_pickle=False, **everything)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, blob.getvalue())
    except OSError as error:
        _log.info("%s cannot be kept: %s", path, error)


def _checksum(arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    total = hashlib.sha256()
    for name, values in sorted(arrays.items()):
        total.update(f"{name} {values.dtype.str} {values.shape};".encode())
        total.update(np.ascontiguousarray(values).data)
    return total.hexdigest()
