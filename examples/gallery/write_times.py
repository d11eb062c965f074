"""How long will this write take? python examples/gallery/write_times.py [--writes 3000] [--folder .].

Times writes with fsync of files of 4 kB to 16 MB into a folder, while others write there now and then and
nobody says when; or takes the recording that is there. Then it asks who predicts the next time best.
"""

import argparse
import csv
import math
import multiprocessing
import os
import random
import time
from pathlib import Path

import numpy as np

from varnn import Panel, evaluation
from varnn.report import comparison_page

COLUMNS = ["time", "log2_kb", "dirty_mb", "writeback_mb", "blocked", "pause_ms", "log10_ms"]
MODELS = ["persistence", "lr", "arx-lr", "narx-gbm", "varnn"]


def write_and_sync(path: Path, kilobytes: int) -> float:
    """Write a file so that it is on the disk; give the milliseconds that took."""
    content = os.urandom(1024) * kilobytes  # made before the clock runs
    start = time.perf_counter()
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return (time.perf_counter() - start) * 1e3


def others(folder: Path, seed: int) -> None:
    """Write 64 MB files for a while, rest for a while: the neighbours that a shared disk has."""
    drawn = random.Random(seed)
    while True:
        until = time.time() + drawn.uniform(3, 12)
        while time.time() < until:
            write_and_sync(folder / f"others-{seed}.bin", 64 * 1024)
        time.sleep(drawn.uniform(5, 30))


def known_now() -> list[float]:
    """Read what the kernel knows before a write: data waiting for the disk, and processes waiting for it."""
    memory = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    stat = dict(line.split()[:2] for line in Path("/proc/stat").read_text().splitlines())
    waiting = [float(memory[name].split()[0]) / 1e3 for name in ("Dirty", "Writeback")]
    return [*waiting, float(stat["procs_blocked"])]


def record(path: Path, writes: int, folder: Path, *, neighbours: int = 2, pause: float = 0.1) -> None:
    """Time writes of sizes drawn evenly over the powers of two, with pauses."""
    drawn = random.Random(1)
    rivals = [multiprocessing.Process(target=others, args=(folder, seed)) for seed in range(neighbours)]
    for rival in rivals:
        rival.start()
    try:
        with path.open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(COLUMNS)
            for _ in range(writes):
                rest = drawn.uniform(0, 2 * pause)
                time.sleep(rest)
                power, before, moment = drawn.uniform(2, 14), known_now(), time.time()
                taken = write_and_sync(folder / "ours.bin", round(2**power))
                stamp = np.datetime64(round(moment * 1e3), "ms")
                numbers = [power, *before, rest * 1e3, math.log10(taken)]
                table.writerow([stamp, *(round(number, 3) for number in numbers)])
    finally:
        for rival in rivals:
            rival.terminate()
            rival.join()
        for left in [folder / "ours.bin", *folder.glob("others-*.bin")]:
            left.unlink(missing_ok=True)


def load(path: Path) -> Panel:
    """Read a recording; writes come when they come, so that the rows have an order and no sampling step."""
    return Panel.read(path, target="log10_ms", time=None, inputs=COLUMNS[1:-1])


def compare(panel: Panel) -> evaluation.Comparison:
    """Score the models on the last fifth of the writes; all choices were made before it."""
    return evaluation.compare(panel, MODELS, seeds=3, metrics=["rmse", "mae", "skill", "coverage", "width"])


def bounds(comparison: evaluation.Comparison) -> list[str]:
    """Say what to plan for: how often a write took longer than the upper end of its 90 % interval."""
    rows, scored = comparison.parts.lead_in, comparison.parts.scored()
    _, _, upper = comparison.fitted["varnn"].predict(rows, interval=0.9)
    over = np.mean(rows.target[scored] > upper[scored])
    milliseconds = 10 ** upper[scored]
    return [
        f"{over:.1%} of the writes took longer than their upper bound; 5 % is what it says.",
        f"A bound is {np.median(milliseconds):.0f} ms in the middle, from {milliseconds.min():.0f} "
        f"to {milliseconds.max():,.0f} ms.",
    ]


def main() -> None:
    """Record where nothing is recorded; compare; say what to plan for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--csv", type=Path, default=Path("write-times.csv"), help="taken where it is there")
    parser.add_argument("--writes", type=int, default=3000, help="how many to time otherwise")
    parser.add_argument("--folder", type=Path, default=Path(), help="on the disk to measure")
    chosen = parser.parse_args()
    if not chosen.csv.exists():
        record(chosen.csv, chosen.writes, chosen.folder)
    comparison = compare(load(chosen.csv))
    print(comparison_page.in_words(comparison))
    print("\n".join(bounds(comparison)))


if __name__ == "__main__":
    main()
