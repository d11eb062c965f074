"""CSV as people write it -> a pyarrow table: any delimiter, decimal mark and encoding, found in the file."""

import codecs
import csv as standard_csv
import gzip
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from varnn.data._notes import Note
from varnn.errors import DataError

GZIP = b"\x1f\x8b"
_ANY = 2**31 - 1
_BEGINNING = 1 << 16  # bytes the dialect is read off
_DELIMITERS = ",;\t|"
_QUOTED = re.compile('"[^"]*"')
_WITH_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
_WITH_POINT = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?")
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_WESTERN = ("cp1252", "latin-1")  # what Windows calls Latin-1, and Latin-1, in which every byte is a letter


class Dialect(NamedTuple):
    """How a CSV file is written."""

    delimiter: str
    decimal_mark: str
    encoding: str

    def notes(self) -> list[Note]:
        """Say what is not as most files are."""
        said = []
        if self.decimal_mark == ",":
            said.append(Note("numbers are read with a decimal comma"))
        if self.encoding != "utf-8":
            said.append(Note(f"texts are read as {'UTF-16' if 'utf' in self.encoding else 'Latin-1'}"))
        return said


class Found(NamedTuple):
    """A table, what to say of how it was read, and the line of the file each row is on."""

    table: Any
    notes: list[Note]
    line_of: Callable[[int], int]


def read_csv(file: Any, path: Path | None) -> Found:
    """Read an open CSV file, gzipped or not; one with a path can be opened again, a pipe cannot."""
    import pyarrow

    packed = file.peek(len(GZIP)).startswith(GZIP)
    source = gzip.GzipFile(fileobj=file) if packed else file
    beginning = source.peek(_BEGINNING)[:_BEGINNING]
    is_wide = beginning.startswith(_WIDE)
    if b"\0" in beginning and not is_wide:
        raise pyarrow.ArrowInvalid("it holds bytes that are no text")
    place = path if path is not None and file.seekable() else None
    content = b"" if place is not None else source.read()
    for encoding in ("utf-16",) if is_wide else ("utf-8", *_WESTERN):
        try:
            dialect = _dialect(beginning, encoding)
            table = _parsed(dialect, place, content, packed=packed)
            if not any(_is_binary(one.type) for one in table.schema):
                break
        except UnicodeError:
            if encoding not in ("utf-8", _WESTERN[0]):
                raise
    notes = dialect.notes()
    table, dropped = _without_empty_rows(_named(table))
    if dropped:
        notes.append(Note(f"{dropped:,} empty rows at the end are left out"))
    return Found(table, notes, lambda row: _line(path, dialect, row))


def _dialect(beginning: bytes, encoding: str) -> Dialect:
    """Read delimiter and decimal mark off the first lines."""
    whole = beginning.rpartition(b"\n")[0] or beginning  # which may end within a letter
    some = beginning if encoding == "utf-16" else whole
    text = some.decode(encoding, "strict" if encoding == "utf-8" else "ignore")
    first, *lines = text.lstrip("\r\n").splitlines() or [""]
    delimiter = max(_DELIMITERS, key=_QUOTED.sub("", first).count)  # a comma, if there is none
    mark = "."
    if delimiter != ",":
        cells = [cell.strip().strip('"') for line in lines for cell in line.split(delimiter)]
        commas = sum(_WITH_COMMA.fullmatch(cell) is not None for cell in cells)
        if commas > sum(_WITH_POINT.fullmatch(cell) is not None for cell in cells):
            mark = ","
    return Dialect(delimiter, mark, encoding)


def _parsed(dialect: Dialect, path: Path | None, content: bytes, *, packed: bool) -> Any:
    """Read the file at a path, or what was read of it."""
    import pyarrow
    from pyarrow import csv

    if dialect.encoding != "utf-8":
        if path is not None:
            content = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
        path, content = None, content.decode(dialect.encoding).encode()

    # Arrow's threads read ahead, and go on for a while where a table turns out to be broken. In a file of
    # Python's they would read beside whoever reads it anew, and lose rows, or abort the process at its end.
    def opened() -> Any:
        if path is None:
            return pyarrow.BufferReader(content)
        return pyarrow.input_stream(str(path), compression="gzip" if packed else None)

    # Texts as numbers of a list of them: names of series come ten million times.
    convert = csv.ConvertOptions(
        auto_dict_encode=True, auto_dict_max_cardinality=_ANY, decimal_point=dialect.decimal_mark
    )
    lines = csv.ParseOptions(delimiter=dialect.delimiter)
    try:  # block by block, which needs half the memory: kinds of columns are read off the first block ...
        with csv.open_csv(opened(), parse_options=lines, convert_options=convert) as reader:
            return reader.read_all()
    except pyarrow.ArrowInvalid:
        # ... and what comes later may not fit them; or a text goes on in the next line.
        lines.newlines_in_values = True
    try:
        return csv.read_csv(opened(), parse_options=lines, convert_options=convert)
    except pyarrow.ArrowInvalid:
        _refuse_ragged(opened(), dialect)
        raise


def _refuse_ragged(source: Any, dialect: Dialect) -> None:
    """Refuse lines with more or fewer cells than the first, by the number of the line."""
    text = io.TextIOWrapper(io.BytesIO(source.read()), "utf-8-sig", errors="replace", newline="")
    reader = standard_csv.reader(text, delimiter=dialect.delimiter)
    width, before = 0, 0
    for record in reader:
        if record and width and len(record) != width:
            raise DataError(
                f"each line must have as many cells as the first, {width}; line {before + 1:,} has "
                f"{len(record)}. Correct it; lines above the names of the columns must go."
            )
        width, before = width or len(record), reader.line_num


def _is_binary(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_binary(kind.value_type if types.is_dictionary(kind) else kind))


def _named(table: Any) -> Any:
    """Drop empty columns without a name, as delimiters at the ends of lines make them; name the others."""
    names = [name.strip() for name in table.column_names]
    if names and all(re.fullmatch(r"[-+0-9.,:/eE ]+", name) for name in names):
        raise DataError(f"the first line must hold the names of the columns; it holds {names[:5]}. Add them.")
    kept = [index for index, name in enumerate(names) if name or table.column(index).null_count < len(table)]
    return table.select(kept).rename_columns([names[index] or f"column {index + 1}" for index in kept])


def _without_empty_rows(table: Any) -> tuple[Any, int]:
    """Drop rows without any value at the end, as spreadsheets leave them."""
    last = len(table)
    while last and all(cell in (None, "") for cell in (one[last - 1].as_py() for one in table.columns)):
        last -= 1
    return table.slice(0, last), len(table) - last


def _line(path: Path | None, dialect: Dialect, row: int) -> int:
    """Count lines up to a row: those that are empty and those within quotes, too."""
    if path is None:
        return row + 2
    with path.open("rb") as file:
        packed = file.peek(2).startswith(GZIP)
        encoding = "utf-8-sig" if dialect.encoding == "utf-8" else dialect.encoding
        text = io.TextIOWrapper(gzip.GzipFile(fileobj=file) if packed else file, encoding, newline="")
        reader = standard_csv.reader(text, delimiter=dialect.delimiter)
        return next(_lines(reader, row + 1), row + 2)


def _lines(reader: Any, skipped: int) -> Iterator[int]:
    before = 0
    for record in reader:
        if record:
            if skipped == 0:
                yield before + 1
            skipped -= 1
        before = reader.line_num
