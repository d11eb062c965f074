"""Tables, claims, errata and drawings -> pages, tables for programs and for LaTeX, and SVG files."""

import csv
import io
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from varnn.data.files import write_atomically
from varnn.paper.causes import readings_summary
from varnn.paper.claims import Claim, claims_page
from varnn.paper.digits import printed
from varnn.paper.drawings import Drawing
from varnn.paper.errata import Erratum
from varnn.paper.jobs import code_fingerprint
from varnn.paper.latex import tables_tex
from varnn.paper.plan import QUICK_REMARK, Scope
from varnn.paper.published import TITLES, published
from varnn.paper.records import epochs_csv, outcomes_csv
from varnn.paper.runner import Outcomes
from varnn.paper.tables import Cell
from varnn.report.figures import to_svg
from varnn.report.page import Report
from varnn.report.provenance import checkout_commit, provenance

ERRATA = "Errata and remarks"


@dataclass(frozen=True, eq=False, kw_only=True)
class Findings:
    """All that a reproduction found."""

    scope: Scope
    command: str
    seconds: float
    note: str
    outcomes: Outcomes
    table1: list[dict[str, Any]]
    cells: list[Cell]
    ablations: list[Cell]
    significance: list[dict[str, Any]]
    forests: list[dict[str, Any]]
    readings: list[dict[str, Any]]
    splits: list[dict[str, Any]]
    complexity: list[dict[str, Any]]
    claims: list[Claim]
    errata: list[Erratum]
    drawings: list[Drawing]

    @cached_property
    def made(self) -> dict[str, str]:
        """When, where, by what code and command and in how much time it was found."""
        facts = {
            **provenance(),
            **({"commit": commit} if (commit := checkout_commit()) else {}),
            "code of the figures": code_fingerprint()[:12],
            "command": self.command,
            "time of all jobs": f"{self.seconds / 60:.0f} minutes",
        }
        for machine, count in self.machines().items():
            facts[f"jobs run on {machine}"] = str(count)
        return facts | {"note": self.note} if self.note else facts

    def machines(self) -> dict[str, int]:
        """Count the jobs by the machine that ran them, with its libraries."""
        return dict(Counter(_machine(one.made) for one in self.outcomes.values()).most_common())

    @property
    def remark(self) -> str:
        """Say that the figures are not the paper's where they are not; empty elsewhere."""
        return QUICK_REMARK if self.scope.quick else ""

    @property
    def summary(self) -> str:
        """Say in two sentences what agreed and what is left when the comparison is fair."""
        compared = [cell.verdict for cell in (*self.cells, *self.ablations) if cell.printed is not None]
        words = [one.word for one in compared]
        agree = sum(one.agrees for one in compared)
        fair = [
            f"{line['data set']} {line['difference']:+.0%} ({line['seeds']} seeds, p = "
            f"{line['p (Diebold-Mariano)']:.2g})"
            for line in self.significance
            if line["model"] == "RM"
        ]
        left = f" Honestly measured, RM against a correct linear ARX: {'; '.join(fair)}." if fair else ""
        return (f"{self.remark} " if self.remark else "") + (
            f"Of {len(compared)} printed figures, train and test, {agree} agree ({words.count('equal')} in "
            f"every digit, {words.count('within spread')} within the spread of our seeds), ours are lower "
            f"in {words.count('lower')} and higher in {words.count('higher')}.{left}"
        )


def write(findings: Findings, folder: Path) -> list[Path]:
    """Write every form of the findings into a folder; give the paths written."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = tables_tex(
        findings.cells,
        findings.ablations,
        with_table2="table2" in findings.scope.tables,
        remark=findings.remark,
    )
    texts = {
        "results.json": as_json(findings),
        "results.csv": as_csv(findings),
        "outcomes.csv": outcomes_csv(findings.outcomes),
        "epochs.csv": epochs_csv(findings.outcomes),
        "tables.tex": tables,
        "results.md": as_markdown(findings),
        **({"claims.md": claims_page(findings.claims)} if findings.claims else {}),
        "report.html": as_report(findings).html(),
        **{
            f"{one.name}.svg": to_svg(one.figure, one.caption, alone=True) + "\n" for one in findings.drawings
        },
    }
    if "claims.md" not in texts:
        # Of an earlier run: its figures are not those that are written beside it now.
        (folder / "claims.md").unlink(missing_ok=True)
    paths = []
    for name, text in texts.items():
        write_atomically(folder / name, text.encode())
        paths.append(folder / name)
    return paths


def as_json(findings: Findings) -> str:
    """Give every number, with what made it."""
    content = {
        "made": findings.made,
        "summary": findings.summary,
        "table1": findings.table1,
        "cells": [_record(cell) for cell in (*findings.cells, *findings.ablations)],
        "significance": findings.significance,
        "forests": findings.forests,
        "readings": findings.readings,
        "splits": findings.splits,
        "complexity": findings.complexity,
        "claims": [asdict(one) | {"verdict": one.verdict} for one in findings.claims],
        "errata": [asdict(one) for one in findings.errata],
    }
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def as_csv(findings: Findings) -> str:
    """Give one line per cell."""
    buffer = io.StringIO()
    records = [_record(cell) for cell in (*findings.cells, *findings.ablations)]
    if records:
        writer = csv.DictWriter(buffer, records[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
    return buffer.getvalue()


def as_markdown(findings: Findings) -> str:
    """Tables for a docs page."""
    parts = [f"# The paper, reproduced\n\n{findings.summary}\n", f"## {ERRATA}\n"]
    parts += [f"- **{one.title}.** Printed: {one.printed} Found: {one.found}" for one in findings.errata]
    parts.append("")
    for title, note, columns, rows in _tables(findings):
        parts.append(f"## {title}\n\n{note}\n\n{_markdown_table(columns, rows)}")
    for one in findings.drawings:
        parts.append(f"## {one.title}\n\n![{one.caption}]({one.name}.svg)\n\n{one.caption}\n")
    made = "\n".join(f"- {name}: {value}" for name, value in findings.made.items())
    parts.append(f"## How this was made\n\n{made}")
    return "\n".join(parts) + "\n"


def as_report(findings: Findings) -> Report:
    """Give one self-contained page."""
    report = Report(
        "The VARNN paper, reproduced",
        "Every printed figure beside ours, under the paper's protocol (we read its validation part as the "
        "test part) and an honest one (64/16/20, chosen on validation). Mean squared error in min-max "
        "units of the training target.",
        findings.summary,
    )
    report.add_points(
        ERRATA, [(one.title, f"Printed: {one.printed} Found: {one.found}") for one in findings.errata]
    )
    for title, note, columns, rows in _tables(findings):
        report.add_table(title, columns, rows, note=note)
    for one in findings.drawings:
        report.add_figure(one.title, one.figure, one.caption)
    report.add_facts("How this was made", findings.made)
    return report


Table = tuple[str, str, list[str], list[list[str]]]


def _tables(findings: Findings) -> list[Table]:
    """List title, note, columns and rows of every table that has rows."""
    tables: list[Table] = []
    tables += _dictionaries(
        "Table 1: data sets", "As loaded here, in the paper's preparation.", findings.table1
    )
    for dataset in dict.fromkeys(cell.dataset for cell in findings.cells):
        rows = _score_rows([cell for cell in findings.cells if cell.dataset == dataset])
        columns = ["model", "train: paper", "ours", "", "test: paper", "ours", "", "honest test", "note"]
        note = (
            "Paper protocol, then the honest test error beside it. ± is one standard deviation over seeds. "
            "As published: without y[t-1]. Past labels too: the recurrent rows of the paper see inputs "
            "only; these see the labels before the predicted one as well, as VARNN does."
        )
        tables.append((f"Tables 2 and 3: {TITLES[dataset]}", note, columns, rows))
    note = (
        "Honest test rows, against ARX with y[t-1]. The difference is that of the mean over seeds; its "
        "interval (bootstrap) and both p values count the spread over rows and over seeds. Of three seeds "
        "a bootstrap makes too little, so read the first p value."
    )
    tables += _dictionaries("Against a correct ARX", note, findings.significance)
    if findings.ablations:
        rows = [
            [
                TITLES[cell.dataset],
                cell.model,
                cell.setting,
                _number(cell.printed),
                _spread(cell),
                str(cell.verdict),
            ]
            for cell in findings.ablations
        ]
        columns = ["data set", "model", "setting", "paper", "ours", "verdict"]
        tables.append(("Ablations", "Test error, paper protocol, learning rate 0.001.", columns, rows))
    note = (
        "The paper says 500 trees; scikit-learn's default is 100. Paper protocol, lags as published; 500 "
        "trees were run once, of the static forest on Appliances."
    )
    tables += _dictionaries("Forests: 100 trees or 500", note, findings.forests)
    note = (
        "Four readings of the printed recurrent rows: the text has w-1 input steps and relu; Keras' LSTM "
        "and GRU have tanh by default, and the other dynamic models see x_t. Tables 2 and 3 have no x_t, "
        "relu in the RNN and tanh in LSTM and GRU. Paper protocol."
    )
    tables += _dictionaries("Recurrent rows: four readings", note, findings.readings)
    note = (
        "How far each reading lies from print: the mean factor between ours and the printed figure, less 1."
    )
    tables += _dictionaries("Which reading fits print best", note, readings_summary(findings.readings))
    note = (
        "Whole records in 100 random orders (seeds 1 to 100; RM: 1 to 10), 42 to train on and 11 to test "
        "on, paper protocol. The paper calls its splits chronological and does not say how that is meant "
        "of 53 records. Their choice moves a figure far more than the step from a correct ARX to RM does: "
        "that the printed ones lie inside the spread is all that can be said."
    )
    tables += _dictionaries("BIDMC: random splits of the records", note, findings.splits)
    note = (
        "One step of a batch of 128, 128 hidden units, forward only, one thread; the median of steps that "
        "are timed in a new order each round."
    )
    tables += _dictionaries("Complexity", note, findings.complexity)
    return tables


def _machine(made: dict[str, str]) -> str:
    """Name a machine and its libraries; what was kept by earlier versions does not say."""
    if not made:
        return "unknown machine"
    return (
        f"{made['machine']} (Python {made['python']}, torch {made['torch']}, numpy {made['numpy']}, "
        f"scikit-learn {made['scikit-learn']}, numba {made.get('numba', 'not installed')})"
    )


def _score_rows(cells: Sequence[Cell]) -> list[list[str]]:
    rows = []
    names = published()["models"] | {"persistence": "Persistence", "narx-gbm": "NARX, boosting"}
    for model, setting in dict.fromkeys((cell.model, cell.setting) for cell in cells):
        found = {
            (cell.protocol, cell.part): cell
            for cell in cells
            if (cell.model, cell.setting) == (model, setting)
        }
        row = [names[model] + (f" ({setting})" if setting else "")]
        for part in ("train", "test"):
            cell = found.get(("paper", part))
            row += [_number(cell.printed), _spread(cell)] if cell else ["", ""]
            row.append("" if cell is None or cell.printed is None else str(cell.verdict))
        honest = found.get(("honest", "test"))
        row += [
            _spread(honest) if honest else "",
            next((one.reason for one in found.values() if one.reason), ""),
        ]
        rows.append(row)
    return rows


def _spread(cell: Cell) -> str:
    return _number(cell.mean) + (f" ± {cell.spread:.1g}" if cell.seeds > 1 else "")


def _number(value: float | None) -> str:
    return "" if value is None else printed(value)


def _dictionaries(title: str, note: str, lines: Sequence[dict[str, Any]]) -> list[Table]:
    if not lines:
        return []
    rows = [[_shown(name, value) for name, value in line.items()] for line in lines]
    return [(title, note, list(lines[0]), rows)]


def _shown(name: str, value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, float):
        return f"{value:,}" if isinstance(value, int) else str(value)
    if name.startswith("p ("):
        return f"{value:.2g}"
    if name in ("difference", "lowest seed", "highest seed", "95 % from", "95 % to"):
        return f"{value:+.1%}"
    if "distance" in name or name.startswith("without"):
        return f"{value:.0%}"
    if name.startswith("over "):
        return f"{value:.2f}"
    if name.endswith("spread"):
        return f"{value:.1g}"
    return _number(value) if value < 1 else f"{value:g}"


def _record(cell: Cell) -> dict[str, Any]:
    return {**asdict(cell), "verdict": cell.verdict.word, "difference": cell.verdict.difference}


def _markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    lines += [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join(lines) + "\n"
