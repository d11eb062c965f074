"""CSV as people write it -> a pyarrow table: any delimiter, decimal mark and encoding, found in the file."""

import codecs
import csv as standard_csv
import gzip
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from varnn.errors import DataError
from varnn.notes import Note

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
    """Read an open CSV file, gzipped or not; with its path, lines can be counted again."""
    import pyarrow
    from pyarrow import csv

    source = gzip.GzipFile(fileobj=file) if file.peek(2).startswith(GZIP) else file
    beginning = source.peek(_BEGINNING)[:_BEGINNING]
    if not source.seekable() or beginning.startswith(_WIDE):
        source = io.BytesIO(source.read())  # a pipe can be looked at once only
    if beginning.startswith(_WIDE):
        source = io.BytesIO(_from_wide(source.read()))
        beginning, encoding = source.getvalue()[:_BEGINNING], "utf-16"
    else:
        encoding = "utf-8"
    if b"\0" in beginning:
        raise pyarrow.ArrowInvalid("it holds bytes that are no text")
    for attempt in ("utf-8", *_WESTERN):
        try:
            dialect = _dialect(beginning, attempt)
            table = _parsed(csv, source, dialect)
            if not any(_is_binary(one.type) for one in table.schema):
                break
        except UnicodeDecodeError:
            if attempt == _WESTERN[-1]:
                raise
        source.seek(0)
    if encoding == "utf-16":
        dialect = dialect._replace(encoding=encoding)
    notes = dialect.notes()
    table, dropped = _without_empty_rows(_named(table))
    if dropped:
        notes.append(Note(f"{dropped:,} empty rows at the end are left out"))
    return Found(table, notes, lambda row: _line(path, dialect, row))


def _from_wide(content: bytes) -> bytes:
    try:
        return content.decode("utf-16").encode()
    except UnicodeDecodeError as error:
        raise DataError(
            f"the file begins as UTF-16 and does not go on so: {error}. Save it as UTF-8."
        ) from None


def _dialect(beginning: bytes, encoding: str) -> Dialect:
    """Read delimiter and decimal mark off the first lines."""
    first, _, rest = beginning.lstrip(b"\r\n").partition(b"\n")
    names = _QUOTED.sub("", first.decode(encoding))
    delimiter = max(_DELIMITERS, key=names.count)  # a comma, if there is none
    mark = "."
    if delimiter != ",":
        lines = rest.decode(encoding, errors="ignore").splitlines()[:-1] or [rest.decode(encoding, "ignore")]
        cells = [cell.strip().strip('"') for line in lines for cell in line.split(delimiter)]
        commas = sum(_WITH_COMMA.fullmatch(cell) is not None for cell in cells)
        if commas > sum(_WITH_POINT.fullmatch(cell) is not None for cell in cells):
            mark = ","
    return Dialect(delimiter, mark, encoding)


def _parsed(csv: Any, source: Any, dialect: Dialect) -> Any:
    from pyarrow import ArrowInvalid

    options = {
        # Texts as numbers of a list of them: names of series come ten million times.
        "convert_options": csv.ConvertOptions(
            auto_dict_encode=True, auto_dict_max_cardinality=_ANY, decimal_point=dialect.decimal_mark
        ),
        "read_options": csv.ReadOptions(encoding=dialect.encoding),
    }
    try:  # block by block, which needs half the memory: kinds of columns are read off the first block ...
        with csv.open_csv(
            source, parse_options=csv.ParseOptions(delimiter=dialect.delimiter), **options
        ) as reader:
            return reader.read_all()
    except ArrowInvalid:
        source.seek(0)  # ... and what comes later may not fit them; or a text goes on in the next line
    lines = csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True)
    return csv.read_csv(source, parse_options=lines, **options)


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
