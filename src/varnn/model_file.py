"""Fitted <-> one ``.varnn`` file: safetensors with a versioned JSON header, never pickle.

The header (the ``varnn`` entry of the safetensors metadata) holds the format version, the library
version, configuration, names and training summary; the tensors hold weights, scaling and the last
training rows. ``checksum`` covers header and tensors, so a changed byte is noticed.
"""

import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load, save

from varnn.adaptation import Adaptation
from varnn.cell import Architecture, weights_from
from varnn.errors import ModelFileError
from varnn.files import write_atomically
from varnn.fitted import Fitted, Tail
from varnn.intervals import Spread
from varnn.recipe import Recipe

FORMAT = 1
_KEY = "varnn"

Tensors = dict[str, npt.NDArray[Any]]


def write(path: str | Path, fitted: Fitted, settings: Mapping[str, Any]) -> None:
    """Save a fitted model, with the constructor settings it was made with.

    Parameters
    ----------
    path
        File to write; an existing one is replaced only when the new one is complete.
    fitted
        The model.
    settings
        Plain values (they must survive JSON) from which an equal estimator can be made again.
    """
    tensors: Tensors = {f"weights.{name}": array for name, array in fitted.weights.as_dict().items()}
    tensors |= {f"recipe.{name}": array for name, array in fitted.recipe.arrays().items()}
    for index, tail in enumerate(fitted.tails.values()):
        tensors[f"tail.{index}.inputs"] = tail.inputs
        tensors[f"tail.{index}.target"] = tail.target
        if tail.time is not None:
            tensors[f"tail.{index}.time"] = tail.time.astype("datetime64[ns]").astype(np.int64)
    adaptation = fitted.adaptation
    if adaptation is not None:
        tensors["adaptation.gain"] = adaptation.gain
    spread = fitted.spread
    if spread is not None:
        tensors |= {"spread.weights": spread.weights, "spread.quantiles": spread.quantiles}
    header = {
        "spread": None if spread is None else spread.unit,
        "adaptation": None if adaptation is None else adaptation.numbers(),
        "format": FORMAT,
        "library": version("varnn"),
        "architecture": fitted.architecture.as_dict(),
        "window": fitted.window,
        "share": fitted.share,
        "recipe": fitted.recipe.facts(),
        "input_names": list(fitted.input_names),
        "target_name": fitted.target_name,
        "series": list(fitted.tails),
        "settings": dict(settings),
        "summary": fitted.summary,
    }
    write_atomically(path, to_bytes(tensors, header))


def read(path: str | Path) -> tuple[Fitted, dict[str, Any]]:
    """Load what :func:`write` saved: the model and its settings."""
    place = Path(path)
    if not place.is_file():
        raise ModelFileError(f"there is no model file {str(path)!r}. Check the path.")
    tensors, header = from_bytes(place.read_bytes(), f"{str(path)!r}")
    try:
        weights = weights_from(_under("weights.", tensors))
        fitted = Fitted(
            architecture=Architecture(**header["architecture"]),
            weights=weights,
            recipe=Recipe.from_parts(header["recipe"], _under("recipe.", tensors)),
            window=int(header["window"]),
            adaptation=_adaptation(header["adaptation"], tensors),
            spread=_spread(header["spread"], tensors),
            share=float(header["share"]),
            input_names=tuple(header["input_names"]),
            target_name=header["target_name"],
            tails={
                name: _tail(_under(f"tail.{index}.", tensors)) for index, name in enumerate(header["series"])
            },
            summary=header["summary"],
        )
        settings = dict(header["settings"])
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{str(path)!r} is not a complete model file: {error!r}.") from None
    shapes = {name: array.shape[1:] for name, array in weights.as_dict().items()}
    if shapes != fitted.architecture.shapes:
        raise ModelFileError(f"{str(path)!r} holds weights that do not fit its architecture.")
    return fitted, settings


def _adaptation(numbers: list[float] | None, tensors: Tensors) -> Adaptation | None:
    if numbers is None:
        return None
    forgetting, noise = numbers
    return Adaptation(forgetting=forgetting, gain=tensors["adaptation.gain"], noise=noise)


def _spread(unit: float | None, tensors: Tensors) -> Spread | None:
    if unit is None:
        return None
    return Spread(unit=unit, weights=tensors["spread.weights"], quantiles=tensors["spread.quantiles"])


def _tail(tensors: Tensors) -> Tail:
    time = tensors.get("time")
    return Tail(
        inputs=tensors["inputs"],
        target=tensors["target"],
        time=None if time is None else time.view("datetime64[ns]"),
    )


def to_bytes(tensors: Tensors, header: Mapping[str, Any]) -> bytes:
    """Pack tensors and a JSON header into safetensors bytes with a checksum."""
    text = json.dumps({**header, "checksum": _checksum(tensors, header)}, allow_nan=False)
    contiguous = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    return save(contiguous, metadata={_KEY: text})


def from_bytes(blob: bytes, what: str) -> tuple[Tensors, dict[str, Any]]:
    """Undo :func:`to_bytes`; ``what`` names the source in errors."""
    try:
        header_size = int.from_bytes(blob[:8], "little")
        metadata = json.loads(blob[8 : 8 + header_size]).get("__metadata__", {})
        header = json.loads(metadata[_KEY])
        found = header["format"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ModelFileError(
            f"{what} is not a file of this library (or its beginning is damaged). "
            "Files written by model.save() end in .varnn."
        ) from None
    if not isinstance(found, int) or found > FORMAT:
        raise ModelFileError(
            f"{what} has format {found!r}; this version ({version('varnn')}) reads up to {FORMAT}. "
            "Upgrade with: pip install --upgrade varnn"
        )
    try:
        tensors = load(blob)
    except (SafetensorError, ValueError, KeyError) as error:
        raise ModelFileError(f"{what} is truncated or damaged: {error}. Restore it from a copy.") from None
    if header.pop("checksum", None) != _checksum(tensors, header):
        raise ModelFileError(f"{what} was changed after it was written: its checksum does not match.")
    return tensors, header


def _checksum(tensors: Tensors, header: Mapping[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name, array in sorted(tensors.items()):
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _under(prefix: str, tensors: Tensors) -> Tensors:
    return {name.removeprefix(prefix): one for name, one in tensors.items() if name.startswith(prefix)}
