"""Run the notebook, and write what its cells give into it: ``python docs/tools/notebook.py``.

It needs the Appliances data set (`VARNN_DATA_DIR`) and matplotlib, and no Jupyter: a notebook is JSON, its
cells share one namespace, and what they print and draw goes into it as Jupyter would put it there. Tests run
``--epochs 2 -o some.ipynb``: every cell, with training cut short.
"""

import argparse
import ast
import base64
import hashlib
import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import matplotlib as mpl

NOTEBOOK = Path(__file__).parents[1] / "reproduction" / "by-hand.ipynb"
FULL = 50  # epochs of the committed outputs
EPOCHS = f"EPOCHS = {FULL}"  # the line that --epochs changes

Cell = dict[str, Any]


def main() -> None:
    """Run all cells in order."""
    parser = argparse.ArgumentParser(description="Run the notebook, and write what its cells give into it.")
    parser.add_argument("--epochs", type=int, default=FULL, help=f"of each training; the paper has {FULL}")
    parser.add_argument("-o", "--output", type=Path, default=NOTEBOOK, help="what to write, if not itself")
    chosen = parser.parse_args()
    if chosen.epochs != FULL and chosen.output.resolve() == NOTEBOOK.resolve():
        parser.error(
            f"--epochs {chosen.epochs} needs -o with another file: {NOTEBOOK.name} has those of {FULL}."
        )
    mpl.use("Agg")
    notebook = json.loads(NOTEBOOK.read_text())
    names: dict[str, Any] = {"__name__": "__main__"}
    for count, cell in enumerate(code_cells(notebook), 1):
        cell["execution_count"] = count
        cell["outputs"] = run(source(cell).replace(EPOCHS, f"EPOCHS = {chosen.epochs}"), names, cell["id"])
    notebook["metadata"]["varnn"] = {"code": fingerprint(notebook), "epochs": chosen.epochs}
    chosen.output.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


def code_cells(notebook: dict[str, Any]) -> list[Cell]:
    """Cells that are run."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def source(cell: Cell) -> str:
    """Text of a cell."""
    return "".join(cell["source"])


def fingerprint(notebook: dict[str, Any]) -> str:
    """Hash the code, so that a test can tell outputs of other code."""
    return hashlib.sha256("\n\n".join(map(source, code_cells(notebook))).encode()).hexdigest()


def run(code: str, names: dict[str, Any], cell: str) -> list[dict[str, Any]]:
    """Run a cell, and give its outputs: text, then figures."""
    statements = ast.parse(code).body
    said = io.StringIO()
    with redirect_stdout(said):
        exec(compile(ast.Module(statements[:-1], []), f"cell {cell}", "exec"), names)
        # "single" prints the value of an expression, as Jupyter does with that of a cell's last line.
        exec(compile(ast.Interactive(statements[-1:]), f"cell {cell}", "single"), names)
    text = said.getvalue().splitlines(keepends=True)
    printed = [{"name": "stdout", "output_type": "stream", "text": text}] if text else []
    return printed + figures()


def figures() -> list[dict[str, Any]]:
    """Take all figures that were drawn with pyplot, as PNG."""
    from matplotlib import pyplot

    outputs = []
    for number in pyplot.get_fignums():
        drawn = io.BytesIO()
        # No name of a version in the file: the same picture is the same bytes.
        pyplot.figure(number).savefig(drawn, format="png", dpi=100, metadata={"Software": None})
        png = base64.b64encode(drawn.getvalue()).decode()
        data = {"image/png": png, "text/plain": ["<Figure>"]}
        outputs.append({"data": data, "metadata": {}, "output_type": "display_data"})
    pyplot.close("all")
    return outputs


if __name__ == "__main__":
    main()
