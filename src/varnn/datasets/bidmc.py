"""BIDMC: 53 recordings of 8 minutes from intensive care, one row per second, one series per record.

The target is the heart rate (HR) that the monitor shows. The inputs are that second of three
waveforms, 125 samples each, or the monitor's other numbers. The 53 records come from 46 patients:
a split that respects patients keeps their records together.
"""

import re
from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np

from varnn.data.panel import Panel
from varnn.datasets import _tables, store
from varnn.datasets._cache import Arrays, remembered
from varnn.datasets._source import Source, checksums
from varnn.datasets.store import Members
from varnn.errors import ConfigError, DataError, check_choice

SOURCE = Source(
    name="bidmc",
    url="https://physionet.org/static/published-projects/bidmc/bidmc-ppg-and-respiration-dataset-1.0.0.zip",
    page="https://physionet.org/content/bidmc/1.0.0/",
    licence="PhysioNet's terms for modified data files (see LICENSE in the archive)",
    citation=(
        "Pimentel et al. (2017). Toward a robust estimation of respiratory rate from pulse oximeters. "
        "IEEE Transactions on Biomedical Engineering 64(8), 1914-1923. Data: doi:10.13026/C2208R."
    ),
    rows=25_436,
    inputs=375,
    checksums=checksums("bidmc.sha256"),
    largest=3_583_173,
    megabytes=640,
)

Inputs = Literal["waveform", "numerics"]

RECORDS = tuple(f"{number:02d}" for number in range(1, 54))
CHANNELS = ("PLETH", "II", "RESP")  # light through the finger, an ECG lead, breathing
NUMERICS = ("PULSE", "RESP", "SpO2")
TARGET = "HR"
SECONDS = 480
SAMPLES = 125  # of each channel, per second

_N_TEST, _N_VALIDATION = 11, 8


def read(members: Members, *, paper: bool, inputs: Inputs = "waveform") -> Panel:
    """Read the panel.

    `paper` pairs second t with row t of the numerics file and drops the 4 rows without a heart
    rate. Otherwise they are paired by time, which differs in record 23 alone, whose numerics begin
    one second before its waveforms; and the 4 rows stay, with a missing target.
    """
    check_choice("inputs", inputs, get_args(Inputs))
    if paper and inputs != "waveform":
        raise ConfigError(f"paper=True takes the waveforms as inputs; got inputs={inputs!r}. Leave one out.")
    arrays = remembered(members, _arrays, version=1)
    first_row = 0 if paper else -arrays["first_second"][:, None]  # (53, 1): the row of second 0
    row_of_second = np.broadcast_to(first_row + np.arange(SECONDS), (len(RECORDS), SECONDS))
    numerics = np.take_along_axis(arrays["numerics"], row_of_second[:, :, None], axis=1)
    numerics = numerics.reshape(len(RECORDS) * SECONDS, -1)
    target = numerics[:, 0]
    kept: Any = ~np.isnan(target) if paper else slice(None)
    return Panel.from_arrays(
        arrays["waveform"][kept] if inputs == "waveform" else numerics[kept, 1:],
        target[kept],
        series=np.repeat(RECORDS, SECONDS)[kept],
        time=np.tile(np.arange(SECONDS), len(RECORDS))[kept],
        input_names=_waveform_names() if inputs == "waveform" else NUMERICS,
        target_name=TARGET,
    )


def _waveform_names() -> list[str]:
    return [f"{channel}[{sample}]" for channel in CHANNELS for sample in range(SAMPLES)]


def _arrays(members: Members) -> Arrays:
    """Parse all records: 25,440 seconds of 375 samples, and the monitor's numbers beside them."""
    # Published with five significant digits: float32 loses nothing that was measured.
    waveform = np.empty((len(RECORDS), SECONDS, len(CHANNELS), SAMPLES), dtype=np.float32)
    for index, content in enumerate(members.read(f"bidmc_{record}_Signals.csv" for record in RECORDS)):
        columns = _tables.columns(content)  # their order differs from record to record
        for channel, name in enumerate(CHANNELS):
            # One sample more than 480 whole seconds is published: the first of second 480.
            waveform[index, :, channel] = columns[name][: SECONDS * SAMPLES].reshape(SECONDS, SAMPLES)
    numerics, first_second = [], []
    for content in members.read(f"bidmc_{record}_Numerics.csv" for record in RECORDS):
        columns = _tables.columns(content)
        numerics.append(np.column_stack([columns[name] for name in (TARGET, *NUMERICS)]))
        first_second.append(int(columns["Time [s]"][0]))
    return {
        "waveform": waveform.reshape(len(RECORDS) * SECONDS, len(CHANNELS) * SAMPLES),
        "numerics": np.stack(numerics).astype(np.float64),  # (53, 481, 4)
        "first_second": np.array(first_second),
    }


def patients() -> dict[str, str]:
    """Tell which patient each record comes from: 53 records, 46 patients.

    Returns
    -------
    Patient id by record id, such as ``{"01": "s01182", ...}``.
    """
    names = [f"bidmc_{record}_Fix.txt" for record in RECORDS]
    found = {}
    for record, content in zip(RECORDS, store.obtain(SOURCE).read(names), strict=True):
        match = re.search(r"matched wdb ID:\s*(\S+)", content.decode())
        if match is None:
            raise DataError(
                f"'bidmc_{record}_Fix.txt' must name its patient ('matched wdb ID'); it does not."
            )
        found[record] = match[1]
    return found


def paper_records(seed: int = 2025) -> tuple[list[str], list[str]]:
    """Split whole records as the paper did: 42 to train on, 11 to test on.

    The paper does not say which. This permutation is drawn with its seed, and is one among many that
    come near its linear row; none that was tried gives all of its digits.

    Parameters
    ----------
    seed : int, default=2025
        Of the permutation of the records.

    Examples
    --------
    >>> train, test = paper_records()
    >>> len(train), len(test), sorted(test)[:3]
    (42, 11, ['04', '11', '13'])
    """
    train, validation, test = honest_records(seed)
    return [*train, *validation], test


def honest_records(
    seed: int = 2025, *, patients: Mapping[str, str] | None = None
) -> tuple[list[str], list[str], list[str]]:
    """Split whole records into 34 to train on, 8 to validate on and 11 to test on.

    Parameters
    ----------
    seed : int, default=2025
        Of the permutation of the records.
    patients : mapping or None, default=None
        Patient of each record, from :func:`patients`: records of one patient then stay together.
        By default the test records are those of :func:`paper_records`, of which three at the
        default seed (20, 23, 38) have a sibling from the same patient outside the test part.

    Examples
    --------
    >>> [len(part) for part in honest_records()]
    [34, 8, 11]
    """
    shuffled = [RECORDS[index] for index in np.random.RandomState(seed).permutation(len(RECORDS))]
    if patients is None:
        cut = len(RECORDS) - _N_TEST
        return shuffled[: cut - _N_VALIDATION], shuffled[cut - _N_VALIDATION : cut], shuffled[cut:]
    families: dict[str, list[str]] = {}
    for record in shuffled:
        families.setdefault(patients[record], []).append(record)
    room = {"test": _N_TEST, "validation": _N_VALIDATION, "train": len(RECORDS)}
    parts: dict[str, list[str]] = {name: [] for name in room}
    # From the end, as above, so that the two splits share most of their test records.
    for family in reversed(families.values()):
        part = next(name for name in room if len(parts[name]) + len(family) <= room[name])
        parts[part] += family
    return parts["train"], parts["validation"], parts["test"]
