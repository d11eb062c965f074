"""Tables in LaTeX: environments closed, rows as wide as the table, every printed figure there."""

import re
from dataclasses import replace

import numpy as np
import pytest

from varnn.paper import latex
from varnn.paper.jobs import Outcome
from varnn.paper.plan import Scope
from varnn.paper.published import published
from varnn.paper.tables import Cell, ablations, table2

SCOPE = Scope(seeds=2)
OUTCOMES = {
    one: Outcome(0.001 * (1 + index / 7), 0.0001 * (1 + index / 3), 1.0, squared=np.ones(3, np.float32))
    for index, one in enumerate(SCOPE.jobs())
}
CELLS, ABLATIONS = table2(SCOPE, OUTCOMES), ablations(SCOPE, OUTCOMES)


def rows(table: str) -> list[str]:
    return [line.removesuffix(r" \\") for line in table.splitlines() if line.endswith(r"\\")]


def cells_of(row: str) -> list[str]:
    return re.split(r"(?<!\\)&", row)


def width(row: str) -> int:
    """Count the columns of a row, those of spanning cells each."""
    spans = (re.search(r"\\multicolumn\{(\d+)\}", cell) for cell in cells_of(row))
    return sum(int(one[1]) if one else 1 for one in spans)


def is_balanced(text: str) -> bool:
    """Whether every environment is closed in turn and every brace, too."""
    opened = []
    for kind, name in re.findall(r"\\(begin|end)\{([^}]*)\}", text):
        if kind == "begin":
            opened.append(name)
        elif not opened or opened.pop() != name:
            return False
    braces = re.sub(r"\\[{}]", "", text)
    return not opened and braces.count("{") == braces.count("}")


MADE = {"table2": latex.table2(CELLS), "table3": latex.table3(CELLS), "memory": latex.memory_size(ABLATIONS)}


@pytest.mark.parametrize("name", MADE)
def test_a_table_is_as_wide_as_it_says_and_closed(name: str) -> None:
    table = MADE[name]
    assert is_balanced(table)
    spec = re.search(r"\\begin\{tabular\}\{(\w+)\}", table)
    assert spec is not None
    assert {width(row) for row in rows(table)} == {len(spec[1])} == {7 if name == "memory" else 16}
    ends = [int(one) for one in re.findall(r"\\cmidrule\(lr\)\{\d+-(\d+)\}", table)]
    assert max(ends) <= len(spec[1])
    assert table.count(r"\toprule") == table.count(r"\bottomrule") == 1
    assert not is_balanced(table.replace(r"\end{tabular}", ""))  # the test itself can fail


def figures(row: str) -> list[str]:
    return [cell.strip() for cell in cells_of(row)[1:]]


@pytest.mark.parametrize("name", ["table2", "table3"])
def test_every_printed_score_stands_in_its_place(name: str) -> None:
    lines = {row.partition(" &")[0]: figures(row) for row in rows(MADE[name])}
    names = published()["models"]
    for model, row in published()[name].items():
        title = latex.escape(names[model])
        found = lines[title if title in lines else f"{title} (as published)"]
        for at, dataset in enumerate(("appliances", "bidmc", "beijing")):
            train, test = row[dataset]
            assert found[5 * at] == f"{train:.5f}", (model, dataset)
            assert found[5 * at + 2] == f"{test:.5f}", (model, dataset)


def test_every_printed_ablation_stands_in_its_place() -> None:
    lines = {row.partition(" &")[0]: figures(row) for row in rows(MADE["memory"])}
    for at, dataset in enumerate(("appliances", "bidmc", "beijing")):
        source = published()["memory_size"][dataset]
        assert lines["scalar memory"][2 * at] == f"{source['scalar']:.6f}"
        assert lines[f"$m = {source['best_m']}$"][2 * at] == f"{source['best']:.6f}"
    sizes = [int(one) for one in re.findall(r"\$m = (\d+)\$", MADE["memory"])]
    assert sizes == sorted(sizes) == [4, 8, 9, 16, 18, 27, 32, 54, 64, 128, 375]
    assert lines["$m = 375$"][:2] == ["--", "--"]  # BIDMC's alone


def test_ours_stand_beside_with_their_spread_and_the_honest_error() -> None:
    of = {"table": "table3", "dataset": "bidmc", "model": "ARM", "setting": "", "reason": ""}
    test = Cell(**of, protocol="paper", part="test", printed=0.00015, mean=1.5e-4, spread=2.1e-6, seeds=3)
    honest = replace(test, protocol="honest", printed=None, mean=0.01234, spread=0.0, seeds=1)
    row = figures(rows(latex.table3([test, honest]))[-1])
    assert row == ["--", "--", "0.00015", "0.000150(2)", "0.01234"]
    train = replace(test, part="train", mean=0.00384, spread=0.00035)
    assert figures(rows(latex.table3([train]))[-1])[1] == "0.00384(35)"
    close = replace(train, spread=0.0000049)  # less than half of the last digit
    assert figures(rows(latex.table3([close]))[-1])[1] == "0.00384"
    assert figures(rows(latex.table3([replace(close, spread=0.0000051)]))[-1])[1] == "0.00384(1)"


def test_models_beyond_the_paper_and_both_lag_sets_are_in_table_2_alone() -> None:
    assert "Persistence &" in MADE["table2"]
    assert "ARX, linear (with $y_{t-1}$) &" in MADE["table2"]
    assert "Persistence" not in MADE["table3"]
    assert len(rows(MADE["table3"])) == 3 + 4


def test_special_characters_are_escaped() -> None:
    assert latex.escape(r"\a_b & 5 % $x^2 #1 {~}") == (
        r"\textbackslash{}a\_b \& 5 \% \$x\textasciicircum{}2 \#1 \{\textasciitilde{}\}"
    )
    strange = [replace(one, setting="a_b & 50 %") for one in ABLATIONS[:1]]
    table = latex.memory_size(strange)
    assert r"a\_b \& 50 \%" in table
    assert {width(row) for row in rows(table)} == {3}


def test_one_file_holds_all_tables_and_leaves_empty_ones_out() -> None:
    whole = latex.tables_tex(CELLS, ABLATIONS, standalone=True)
    assert is_balanced(whole)
    assert all(table in whole for table in MADE.values())
    part = latex.tables_tex(CELLS, [])
    assert r"\documentclass" not in part
    assert part.count(r"\begin{table*}") == 2
    assert latex.tables_tex([], []).startswith("%")
    alone = latex.tables_tex([one for one in CELLS if one.table == "table3"], [], with_table2=False)
    assert "varnn-table-2" not in alone
    assert alone.count(r"\begin{table*}") == 1
    assert latex.tables_tex(CELLS, [], remark="Beware.").startswith("% Beware.\n")
    assert len(set(re.findall(r"\\label\{(.*)\}", whole))) == 3
