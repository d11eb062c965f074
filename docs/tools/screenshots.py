"""Make the pictures of the docs from real runs: python docs/tools/screenshots.py.

They show the demonstration in a terminal, its report in a browser (Chromium through playwright), and a
diagnosis of the Appliances test rows (`VARNN_DATA_DIR` says where that data set is).
"""

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.text import Text

from varnn import VARNNRegressor, datasets, evaluation
from varnn.monitoring.diagnostics import PredictionTrace, diagnose_trace
from varnn.report import diagnostic_figures
from varnn.report.figures import to_svg

IMAGES = Path(__file__).parents[1] / "images"
COLUMNS = 100
LARGEST = 250_000  # bytes


def demonstration(report: Path) -> None:
    """Run ``varnn demo``, and keep what the terminal showed."""
    command = [str(Path(sys.executable).with_name("varnn")), "demo", "--output", report.name]
    colours = {**os.environ, "COLUMNS": str(COLUMNS), "FORCE_COLOR": "1", "TERM": "xterm-256color"}
    shown = subprocess.run(
        command, env=colours, cwd=report.parent, capture_output=True, text=True, check=True
    )
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print("$ varnn demo", style="bold")
    *before, last = left_on_screen(shown.stderr)
    console.print(Text.from_ansi("\n".join([*before, shown.stdout.rstrip("\n"), last])))
    svg = console.export_svg(title="varnn demo")
    # The fonts would be asked of another host: the reader's own will do.
    save("terminal.svg", re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL).encode())


def left_on_screen(text: str) -> list[str]:
    """Give the lines that a bar and the words around it leave: what was drawn over is gone."""
    lines = text.splitlines()
    over = [later.startswith("\x1b[2K") for later in lines[1:]] + [False]  # a bar clears its line first
    kept = [line for line, gone in zip(lines, over, strict=True) if not gone]
    return [re.sub(r"\x1b\[[?0-9;]*[A-Zhl]", "", line) for line in kept if "note:" not in line]


def browser(report: Path) -> None:
    """Photograph the report on a desk and on a phone, light and dark: pages show the one that suits them."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        views: list[tuple[str, Literal["light", "dark"], int]] = [
            ("report-light.png", "light", 960),
            ("report-dark.png", "dark", 960),
            ("report-phone-light.png", "light", 390),
            ("report-phone-dark.png", "dark", 390),
        ]
        for name, scheme, width in views:
            page = chromium.new_page(viewport={"width": width, "height": 1200}, color_scheme=scheme)
            page.goto(report.as_uri())
            # A function, not an expression: the page's policy lets nobody evaluate text.
            page.wait_for_function(
                "() => [...document.querySelectorAll('.chart')].every(one => one.matches('.live'))"
            )
            save(name, in_few_colours(page.screenshot()))
            page.close()
        chromium.close()


def diagnosis() -> None:
    """Diagnose the default model on the Appliances test rows."""
    parts = evaluation.cut(datasets.load("appliances"))
    model = VARNNRegressor().fit(parts.train, validation=parts.validation)
    trace = PredictionTrace.of(model.fitted_, parts.lead_in).part(parts.test)
    found = diagnose_trace(trace)
    rows = np.arange(len(trace.panel))
    pictures = {
        "monitor.svg": (
            diagnostic_figures.marked_innovations(rows, trace.innovations, found.events, unit="Wh"),
            "Innovations of the Appliances test rows, and the changes that were noticed in them.",
        ),
        "diagnose-hours.svg": (
            diagnostic_figures.error_by_hour(found, unit="Wh"),
            "Appliances test rows by hour of the day: size and mean of the errors, and the share of labels "
            "within 90 % intervals.",
        ),
        "diagnose-calibration.svg": (
            diagnostic_figures.calibration(found),
            "Calibration on the Appliances test rows: by level, as a histogram, and over time.",
        ),
    }
    for name, (figure, described) in pictures.items():
        save(name, to_svg(figure, described, alone=True).encode())
    words = [textwrap.fill(one, COLUMNS, subsequent_indent="  ") for one in found.findings]
    save("diagnose.txt", ("\n".join(words) + "\n").encode())


def in_few_colours(picture: bytes) -> bytes:
    """Write a picture with 128 colours, which suffice for a page and halve its size."""
    small = io.BytesIO()
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(128).save(small, "PNG", optimize=True)
    return small.getvalue()


def save(name: str, content: bytes) -> None:
    """Write one picture, unless it is too large for a page."""
    if len(content) > LARGEST:
        raise SystemExit(f"{name} has {len(content):,} bytes; at most {LARGEST:,} are allowed.")
    (IMAGES / name).write_bytes(content)


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        demonstration(Path(folder) / "report.html")
        browser(Path(folder) / "report.html")
    diagnosis()
