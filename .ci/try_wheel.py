"""The wheel in dist/, installed as users install it: with what training needs, and with nothing else.

    python .ci/try_wheel.py

One new environment gets ``varnn[train,plots,files]``, runs the demonstration, fits a model from a CSV and
compares. The other gets the wheel alone: at most 15 packages; it loads that model, gives the same
predictions, streams, and says what it lacks for the rest.
"""

import json
import os
import subprocess
import sys
import time
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
MOST = 15  # packages that predicting and streaming may need
NOT_COUNTED = {"varnn", "pip", "setuptools"}
TABLE = "heat,wind,load\n" + "".join(f"{t % 13},{t % 5},{(t % 13) + (t % 7) / 10}\n" for t in range(400))

PREDICT = """
import csv, json, sys
import varnn
model = varnn.load("house.varnn")
rows = [[float(one) for one in row] for row in list(csv.reader(open("house.csv")))[1:]]
X, y = [row[:2] for row in rows], [row[2] for row in rows]
predicted = model.predict(varnn.Panel.from_arrays(X, y, input_names=["heat", "wind"])).tolist()
live = model.stream()
for x, label, expected in zip(X, y, predicted):
    assert abs(live.predict(x) - expected) < 1e-3, (live.predict(x), expected)
    live.observe(label)
json.dump(predicted, sys.stdout)
"""
LOADED = "import sys; from varnn import VARNNRegressor, load; print(*sys.modules)"
SECONDS = "from time import process_time as t; a = t(); from varnn import VARNNRegressor; print(t() - a)"
NOT_LOADED = {"sklearn", "scipy", "pandas", "torch", "joblib"}


class Installed:
    """A new environment with the wheel in it, and a folder to work in."""

    def __init__(self, folder: Path, wheel: Path, extras: str = "") -> None:
        venv.create(folder / "venv", with_pip=True)
        self.bin, self.folder = folder / "venv" / "bin", folder
        began = time.perf_counter()
        lock = ["--constraint", str(ROOT / "requirements.lock")]
        pip = ["python", "-m", "pip", "--disable-pip-version-check"]
        self.run(*pip, "install", "--quiet", *lock, f"varnn{extras} @ {wheel.as_uri()}")
        listed = json.loads(self.run(*pip, "list", "--format=json"))
        self.packages = {one["name"]: one["version"] for one in listed if one["name"] not in NOT_COUNTED}
        say(f"varnn{extras}: {len(self.packages)} packages in {time.perf_counter() - began:.0f} s")
        self.run("python", "-m", "pip", "check")

    def run(self, *command: str, given: str = "", code: int = 0) -> str:
        """Run a command in the folder, without a word of this checkout; its standard output."""
        outside = {name: one for name, one in os.environ.items() if not name.startswith("PYTHON")}
        done = subprocess.run(
            [str(self.bin / command[0]), *command[1:]],
            cwd=self.folder,
            env=outside,
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != code:
            sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
        return done.stdout or done.stderr


def main() -> None:
    """Try both."""
    (wheel,) = (ROOT / "dist").glob("*.whl")
    with TemporaryDirectory() as folder:
        whole, bare = Path(folder, "whole"), Path(folder, "bare")
        for one in (whole, bare):
            one.mkdir()
            (one / "house.csv").write_text(TABLE)
        trained = Installed(whole, wheel, "[train,plots,files]")
        trained.run("varnn", "demo", "--rows", "1000", "--epochs", "1", "--output", "report.html")
        expect((whole / "report.html").stat().st_size > 10_000, "the demonstration's page is empty")
        quick = ("--epochs", "1", "--hidden-size", "4", "--ensemble", "1")
        trained.run("varnn", "fit", "house.csv", "--target", "load", "-o", "house.varnn", *quick)
        trained.run("varnn", "compare", "house.csv", "--target", "load", "--models", "persistence,arx-lr")
        (bare / "house.varnn").write_bytes((whole / "house.varnn").read_bytes())
        expected = json.loads(trained.run("python", "-c", PREDICT))

        alone = Installed(bare, wheel)
        say("  " + ", ".join(f"{name} {version}" for name, version in sorted(alone.packages.items())))
        expect(len(alone.packages) <= MOST, f"at most {MOST} packages are to be needed")
        extra = set(alone.run("python", "-c", LOADED).split()) & NOT_LOADED
        expect(not extra, f"the estimator imports {extra}")
        seconds = float(alone.run("python", "-c", SECONDS))
        say(f"  import of VARNNRegressor: {seconds:.2f} s of processor time")
        found = json.loads(alone.run("python", "-c", PREDICT))
        furthest = max(abs(one - other) for one, other in zip(found, expected, strict=True))
        expect(furthest < 1e-4, f"predictions differ by {furthest} between the two")
        expect("predict" in alone.run("varnn", "--help"), "varnn --help does not name its commands")
        lines = '{"x": [1, 2]}\n{"y": 1.5}\n'
        answers = alone.run("varnn", "stream", "house.varnn", given=lines).splitlines()
        expect("prediction" in answers[0] and "innovation" in answers[1], f"the stream answers {answers}")
        for needs in (("fit", "house.csv", "--target", "load", "-o", "no.varnn"), ("demo",)):
            said = alone.run("varnn", *needs, code=2)
            expect("pip install 'varnn[" in said and "Traceback" not in said, f"varnn {needs[0]} says {said}")
    say("The wheel works, with extras and without.")


def expect(holds: bool, otherwise: str) -> None:
    """End with a sentence where something does not hold."""
    if not holds:
        sys.exit(otherwise)


def say(words: str) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
