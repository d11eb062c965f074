"""How many files does it take to add something? One of each is added to a copy of the package, and run.

``python docs/tools/seams.py`` prints the table. Each example is what CONTRIBUTING.md tells to do, no more: a
new file, or lines put after others; then a program that uses what was added. Tests and pages, which each
change brings, too, are not counted.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Addition:
    """Something to add: new files, lines in place of others, and a program that ends well if it works."""

    what: str
    program: str
    files: dict[str, str] = field(default_factory=dict)
    edits: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    @property
    def touched(self) -> list[str]:
        """Files of the package that are written."""
        return sorted({*self.files, *self.edits})

    def try_out(self) -> None:
        """Make it part of a copy of the package, and run the program there."""
        with TemporaryDirectory() as folder:
            copy = Path(folder) / "varnn"
            shutil.copytree(ROOT / "src" / "varnn", copy, ignore=shutil.ignore_patterns("__pycache__"))
            for name, text in self.files.items():
                (copy / name).write_text(text)
            for name, changes in self.edits.items():
                text = (copy / name).read_text()
                for old, new in changes:
                    if text.count(old) != 1:
                        raise LookupError(
                            f"{name} must hold {old!r} once; it holds it {text.count(old)} times."
                        )
                    text = text.replace(old, new)
                (copy / name).write_text(text)
            paths = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
            subprocess.run(
                [sys.executable, "-c", self.program],
                check=True,
                env={**os.environ, "PYTHONPATH": paths},
                cwd=folder,
                capture_output=True,
                text=True,
            )


_PANEL = """
import numpy as np
from varnn import Panel, VARNNRegressor, baselines, evaluation
panel = Panel.from_arrays(None, np.sin(np.arange(300) / 9))
"""

ADDITIONS = [
    Addition(
        what="a metric",
        edits={
            "evaluation/metrics.py": [
                (
                    "@metric\ndef mse(",
                    "@metric\ndef worst(truth: npt.ArrayLike, prediction: npt.ArrayLike) -> float:\n"
                    '    """Largest absolute error, in the target\'s units."""\n'
                    "    labels, predictions = _known(truth, prediction)\n"
                    "    return float(np.abs(labels - predictions).max())\n\n\n@metric\ndef mse(",
                )
            ]
        },
        program=_PANEL
        + "line = evaluation.compare(panel, ['persistence'], metrics=['worst']).rows()[0]\n"
        + "assert 0 < line['worst'] < 1, line",
    ),
    Addition(
        what="a baseline",
        files={
            "baselines/mean.py": '"""The mean of the training labels."""\n\n'
            "import numpy as np\n\n\nclass Mean:\n"
            "    def fit(self, panel, *, validation=None):\n"
            "        self.mean_ = float(np.nanmean(panel.target))\n        return self\n\n"
            "    def predict(self, panel):\n        return np.full(len(panel), self.mean_)\n"
        },
        edits={
            "baselines/registry.py": [
                (
                    "from varnn.baselines.neural import Network\n",
                    "from varnn.baselines.mean import Mean\nfrom varnn.baselines.neural import Network\n",
                ),
                ('    "persistence": Persistence,\n', '    "persistence": Persistence,\n    "mean": Mean,\n'),
            ]
        },
        program=_PANEL
        + "names = [line['model'] for line in evaluation.compare(panel, ['mean', 'arx-lr']).rows()]\n"
        + "assert 'mean' in names, names",
    ),
    Addition(
        what="a data set",
        files={
            "datasets/tiny.py": '"""A made table."""\n\nfrom varnn.data.panel import Panel\n'
            "from varnn.datasets import _tables\nfrom varnn.datasets._source import Source\n\n"
            'SOURCE = Source(name="tiny", url="https://example.org/tiny.zip", page="https://example.org",\n'
            '    licence="CC0", citation="nobody", rows=3, inputs=0, largest=100, megabytes=1,\n'
            '    checksums={"tiny.csv": "'
            "6b5c198a351374154a8da6d37adc0d878a60b217ec5411afa60bfec712118999"
            '"})\n\n\ndef read(members, *, paper):\n    (content,) = members.read(["tiny.csv"])\n'
            '    return Panel.from_arrays(None, _tables.columns(content)["y"])\n'
        },
        edits={
            "datasets/registry.py": [
                (
                    "import appliances, beijing, bidmc, store\n",
                    "import appliances, beijing, bidmc, store, tiny\n",
                ),
                ('"beijing": beijing}', '"beijing": beijing, "tiny": tiny}'),
            ]
        },
        program="import os, pathlib\n"
        "os.environ['VARNN_DATA_DIR'] = str(pathlib.Path.cwd())\n"
        "pathlib.Path('tiny.csv').write_bytes(b'y\\n1\\n2\\n3\\n')\n"
        "from varnn import datasets\n"
        "assert datasets.load('tiny').target.tolist() == [1.0, 2.0, 3.0]",
    ),
    Addition(
        what="a command",
        files={
            "cli/rows.py": '"""``varnn rows``: how many rows a table has."""\n\nimport typer\n\n'
            "from varnn.cli._options import Data, Target\n\n\n"
            'def rows(data: Data, target: Target) -> None:\n    """Count the rows of a table."""\n'
            "    from varnn import Panel\n\n    typer.echo(len(Panel.read(data, target=target)))\n"
        },
        edits={
            "cli/app.py": [
                ("    reproduce,\n", "    reproduce,\n    rows,\n"),
                (
                    "app.add_typer(datasets.app",
                    '_add("rows", rows.rows, "Count rows.")\napp.add_typer(datasets.app',
                ),
            ]
        },
        program="import pathlib\nfrom typer.testing import CliRunner\nfrom varnn.cli.app import app\n"
        "pathlib.Path('a.csv').write_text('y\\n1\\n2\\n')\n"
        "assert CliRunner().invoke(app, ['rows', 'a.csv', '--target', 'y']).output.strip() == '2'",
    ),
    Addition(
        what="an engine",
        files={
            "network/engines/mirror.py": '"""The reference engine under another name."""\n\n'
            "from varnn.network.engines.reference import ReferenceEngine\n\n\n"
            'class MirrorEngine(ReferenceEngine):\n    name = "mirror"\n'
        },
        edits={
            "network/engines/registry.py": [
                (
                    "from varnn.network.engines.reference import ReferenceEngine\n",
                    "from varnn.network.engines.mirror import MirrorEngine\n"
                    "from varnn.network.engines.reference import ReferenceEngine\n",
                ),
                (
                    "    FusedEngine,\n    ReferenceEngine,\n",
                    "    FusedEngine,\n    MirrorEngine,\n    ReferenceEngine,\n",
                ),
            ]
        },
        program=_PANEL
        + "small = {'epochs': 1, 'hidden_size': 4}\n"
        + "one, other = (VARNNRegressor.paper('RM', engine=name, **small).fit(panel).predict(panel)\n"
        + "              for name in ('mirror', 'reference'))\n"
        + "assert (one == other).all()",
    ),
    Addition(
        what="an interval method",
        files={
            "model/intervals/split_conformal.py": '"""Split conformal prediction (Vovk et al., 2005)."""\n\n'
            "from dataclasses import dataclass\n\nimport numpy as np\n\n"
            "from varnn.model.intervals.calibrator import Calibrator, Tracker\n"
            "from varnn.step.intervals import TAUS, level_weights\n\n\n"
            "@dataclass(frozen=True, eq=False, kw_only=True)\nclass SplitConformal(Calibrator):\n"
            "    quantiles: np.ndarray\n\n    @classmethod\n    def fit(cls, validation, training=None):\n"
            "        return cls(quantiles=np.nanquantile(validation.errors, TAUS, axis=0).T)\n\n"
            "    def tracker(self, n_series, levels=None):\n"
            "        return Unmoved(np.broadcast_to(self.quantiles, (n_series, *self.quantiles.shape)))\n\n\n"
            "class Unmoved(Tracker):\n"
            "    def __init__(self, quantiles):\n        self.quantiles = quantiles\n\n"
            "    def expect(self, features): ...\n\n    def observe(self, errors): ...\n\n"
            "    def bounds(self, levels):\n"
            "        reach = self.quantiles @ level_weights(tuple(levels.tolist()))\n"
            "        return reach[..., : len(levels)], reach[..., len(levels) :]\n\n"
            "    def state(self):\n        return np.empty((len(self.quantiles), 0))\n\n"
            "    def restore(self, state): ...\n"
        },
        edits={
            "model/intervals/methods.py": [
                (
                    "from varnn.model.intervals.horizon_bands import HorizonBands\n",
                    "from varnn.model.intervals.horizon_bands import HorizonBands\n"
                    "from varnn.model.intervals.split_conformal import SplitConformal\n",
                ),
                (
                    '    "error scale": ErrorScale,\n',
                    '    "error scale": ErrorScale,\n    "split": SplitConformal,\n',
                ),
            ]
        },
        program=_PANEL
        + "import varnn\n"
        + "small = {'epochs': 1, 'hidden_size': 4, 'ensemble': 1, 'horizon': 2}\n"
        + "model = VARNNRegressor(**small, intervals='split').fit(panel)\n"
        + "model.save('m.varnn')\nagain = varnn.load('m.varnn')\n"
        + "found = again.predict(panel, interval=0.9)\n"
        + "assert np.ptp(found.upper - found.prediction) < 1e-9\n"
        + "assert again.forecast(interval=0.9).upper is not None",
    ),
    Addition(
        what="a variant or ablation of the memory",
        edits={
            "network/cell.py": [
                (
                    'MemoryActivation = Literal["relu", "tanh"]',
                    'MemoryActivation = Literal["relu", "tanh", "hard"]',
                ),
                (
                    '        h = _relu(z) if architecture.memory_activation == "relu" else _tanh(z)\n',
                    '        kinds = {"relu": _relu, "tanh": _tanh, "hard": lambda one: one.clip(-1, 1)}\n'
                    "        h = kinds[architecture.memory_activation](z)\n",
                ),
            ],
            "step/operations.py": [
                ('ACTIVATIONS = ("relu", "tanh")\n', 'ACTIVATIONS = ("relu", "tanh", "hard")\n'),
                ("_RELU, _TANH = range", "_RELU, _TANH, _HARD = range"),
                (
                    "        np.tanh(stack, out=stack)\n",
                    "        np.tanh(stack, out=stack)\n    elif activation == _HARD:\n"
                    "        np.clip(stack, -1, 1, out=stack)\n",
                ),
                (
                    "                    stack[member, row, column] = np.tanh(number)\n",
                    "                    stack[member, row, column] = np.tanh(number)\n"
                    "                elif activation == _HARD:\n"
                    "                    stack[member, row, column] = min(max(number, -1), 1)\n",
                ),
            ],
        },
        program=_PANEL
        + "from varnn.errors import ConfigError\n"
        + "def hard(**more):\n"
        + "    return VARNNRegressor.paper('RM', memory_activation='hard', epochs=1, hidden_size=4, **more)\n"
        + "model = hard().fit(panel)\n"
        + "cell, weights = model.fitted_.architecture, model.fitted_.weights\n"
        + "from varnn.network.scoring import score\n"
        + "rows = model.fitted_.prepared(panel).panel\n"
        + "told = score(cell, weights, rows.inputs, rows.target, rows.first_rows, model.fitted_.window)\n"
        + "found = model.fitted_.pipeline.scaling.restore(told.predictions[0])\n"
        + "assert np.allclose(model.predict(panel), found, atol=1e-5), 'the step is not the cell'\n"
        + "try:\n    hard(engine='fused').fit(panel)\nexcept ConfigError as error:\n    print(error)\n"
        + "else:\n    raise SystemExit('an engine computed what it does not know')",
    ),
]

if __name__ == "__main__":
    for addition in ADDITIONS:
        addition.try_out()
        print(f"{addition.what:38}{len(addition.touched)}  {', '.join(addition.touched)}")  # noqa: T201  # a table
