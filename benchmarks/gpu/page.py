"""Figures of a results file -> the part of ``docs/how-to/gpu.md`` that shows them.

``python -m benchmarks.gpu.page benchmarks/results/gpu.json`` writes it anew; a test holds it to the file.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.record import Measured, Row, Saved, read, shown
from varnn.data.files import write_atomically
from varnn.errors import DataError

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "gpu.md"
BEGIN, END = (
    "<!-- Made by benchmarks/gpu/page.py: measure again, do not edit. -->",
    "<!-- End of figures. -->",
)


def figures(saved: Saved) -> str:
    """Tables of a results file, and how they were made."""
    lines: list[str] = []
    for one in saved.measured:
        lines += [f"{one.title}.", "", *_table(one), ""]
    lines.append(f"Made on {saved.made['date']} by `{saved.command}`, beside {saved.made['machine']}.")
    return "\n".join(lines)


def _table(one: Measured) -> list[str]:
    rows: Sequence[Row] = one.rows
    names = list(rows[0])
    body = ["| " + " | ".join(shown(row[name]) for name in names) + " |" for row in rows]
    return ["| " + " | ".join(names) + " |", "| " + " | ".join("---" for _ in names) + " |", *body]


def put(page: str, text: str) -> str:
    r"""Put figures where the page has them.

    Examples
    --------
    >>> put(f"a\n{BEGIN}\nold\n{END}\nb", "new").splitlines()[3]
    'new'
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise DataError(f"{str(PAGE)!r} must have the lines {BEGIN!r} and {END!r}. Put them back.")
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


if __name__ == "__main__":
    write_atomically(PAGE, put(PAGE.read_text(), figures(read(sys.argv[1]))).encode())
