"""How often is each behaviour of a step written? ``python docs/tools/behaviours.py`` prints the table.

A behaviour has a mark: a name that its arithmetic cannot do without. A module that uses the mark, other than
to import it or to define it, is an implementation.
"""

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "varnn"
MARKS = {
    "scaling": "TARGET_LIMIT",
    "label filter": "MAX_REJECTED",
    "linear part": "past_labels",
    "adaptation": "LEAK",
    "aggregation": "_KEPT",
    "intervals": "TRACKING_RATE",
    "floor": "_LOWEST",
}
_FIELDS = "step/layout.py"  # it lists what series carry, and computes nothing


def implementations() -> dict[str, list[str]]:
    """Return the modules that implement each behaviour."""
    found: dict[str, list[str]] = {name: [] for name in MARKS}
    for path in sorted(SOURCE.rglob("*.py")):
        module = str(path.relative_to(SOURCE))
        used = {
            node.id if isinstance(node, ast.Name) else node.attr
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load)
        }
        for name, mark in MARKS.items():
            if mark in used and module != _FIELDS:
                found[name].append(module)
    return found


if __name__ == "__main__":
    for behaviour, modules in implementations().items():
        print(f"{behaviour:14}{len(modules)}  {', '.join(modules)}")  # noqa: T201  # a table
