"""Outcomes -> findings: every table, erratum and drawing of a scope."""

from varnn.paper import causes, complexity
from varnn.paper.claims import claims
from varnn.paper.drawings import architecture, drawings
from varnn.paper.errata import errata
from varnn.paper.output import Findings
from varnn.paper.plan import TABLES, Scope
from varnn.paper.runner import Outcomes
from varnn.paper.tables import ablations, significance, table1, table2


def gather(scope: Scope, outcomes: Outcomes, *, command: str, seconds: float, note: str = "") -> Findings:
    """Put together what a run found; ``command``, ``seconds`` and ``note`` say how it was made."""
    wanted = set(scope.tables)
    cells = table2(scope, outcomes) if {"table2", "table3"} & wanted else []
    if "table2" not in wanted:
        cells = [cell for cell in cells if cell.table == "table3"]
    is_whole = wanted.issuperset(TABLES) and not scope.quick
    return Findings(
        scope=scope,
        command=command,
        seconds=seconds,
        note=note,
        outcomes=outcomes,
        table1=table1(scope) if "table1" in wanted else [],
        cells=cells,
        ablations=ablations(scope, outcomes) if "ablations" in wanted else [],
        significance=significance(scope, outcomes) if "table2" in wanted else [],
        forests=causes.forests(scope, outcomes) if "table2" in wanted else [],
        readings=causes.readings(scope, outcomes) if "readings" in wanted else [],
        splits=causes.splits(scope, outcomes) if "splits" in wanted else [],
        complexity=[line for name in scope.data for line in complexity.table(name)]
        if "complexity" in wanted
        else [],
        claims=claims(scope, outcomes) if is_whole else [],
        errata=errata(scope, outcomes),
        drawings=drawings(scope, outcomes) if "figures" in wanted else [architecture()],
    )
