"""Tables x contenders (x channels x seeds) -> jobs, each in a process of its own with one thread -> results.

A finished job is a line of ``jobs.jsonl`` in the output folder, so an interrupted run loses only what was
under way; a line that other code made is not used. ``python -m benchmarks.online.run`` runs jobs and nothing
else, on a machine that has the core of varnn and torch but none of the packages of the command; copy its
``jobs.jsonl``, and ``python -m benchmarks online`` makes the results of it.
"""

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import varnn
from benchmarks import fresh
from benchmarks.online.contenders import LEVEL, OURS, SIMPLE, default_scores, simple_scores
from benchmarks.online.protocol import Table, Task, names
from varnn.errors import check_choice
from varnn.report.provenance import provenance

CONTENDERS = (*SIMPLE, OURS)
FIRST_SEED = 2025
OUTPUT = Path("results") / "online"
_CODE = ("data.py", "protocol.py", "contenders.py", "published.json")


@dataclass(frozen=True)
class Job:
    """One contender on one table; of those that draw, one channel and one seed."""

    table: str
    contender: str
    channel: str | None = None
    seed: int | None = None

    def __str__(self) -> str:
        return ", ".join(str(one) for one in (self.table, self.contender, self.channel, self.seed) if one)


@dataclass(frozen=True)
class Done:
    """A finished job: scores by channel (None where the contender does not apply), and where it ran."""

    job: Job
    code: str
    scores: dict[str, dict[str, float]] | None
    made: dict[str, str]


def listed(
    tables: Sequence[str], contenders: Sequence[str], seeds: int, channels: Sequence[str] | None = None
) -> list[Job]:
    """List the jobs, longest first, so that no long one is left for the end."""
    jobs = [Job(table, one) for table in tables for one in SIMPLE if one in contenders]
    if OURS not in contenders:
        return jobs
    for table in sorted(map(Table.named, tables), key=lambda table: -table.validation):
        known = Task.of(table).rows.channels
        for channel in channels or ():
            check_choice("channels", channel, known)
        jobs += [
            Job(table.name, OURS, channel, FIRST_SEED + draw)
            for channel in (channels or known)
            for draw in range(seeds)
        ]
    return jobs


def measure(
    *,
    threads: int,
    table: str,
    contender: str,
    channel: str | None,
    seed: int | None,
    settings: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Do one job; gives what a line keeps beside it."""
    task = Task.of(Table.named(table))
    if channel is None or seed is None:
        return {"scores": simple_scores(task, contender), "made": provenance()}
    import torch

    torch.set_num_threads(threads)
    return {
        "scores": {channel: default_scores(task, channel, seed, **(settings or {}))},
        "made": provenance(),
    }


def run(
    jobs: Sequence[Job], folder: Path, *, workers: int, on_done: Callable[[Done, bool], None]
) -> list[Done]:
    """Do the jobs that the folder does not hold; calls back with each, and whether it was done before."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = {one.job: one for one in read(folder) if one.code == code()}
    done = [kept[job] for job in jobs if job in kept]
    for one in done:
        on_done(one, True)
    open_jobs = [job for job in jobs if job not in kept]
    with ThreadPoolExecutor(workers) as pool:  # of threads: each only waits for its process
        under_way = {
            pool.submit(fresh.call, "benchmarks.online.run:measure", threads=1, **asdict(job)): job
            for job in open_jobs
        }
        try:
            for future in as_completed(under_way):
                one = Done(under_way[future], code(), **future.result())
                with (folder / "jobs.jsonl").open("a") as file:
                    file.write(json.dumps(asdict(one)) + "\n")
                done.append(one)
                on_done(one, False)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return done


def read(folder: Path) -> list[Done]:
    """Read the finished jobs of a folder; a last line that was cut off is passed over."""
    path = folder / "jobs.jsonl"
    found = []
    for line in path.read_text().splitlines() if path.is_file() else ():
        try:
            fields = json.loads(line)
            found.append(Done(**{**fields, "job": Job(**fields["job"])}))
        except (ValueError, TypeError, KeyError):
            continue
    return found


@cache
def code() -> str:
    """Fingerprint of the library and of this bench: a job made by other code is done anew."""
    library, bench = Path(varnn.__file__).parent, Path(__file__).parent
    total = hashlib.sha256()
    for path in [*sorted(library.rglob("*.py")), *(bench / name for name in _CODE)]:
        total.update(path.name.encode() + path.read_bytes())
    return total.hexdigest()[:16]


def summed_up(done: Iterable[Done], command: str) -> dict[str, Any]:
    """Turn finished jobs into what is kept; a seed counts once all channels of its table are there."""
    by_line: dict[tuple[str, str], list[Done]] = {}
    finished = list(done)
    for one in finished:
        by_line.setdefault((one.job.table, one.job.contender), []).append(one)
    lines = [
        line
        for table in names()
        for contender in CONTENDERS
        if (line := _line(table, contender, by_line.get((table, contender), []))) is not None
    ]
    used = ("machine", "python", "numpy", "torch", "scikit-learn")
    machines = {json.dumps({name: one.made.get(name, "") for name in used}) for one in finished}
    return {
        "command": command,
        **provenance(),
        "code": code(),
        "made on": [json.loads(one) for one in sorted(machines)],
        "level": LEVEL,
        "lines": lines,
    }


def _line(table: str, contender: str, done: Sequence[Done]) -> dict[str, Any] | None:
    """Gather a contender's scores on one table: lists have one entry for each seed."""
    by_seed: dict[int | None, dict[str, dict[str, float]]] = {}
    for one in done:
        by_seed.setdefault(one.job.seed, {}).update(one.scores or {})
    channels = Task.of(Table.named(table)).rows.channels if by_seed else ()
    whole = {seed: by_seed[seed] for seed in sorted(by_seed, key=lambda seed: seed or 0)}
    whole = {seed: scores for seed, scores in whole.items() if set(scores) == set(channels)}
    if not whole:
        return None
    first = next(iter(whole.values()))[channels[0]]
    by_channel = {
        channel: {score: [scores[channel][score] for scores in whole.values()] for score in first}
        for channel in channels
    }
    means = {
        score: np.mean([by_channel[channel][score] for channel in channels], axis=0).tolist()
        for score in first
    }
    return {
        "table": table,
        "contender": contender,
        "seeds": [seed for seed in whole if seed is not None],
        **means,
        "channels": by_channel,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Run jobs, and nothing else."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.online.run", description=main.__doc__)
    parser.add_argument("--data", nargs="+", choices=names(), default=names())
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=CONTENDERS)
    parser.add_argument("--channels", nargs="+")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    asked = parser.parse_args(arguments)
    jobs = listed(asked.data, asked.contenders, asked.seeds, asked.channels)
    left = len(jobs)

    def on_done(one: Done, kept: bool) -> None:
        nonlocal left
        left -= 1
        sys.stdout.write(f"{in_words(one, kept)}; {left} left\n")
        sys.stdout.flush()

    run(jobs, asked.output, workers=asked.jobs, on_done=on_done)


def in_words(one: Done, kept: bool) -> str:
    """Say what a job found.

    Examples
    --------
    >>> in_words(Done(Job("WTH", "persistence"), "", {"Wind": {"mse": 0.5}}, {}), True)
    'WTH, persistence: MSE 0.5 (done before)'
    """
    if one.scores is None:
        return f"{one.job}: does not apply"
    mean = float(np.mean([scores["mse"] for scores in one.scores.values()]))
    return f"{one.job}: MSE {mean:.4g}{' (done before)' if kept else ''}"


if __name__ == "__main__":
    main()
