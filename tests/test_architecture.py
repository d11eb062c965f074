"""The house as its drawing shows it: rooms, private doors, no cycles, and files one can read at a sitting."""

import ast
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "varnn"
FILES = sorted(SOURCE.rglob("*.py"))
TOOL: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "tools" / "architecture.py"), run_name="tool")


def module(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module(path): path for path in FILES}


def imported(path: Path) -> set[str]:
    """Modules that a module imports, by their own names."""
    return {one if one in MODULES else one.rpartition(".")[0] for one in TOOL["imports"](path)}


def test_the_page_and_its_drawing_are_those_of_the_code() -> None:
    rooms = TOOL["rooms"]()
    hint = "run: python docs/tools/architecture.py"
    assert TOOL["PAGE"].read_text() == TOOL["page"](rooms), hint
    assert TOOL["DRAWING"].read_text() == TOOL["draw"](rooms, TOOL["essential"](TOOL["uses"](rooms))), hint


def test_one_look_at_the_package_shows_its_rooms() -> None:
    entries = {path.relative_to(SOURCE).parts[0] for path in FILES} | {"py.typed"}
    named = {one for row in TOOL["layers"]() for one in row}
    assert {one.removesuffix(".py") for one in entries} == named | {"__init__", "py.typed"}
    assert len(entries) <= 24


def test_files_can_be_read_at_a_sitting() -> None:
    lengths = {module(path): len(path.read_text().splitlines()) for path in FILES}
    assert max(lengths.values()) <= 700, max(lengths, key=lambda name: lengths[name])


def test_private_modules_are_used_in_their_own_room_alone() -> None:
    for path in FILES:
        room = module(path).split(".")[1:2]
        for one in imported(path):
            private = any(part.startswith("_") for part in one.split(".")[2:])
            assert not private or one.split(".")[1:2] == room, f"{module(path)} imports {one}"


def statements(path: Path) -> Iterator[ast.stmt]:
    tree = ast.parse(path.read_text())
    yield from tree.body[1:] if ast.get_docstring(tree) else tree.body


@pytest.mark.parametrize("path", [one for one in FILES if one.name == "__init__.py"], ids=module)
def test_a_package_says_what_flows_through_it_and_holds_no_logic(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))
    if path.parent in (SOURCE, SOURCE / "report", SOURCE / "scale"):
        return  # importing these is light: what they offer is imported when it is asked for
    for one in statements(path):
        names = isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "__all__"
        assert isinstance(one, ast.ImportFrom) or names, ast.unparse(one)


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = {name: imported(path) & MODULES.keys() - {name} for name, path in MODULES.items()}
    done: set[str] = set()

    def visit(name: str, way: tuple[str, ...]) -> None:
        assert name not in way, " -> ".join([*way[way.index(name) :], name])
        if name not in done:
            for one in sorted(graph[name]):
                visit(one, (*way, name))
            done.add(name)

    for name in graph:
        visit(name, ())


def test_nothing_but_its_adapter_imports_a_peer_of_the_benches() -> None:
    peers = {"tensorflow", "keras", "river", "mapie", "onnxruntime", "benchmarks"}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found = peers & {one.split(".")[0] for one in names}
            assert not found or path.parent.name == "adapters", module(path)
