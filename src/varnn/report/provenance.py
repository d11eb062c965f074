"""When, where and with what a result was made: every results file and page carries it."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def provenance() -> dict[str, str]:
    """Say when, where and with what something was made.

    Examples
    --------
    >>> sorted(provenance())[:3]
    ['date', 'lightgbm', 'machine']
    """
    facts = {"date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), "python": platform.python_version()}
    for package in ("varnn", "numpy", "scikit-learn", "torch", "numba", "lightgbm"):
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            facts[package] = "not installed"
    facts["machine"] = f"{platform.system()} {platform.machine()}, {_processor()}"
    return facts


def checkout_commit() -> str:
    """Name the commit of the checkout that this package runs from; empty outside a checkout.

    Examples
    --------
    >>> checkout_commit() == "" or len(checkout_commit().split()[0]) >= 7
    True
    """
    folder = Path(__file__).parent.parent

    def git(*words: str) -> str:
        ran = subprocess.run(("git", "-C", str(folder), *words), capture_output=True, text=True, check=True)
        return ran.stdout.strip()

    try:
        git("ls-files", "--error-unmatch", str(Path(__file__)))  # an environment inside another checkout
        commit = git("rev-parse", "--short", "HEAD")
        return f"{commit} with changes" if git("status", "--porcelain", "--", str(folder)) else commit
    except (OSError, subprocess.CalledProcessError):
        return ""


def _processor() -> str:
    """Name the processor where the system tells, else give the number of cores alone."""
    cores = f"{os.cpu_count()} cores"
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return cores
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]}, {cores}" if names else cores
