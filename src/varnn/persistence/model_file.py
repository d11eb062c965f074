"""Fitted <-> one ``.varnn`` file: safetensors with a versioned JSON header, never pickle.

The header (the ``varnn`` entry of the safetensors metadata) holds the format version, the library
version, a card in plain text for people, configuration, names and training summary; the tensors hold
weights, scaling and the last training rows. ``checksum`` covers header and tensors, so a changed byte is
noticed.
"""

import contextlib
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from varnn._version import VERSION
from varnn.data.files import write_atomically
from varnn.data.rules import shown, text
from varnn.errors import DataError, ModelFileError, OutputError
from varnn.model.fitted import Fitted
from varnn.model.forecast import Forecaster
from varnn.persistence._part_checks import check_intervals, check_steady
from varnn.persistence._parts import (
    Tensors,
    disassemble,
    disassemble_forecaster,
    fitted_from,
    forecaster_from,
    under,
)
from varnn.persistence.card import card
from varnn.persistence.model_checks import Checks, check_depth, check_model

FORMAT = 4  # of what is written, and the only one that is read
KEY = "varnn"
_DATABASE = b"SQLite format 3\0"  # what such a file begins with
_FORECASTER = "forecaster."  # before the names of its tensors


class Contents(NamedTuple):
    """What a file holds."""

    fitted: Fitted
    settings: dict[str, Any]
    forecaster: Forecaster | None


def write(
    path: str | Path, fitted: Fitted, settings: Mapping[str, Any], forecaster: Forecaster | None = None
) -> None:
    """Save a fitted model, with the constructor settings it was made with.

    Parameters
    ----------
    path : str or Path
        File to write; an existing one is replaced only when the new one is complete.
    fitted : Fitted
        The model.
    settings : mapping
        Plain values (they must survive JSON) from which an equal estimator can be made again.
    forecaster : Forecaster or None, default=None
        What forecasts several rows ahead; None where nothing does.
    """
    check_replaceable(path)
    write_atomically(path, packed(fitted, settings, forecaster, f"the model for {str(path)!r}"))


def check_replaceable(path: str | Path) -> None:
    """Refuse to put one model in the place of a database: many models, a study, or rows of streams."""
    place, begin = Path(path), b""
    with contextlib.suppress(OSError):  # whoever writes says what is wrong
        if place.is_file():
            with place.open("rb") as file:
                begin = file.read(len(_DATABASE))
    if begin == _DATABASE:
        raise OutputError(
            f"{str(path)!r} cannot be written: it is a database, such as of many models, which one model "
            "would replace. Choose another place, or delete it first."
        )


def packed(fitted: Fitted, settings: Mapping[str, Any], forecaster: Forecaster | None, what: str) -> bytes:
    """What a file of a model holds, byte for byte; ``what`` names the model in errors."""
    tensors, facts = disassemble(fitted)
    header = {
        "format": FORMAT,
        "library": VERSION,
        "card": card(fitted, settings, 1 if forecaster is None else forecaster.horizon),
        "settings": dict(settings),
        **facts,
    }
    if forecaster is not None:
        more, header["forecaster"] = disassemble_forecaster(forecaster)
        tensors |= {f"{_FORECASTER}{name}": array for name, array in more.items()}
    # A file that nobody could read is better refused now, while the model is at hand.
    check_model(tensors, json.loads(json.dumps(header)), what)
    _check_parts(fitted, forecaster, what)
    return to_bytes(tensors, header)


def read(path: str | Path) -> Contents:
    """Load what :func:`write` saved."""
    place = Path(path)
    if not place.is_file():
        raise ModelFileError(f"there is no model file {str(path)!r}. Check the path.")
    return unpacked(place.read_bytes(), repr(str(path)))


def unpacked(blob: bytes, what: str) -> Contents:
    """Undo :func:`packed`; ``what`` names the source in errors."""
    tensors, header = from_bytes(blob, what)
    check_model(tensors, header, what)
    forecaster = None
    try:
        fitted = fitted_from(tensors, header)
        if header.get("forecaster") is not None:
            forecaster = forecaster_from(under(_FORECASTER, tensors), header["forecaster"])
    except DataError as error:  # of an interval method
        raise ModelFileError(f"{what} is damaged or was not written by this library: {error}") from None
    _check_parts(fitted, forecaster, what)
    return Contents(fitted, dict(header["settings"]), forecaster)


def _check_parts(fitted: Fitted, forecaster: Forecaster | None, what: str) -> None:
    """Refuse networks that run away, and intervals of other models."""
    check_steady(fitted, what)
    check_intervals(fitted.calibrator, fitted.architecture.hidden_size, (), what)
    if forecaster is not None:
        check_steady(forecaster.network, what)
        check_intervals(forecaster.calibrator, 1, (forecaster.horizon,), what)


def read_card(path: str | Path) -> str:
    """Card kept in a model file."""
    what = repr(str(path))
    _, header = from_bytes(Path(path).read_bytes(), what)
    Checks(what).facts(header, {"card": text})
    return str(header["card"])


def to_bytes(tensors: Tensors, header: Mapping[str, Any]) -> bytes:
    """Pack tensors and a JSON header into safetensors bytes with a checksum."""
    facts = json.dumps({**header, "checksum": checksum(tensors, header)}, allow_nan=False)
    contiguous = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    return save(contiguous, metadata={KEY: facts})


def from_bytes(blob: bytes, what: str) -> tuple[Tensors, dict[str, Any]]:
    """Undo :func:`to_bytes`; ``what`` names the source in errors."""
    if not isinstance(blob, bytes | bytearray | memoryview):
        raise ModelFileError(f"{what} must be bytes, as snapshot() returns them; got {type(blob).__name__}.")
    blob = bytes(blob)
    if blob.startswith(_DATABASE):
        raise ModelFileError(
            f"{what} holds many models, and one is needed here. In Python, varnn.load(path).export(series, "
            "'one.varnn') writes that of a series into a file of its own."
        )
    try:
        header_size = int.from_bytes(blob[:8], "little")
        metadata = json.loads(blob[8 : 8 + header_size]).get("__metadata__", {})
        header = json.loads(metadata[KEY], parse_constant=_no_number)
        found = header["format"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ModelFileError(
            f"{what} is not a file of this library (or its beginning is damaged). "
            "Files written by model.save() end in .varnn."
        ) from None
    if type(found) is not int or found != FORMAT:
        raise ModelFileError(
            f"{what} was written by another version of varnn: it has format {shown(found)}, and this one "
            f"({VERSION}) reads {FORMAT}. Fit the model and save it again."
        )
    try:
        tensors = load(blob)
    except (SafetensorError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise ModelFileError(f"{what} is truncated or damaged: {error}. Restore it from a copy.") from None
    check_depth(header, what)
    if header.pop("checksum", None) != checksum(tensors, header):
        raise ModelFileError(f"{what} was changed after it was written: its checksum does not match.")
    return tensors, header


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def checksum(tensors: Tensors, header: Mapping[str, Any]) -> str:
    """What `to_bytes` writes beside a header: a hash of it, and of all arrays."""
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name, array in sorted(tensors.items()):
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
