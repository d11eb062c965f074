"""Names of series -> names of files, and back: any text may name a series."""

import hashlib
from urllib.parse import quote, unquote

SUFFIX = ".varnn"
_LONGEST = 180  # characters of a name of a file; systems allow 255 bytes, its ending and a draft's included
_NOTHING = "%"  # stands for the empty name: a % of a name is written %25
_CUT = "%~"  # before the hash of a name that is too long to be written out
# Names that Windows keeps for devices, whatever their ending.
_DEVICES = {
    "CON",
    "PRN",
    "AUX",
    "NUL",
    *(f"{port}{number}" for port in ("COM", "LPT") for number in range(10)),
}


def file_of(name: str, taken: bool = False) -> str:
    """Name of the file of a series' model: percent-encoded, so that any file system takes it.

    Parameters
    ----------
    name : str
        The series.
    taken : bool, default=False
        Whether another series has that file already, where upper and lower case are the same: every letter
        is encoded then.

    Examples
    --------
    >>> file_of("meter 7"), file_of("a/b"), file_of("")
    ('meter%207.varnn', 'a%2Fb.varnn', '%.varnn')
    >>> file_of("a", taken=True)
    '%61.varnn'
    """
    encoded = name.encode("utf-8", "surrogatepass")
    if taken or name.partition(".")[0].upper() in _DEVICES:
        written = "".join(f"%{byte:02X}" for byte in encoded)
    else:
        written = quote(encoded, safe="")
    if written.startswith("."):  # or it would be hidden
        written = f"%2E{written[1:]}"
    if len(written) > _LONGEST:
        # Cut between characters, not within %C3.
        begin = quote(name[:20].encode("utf-8", "surrogatepass"), safe="")[: _LONGEST - 70]
        begin = begin if "%" not in begin[-2:] else begin[: begin.rindex("%")]
        written = f"{begin}{_CUT}{hashlib.sha256(encoded).hexdigest()}"
    return f"{written or _NOTHING}{SUFFIX}"


def name_of(file: str) -> str:
    """Name of the series that a file is of; of a name that was cut, what is left of it.

    Examples
    --------
    >>> name_of("meter%207.varnn"), name_of("%.varnn")
    ('meter 7', '')
    """
    written = file.removesuffix(SUFFIX)
    return "" if written == _NOTHING else unquote(written, errors="surrogatepass")


def to_key(name: str) -> bytes:
    """A name as bytes, by which it is looked up: no text is left out, and none is another's."""
    return name.encode("utf-8", "surrogatepass")


def of_key(key: bytes) -> str:
    """Undo :func:`to_key`."""
    return key.decode("utf-8", "surrogatepass")
