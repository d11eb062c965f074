"""The rooms of the house and who imports whom -> docs/architecture.md and its drawing; run it after a move.

``python docs/tools/architecture.py`` rewrites both. Rooms come from the import contract in pyproject.toml,
words from their docstrings, arrows from the import statements themselves, so that none of it can be wrong for
long: a test makes them anew and compares.
"""

import ast
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "varnn"
PAGE, DRAWING = ROOT / "docs" / "architecture.md", ROOT / "docs" / "images" / "architecture.svg"

_HEAD = """# Architecture

<!-- Made by docs/tools/architecture.py from the code: change the code, not this page. -->

The folders of `src/varnn` are rooms, and the rooms are the reading order: rows go in at the top, and each
room uses those above it only. `lint-imports` holds that in every test run.

![Rooms as boxes, from data at the top to the command at the bottom; arrows go from a room to those that
use it.](images/architecture.svg)

An arrow says that the lower room imports the upper one; arrows that follow from others are left out. Benches
(`benchmarks/`) lie outside the package, and may use all of it.
"""


class Room(NamedTuple):
    """A package, or a module of its own, at the top."""

    name: str
    words: str
    modules: list[Path]


def layers() -> list[list[str]]:
    """Rooms by layer of the import contract, the lowest layer first."""
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    rows = [[one.strip().removeprefix("varnn.") for one in row.split("|")] for row in contract["layers"]]
    return [row for row in reversed(rows) if row != ["benchmarks"]]


def rooms() -> dict[str, Room]:
    """Every room by name."""
    found = {}
    for name in (one for row in layers() for one in row):
        place = SOURCE / name
        modules = sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
        first = place / "__init__.py" if place.is_dir() else modules[0]
        words = (ast.get_docstring(ast.parse(first.read_text())) or "").partition("\n")[0]
        found[name] = Room(name, words, modules)
    return found


def imports(path: Path) -> set[str]:
    """Modules of this package that a module imports, wherever in its text."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "varnn":
            found |= {f"{node.module}.{one.name}" for one in node.names}
        elif isinstance(node, ast.Import):
            found |= {one.name for one in node.names if one.name.split(".")[0] == "varnn"}
    return found


def uses(every: dict[str, Room]) -> dict[str, set[str]]:
    """Rooms that each room imports."""
    found = defaultdict(set)
    for room in every.values():
        for path in room.modules:
            for one in imports(path):
                other = [*one.split("."), ""][1]
                if other in every and other != room.name:
                    found[room.name].add(other)
    return dict(found)


def essential(edges: dict[str, set[str]]) -> dict[str, set[str]]:
    """Leave out what follows from the rest: the transitive reduction."""

    def reached(name: str) -> set[str]:
        return {more for one in edges.get(name, ()) for more in ({one} | reached(one))}

    return {
        name: {one for one in below if not any(one in reached(other) for other in below if other != one)}
        for name, below in edges.items()
    }


def draw(every: dict[str, Room], edges: dict[str, set[str]]) -> str:
    """The drawing, as SVG that takes the colour of the text around it."""
    width, wide, high, gap = 880, 258, 58, 34
    centres = {}
    for row, names in enumerate(layers()):
        for column, name in enumerate(names):
            x = width / 2 + (column - (len(names) - 1) / 2) * (wide + 40)
            centres[name] = (x, 10 + high / 2 + row * (high + gap))
    height = max(y for _, y in centres.values()) + high / 2 + 10
    parts = []
    lanes = {-1: 0, 1: 0}  # paths that pass other rows run outside of them, each in a lane of its own
    for user, below in sorted(edges.items()):
        for used in sorted(below):
            (x0, y0), (x1, y1) = centres[used], centres[user]
            if y1 - y0 <= high + gap:
                top, bottom = y0 + high / 2, y1 - high / 2
                bend = f"C {x0:.0f} {top + gap:.0f}, {x1:.0f} {bottom - gap:.0f}, {x1:.0f} {bottom:.0f}"
                parts.append(f'<path d="M {x0:.0f} {top:.0f} {bend}" marker-end="url(#to)"/>')
                continue
            side = -1 if x1 < width / 2 or (x1 == x0 and lanes[-1] <= lanes[1]) else 1
            outside = width / 2 + side * (wide + 44 + 16 * lanes[side])
            lanes[side] += 1
            begin, end = x0 + side * wide / 2, x1 + side * wide / 2
            parts.append(
                f'<path d="M {begin:.0f} {y0:.0f} C {outside:.0f} {y0:.0f}, {outside:.0f} {y0:.0f}, '
                f"{outside:.0f} {y0 + 30:.0f} V {y1 - 30:.0f} C {outside:.0f} {y1:.0f}, "
                f'{outside:.0f} {y1:.0f}, {end:.0f} {y1:.0f}" marker-end="url(#to)"/>'
            )
    arrows = "\n".join(parts)
    boxes = []
    for name, (x, y) in centres.items():
        files = len(every[name].modules)
        size = f"{files} file{'s' * (files > 1)}"
        boxes.append(
            f'<rect x="{x - wide / 2:.0f}" y="{y - high / 2:.0f}" width="{wide}" height="{high}" rx="9"/>'
            f'<text x="{x:.0f}" y="{y - 4:.0f}" class="name">{name}</text>'
            f'<text x="{x:.0f}" y="{y + 17:.0f}" class="size">{size}</text>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}" id="rooms" role="img" '
        'aria-label="The rooms of varnn and who imports whom">\n'
        "<style>svg{color:#1c2430;background:#fff}"  # a part of a page has the page's instead
        "@media(prefers-color-scheme:dark){svg{color:#e6ebf2;background:#12161c}}</style>\n"
        "<style>#rooms path{fill:none;stroke:#7a87b8;stroke-width:1.6}"
        " #rooms rect{fill:#7a87b8;fill-opacity:0.14;stroke:#7a87b8;stroke-width:1.4}"
        " #rooms text{text-anchor:middle;font-family:system-ui,sans-serif;fill:currentColor}"
        " #rooms .name{font-size:17px;font-weight:600} #rooms .size{font-size:12.5px}</style>\n"
        '<defs><marker id="to" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M 0 0 L 8 4 L 0 8 z" style="fill:#7a87b8;stroke:none"/></marker></defs>\n'
        f"{arrows}\n" + "\n".join(boxes) + "\n</svg>\n"
    )


def page(every: dict[str, Room]) -> str:
    """The page: the drawing, and what flows through each room."""
    lines = ["", "| room | what flows in and out | files |", "| --- | --- | --- |"]
    for name in (one for row in layers() for one in row):
        room = every[name]
        own = [one for one in room.modules if not one.name.startswith("_")]
        listed = ", ".join(f"`{_short(one, name)}`" for one in own if one.name != "__init__.py")
        lines.append(f"| `{name}` | {room.words} | {listed} |")
    return _HEAD + "\n".join(lines) + "\n"


def _short(path: Path, room: str) -> str:
    inside = path.relative_to(SOURCE / room) if (SOURCE / room).is_dir() else path.relative_to(SOURCE)
    return str(inside.with_suffix(""))


if __name__ == "__main__":
    found = rooms()
    PAGE.write_text(page(found))
    DRAWING.write_text(draw(found, essential(uses(found))))
