"""What will this server do in the next second? python examples/gallery/server_metrics.py [--target running].

Records this machine once a second (Linux), or takes the recording that is there, and asks who predicts best
what is written to disk in the coming second, or how many processes will want a processor.
"""

import argparse
import csv
import time
from pathlib import Path

import numpy as np
import pyarrow.csv

from varnn import Panel, evaluation
from varnn.monitoring import Monitor
from varnn.report import comparison_page

MOMENT = ("running", "blocked", "available_mb", "dirty_mb")  # as it is at the end of a second
COUNTERS = ("switches", "forks", "read_kb", "written_kb")  # what happened in it
TARGETS = ("written_kb", "running", "busy")
MODELS = ["persistence", "arx-lr", "narx-gbm", "varnn"]


def read_proc() -> dict[str, float]:
    """Read what the kernel counts: of this moment, and since the start."""
    stat = {line.split()[0]: line.split()[1:] for line in Path("/proc/stat").read_text().splitlines()}
    memory = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    disks = [line.split() for line in Path("/proc/diskstats").read_text().splitlines()]
    whole = [disk for disk in disks if (Path("/sys/block") / disk[2]).exists()]  # not their partitions, too
    ticks = [float(tick) for tick in stat["cpu"][:8]]
    return {
        "ticks": sum(ticks),
        "idle": ticks[3] + ticks[4],
        "running": float(stat["procs_running"][0]),
        "blocked": float(stat["procs_blocked"][0]),
        "available_mb": float(memory["MemAvailable"].split()[0]) / 1e3,
        "dirty_mb": float(memory["Dirty"].split()[0]) / 1e3,
        "switches": float(stat["ctxt"][0]),
        "forks": float(stat["processes"][0]),
        "read_kb": sum(float(disk[5]) for disk in whole) / 2,
        "written_kb": sum(float(disk[9]) for disk in whole) / 2,
    }


def record(path: Path, seconds: int, step: float = 1.0) -> None:
    """Write a line a second: how the machine is at its end, what happened in it, and how busy it was."""
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["time", *MOMENT, *COUNTERS, "busy"])
        before, began = read_proc(), time.time()
        for row in range(1, seconds + 1):
            time.sleep(max(0.0, began + row * step - time.time()))
            now = read_proc()
            idle = (now["idle"] - before["idle"]) / max(1.0, now["ticks"] - before["ticks"])
            numbers = [now[name] for name in MOMENT] + [now[name] - before[name] for name in COUNTERS]
            moment = np.datetime64(round((began + row * step) * 1e3), "ms")
            table.writerow([moment, *(round(one, 1) for one in numbers), round(100 * (1 - idle), 1)])
            file.flush()
            before = now


def load(path: Path, target: str = TARGETS[0]) -> Panel:
    """Read a recording: each row knows a second, and its label is what the next one has of the target."""
    frame = pyarrow.csv.read_csv(path)
    columns = {name: frame[name].to_numpy() for name in (*MOMENT, *COUNTERS, "busy")}
    for name in COUNTERS:  # from nothing to a gigabyte: in orders of magnitude
        columns[name] = np.log10(1 + columns[name])
    label = columns[target][1:]
    inputs = np.column_stack([column[:-1] for column in columns.values()])
    moments = frame["time"].to_numpy()[:-1]
    return Panel.from_arrays(inputs, label, time=moments, input_names=list(columns), target_name=target)


def compare(panel: Panel) -> evaluation.Comparison:
    """Score the models on the last fifth of the seconds; all choices were made before it."""
    return evaluation.compare(panel, MODELS, seeds=3, metrics=["rmse", "mae", "skill", "coverage", "width"])


def watch(comparison: evaluation.Comparison) -> list[str]:
    """Run live through the rows up to the end, and name the seconds when it stopped being as usual."""
    rows, scored, said = comparison.parts.lead_in, comparison.parts.scored(), []
    live, monitor = comparison.fitted["varnn"].stream(), Monitor()
    for moment, x, y, counts in zip(rows.time, rows.inputs, rows.target, scored, strict=True):
        live.predict(x, time=moment)
        events = monitor.observe(live.observe(y))
        said += [
            f"{np.datetime_as_string(moment, unit='s')}: {event.kind}, size {event.size:.2g}"
            for event in events
            if counts
        ]
    return said


def main() -> None:
    """Record where nothing is recorded; compare; watch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--csv", type=Path, default=Path("server-metrics.csv"), help="taken where it is there"
    )
    parser.add_argument("--target", choices=TARGETS, default=TARGETS[0])
    parser.add_argument("--seconds", type=int, default=3600, help="how long to record otherwise")
    chosen = parser.parse_args()
    if not chosen.csv.exists():
        record(chosen.csv, chosen.seconds)
    comparison = compare(load(chosen.csv, chosen.target))
    print(comparison_page.in_words(comparison))
    print("\n".join(watch(comparison)))


if __name__ == "__main__":
    main()
