"""Cells -> the paper's tables in LaTeX, with booktabs: what is printed beside what we measured."""

from collections.abc import Sequence

from varnn.network.cell import VARIANTS
from varnn.paper.digits import decimals
from varnn.paper.jobs import RECURRENT, STATIC
from varnn.paper.plan import BEYOND, LAGGED
from varnn.paper.published import DATASETS, TITLES, published
from varnn.paper.tables import Cell

_TITLES = {"persistence": "Persistence", "narx-gbm": "NARX, boosting"}  # of models the paper does not have
_SETTINGS = {"correct": "with $y_{t-1}$", "as-published": "as published"}
_ABLATIONS = {
    "residual=none": "no memory",
    "residual=scalar": "scalar memory",
    "accumulating": "accumulating (ARM)",
    "memory_activation=tanh": "tanh in the memory",
}
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "\n": " ",
}
_BRACKETS = (
    "In brackets: one standard deviation over seeds, in units of the last digit, unless it rounds to none."
)
_ERRORS = (
    "Mean squared error in min-max units of the training target. Paper: as printed; ours: the paper's "
    "protocol, whose best epoch is read on the test part; honest: test error of the epoch chosen on a "
    "validation part. " + _BRACKETS
)
_HEAD = r"""\documentclass{article}
\usepackage[landscape,margin=1cm]{geometry}
\usepackage{booktabs}
\begin{document}
"""
_NEEDS = "% Needs \\usepackage{booktabs}, and a wide page.\n"


def tables_tex(
    cells: Sequence[Cell],
    ablations: Sequence[Cell],
    *,
    with_table2: bool = True,
    remark: str = "",
    standalone: bool = False,
) -> str:
    r"""Every table in one file, to be ``\input`` or, with `standalone`, to be compiled by itself.

    Parameters
    ----------
    cells, ablations : sequence of Cell
        Those of Tables 2 and 3, and those of the ablations. A table without cells is left out.
    with_table2 : bool, default=True
        Whether to write Table 2, which has two of Table 3's four rows, too.
    remark : str, default=""
        A line to begin with, as a comment.
    standalone : bool, default=False
        Whether to make a whole document.

    Examples
    --------
    >>> print(tables_tex([], [], standalone=True).splitlines()[0])
    \documentclass{article}
    """
    made = (table2(cells) if with_table2 else "", table3(cells), memory_size(ablations))
    text = "\n".join(one for one in made if one)
    comment = f"% {remark}\n" if remark else ""
    return comment + (f"{_HEAD}{text}\\end{{document}}\n" if standalone else _NEEDS + text)


def table2(cells: Sequence[Cell]) -> str:
    r"""Table 2: models against each other; those the paper does not have stand last.

    Examples
    --------
    >>> figures = dict(printed=0.00328, mean=0.003190, spread=0.00009, seeds=3)
    >>> of = dict(table="table3", dataset="appliances", model="RM", setting="", protocol="paper")
    >>> print(table2([Cell(**of, part="test", **figures)]).splitlines()[-6])
    VARNN RM & -- & -- & 0.00328 & 0.00319(9) & -- \\
    """
    known = published()["table2"]
    blocks = (STATIC, LAGGED, RECURRENT, tuple(one for one in VARIANTS if one in known), BEYOND)
    return _score_table(cells, blocks, f"Table 2 of the paper, reproduced. {_ERRORS}", "varnn-table-2")


def table3(cells: Sequence[Cell]) -> str:
    """Table 3: the four variants."""
    return _score_table(
        cells, (tuple(VARIANTS),), f"Table 3 of the paper, reproduced. {_ERRORS}", "varnn-table-3"
    )


def memory_size(cells: Sequence[Cell]) -> str:
    """The ablations: test error without memory, with a scalar memory, and by memory size m."""
    if not cells:
        return ""
    data = _datasets(cells)
    found = {(cell.dataset, cell.setting): cell for cell in cells}
    rows = []
    for setting in sorted(dict.fromkeys(cell.setting for cell in cells), key=_ablation_order):
        row = [_ablation_name(setting)]
        for dataset in data:
            cell = found.get((dataset, setting))
            # The paper prints these with six decimals.
            row += [_paper(cell, 6), _ours(cell, 6)]
        rows.append(row)
    heads = [
        ["", *(_multicolumn(2, TITLES[one]) for one in data)],
        ["Memory", *["Paper", "Ours"] * len(data)],
    ]
    rules = _rules([2] * len(data))
    caption = f"Ablations of the memory: test error, paper's protocol, learning rate 0.001. {_BRACKETS}"
    return _table(
        "l" + "rr" * len(data), [(heads[0], rules), (heads[1], "")], [rows], caption, "varnn-memory"
    )


def escape(text: str) -> str:
    r"""Write a text so that LaTeX prints it as it is.

    Examples
    --------
    >>> print(escape("memory_size=16 & 5 %"))
    memory\_size=16 \& 5 \%
    """
    return "".join(_SPECIAL.get(one, one) for one in text)


def _score_table(cells: Sequence[Cell], blocks: Sequence[Sequence[str]], caption: str, label: str) -> str:
    """Rows of models, and for each data set: train of the paper and ours, test of both, honest test."""
    wanted = [cell for cell in cells if any(cell.model in block for block in blocks)]
    if not wanted:
        return ""
    data = _datasets(wanted)
    found = {(one.model, one.setting, one.dataset, one.protocol, one.part): one for one in wanted}
    filled = []
    for block in blocks:
        rows = []
        for model, setting in _rows(block, wanted):
            row = [_model_name(model, setting)]
            for dataset in data:
                for part in ("train", "test"):
                    cell = found.get((model, setting, dataset, "paper", part))
                    row += [_paper(cell, 5), _ours(cell)]
                row.append(_ours(found.get((model, setting, dataset, "honest", "test"))))
            rows.append(row)
        filled.append(rows)
    parts = [_multicolumn(2, "Train"), _multicolumn(2, "Test"), "Honest"]
    heads = [
        (["", *(_multicolumn(5, TITLES[one]) for one in data)], _rules([5] * len(data))),
        (["", *parts * len(data)], _rules([2, 2, 1] * len(data))),
        (["Model", *["Paper", "Ours", "Paper", "Ours", "Test"] * len(data)], ""),
    ]
    return _table("l" + "rrrrr" * len(data), heads, [rows for rows in filled if rows], caption, label)


def _rows(block: Sequence[str], cells: Sequence[Cell]) -> list[tuple[str, str]]:
    """Model and setting of each row of a block, in its order."""
    pairs = dict.fromkeys((cell.model, cell.setting) for cell in cells if cell.model in block)
    return sorted(pairs, key=lambda pair: block.index(pair[0]))


def _datasets(cells: Sequence[Cell]) -> list[str]:
    there = {cell.dataset for cell in cells}
    return [one for one in DATASETS if one in there]


def _model_name(model: str, setting: str) -> str:
    name = escape({**published()["models"], **_TITLES}.get(model, model))
    return f"{name} ({_SETTINGS.get(setting, escape(setting))})" if setting else name


def _ablation_name(setting: str) -> str:
    name, _, value = setting.partition("=")
    return f"$m = {escape(value)}$" if name == "memory_size" else _ABLATIONS.get(setting, escape(setting))


def _ablation_order(setting: str) -> tuple[int, int]:
    """Sizes last and in their order, other settings as in `_ABLATIONS`."""
    name, _, value = setting.partition("=")
    if name == "memory_size":
        return len(_ABLATIONS) + 1, int(value)
    return (list(_ABLATIONS).index(setting) if setting in _ABLATIONS else len(_ABLATIONS)), 0


def _paper(cell: Cell | None, digits: int) -> str:
    return "--" if cell is None or cell.printed is None else f"{cell.printed:.{digits}f}"


def _ours(cell: Cell | None, digits: int | None = None) -> str:
    if cell is None:
        return "--"
    digits = digits or decimals(cell.mean)
    units = f"{cell.spread * 10**digits:.0f}"
    return f"{cell.mean:.{digits}f}" + (f"({units})" if cell.seeds > 1 and units != "0" else "")


def _multicolumn(width: int, text: str) -> str:
    return rf"\multicolumn{{{width}}}{{c}}{{{escape(text)}}}"


def _rules(widths: Sequence[int]) -> str:
    """Rules below the heads that span more than one column; the first column has none."""
    rules, first = [], 2
    for width in widths:
        if width > 1:
            rules.append(rf"\cmidrule(lr){{{first}-{first + width - 1}}}")
        first += width
    return " ".join(rules)


def _table(
    columns: str,
    heads: Sequence[tuple[Sequence[str], str]],
    blocks: Sequence[Sequence[Sequence[str]]],
    caption: str,
    label: str,
) -> str:
    """Put a table together: heads with the rules below them, then blocks of rows with rules between."""
    above = [line for cells, rule in heads for line in (_line(cells), rule) if line]
    body = "\n\\midrule\n".join("\n".join(map(_line, rows)) for rows in blocks)
    return "\n".join(
        [
            r"\begin{table*}",
            r"\centering\tiny\setlength{\tabcolsep}{2pt}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            *above,
            r"\midrule",
            body,
            r"\bottomrule",
            r"\end{tabular}",
            rf"\caption{{{escape(caption)}}}",
            rf"\label{{{label}}}",
            r"\end{table*}",
            "",
        ]
    )


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"
