"""Rows to tune on, cut in time: origins to search on, and a last part that only the verdict reads.

::

    origin 1   |---- train ----| choose | score |
    origin 2   |------ train ------| choose  | score |
    origin 3   |-------- train --------|  choose  | score |
    verdict    |--------------- all of these --------------|---- test ----|

A trial is trained on the first part of an origin, takes its epoch, its linear part and the like by the
second, as every fit does, and is scored on the third. No row is thus chosen on twice within a trial, and the
test rows are read when nothing is left to choose.
"""

from __future__ import annotations

from dataclasses import dataclass

from varnn.data.panel import Panel
from varnn.data.preparation import split_in_time
from varnn.errors import ConfigError, DataError
from varnn.evaluation.protocols import VALIDATION_SHARE, Parts, checked, rolling


@dataclass(frozen=True, eq=False)
class Rows:
    """A panel cut for tuning.

    Parameters
    ----------
    origins : list of Parts
        What trials are measured on.
    test : Parts
        Where ``train`` is all rows that the origins are cut from, and ``test`` those after them.
    """

    origins: list[Parts]
    test: Parts

    @classmethod
    def cut(cls, panel: Panel, origins: int, test_fraction: float) -> Rows:
        """Cut each series in time order.

        Examples
        --------
        >>> rows = Rows.cut(Panel.from_arrays(None, range(100)), origins=4, test_fraction=0.2)
        >>> [(len(one.train), len(one.validation), len(one.test)) for one in rows.origins]
        [(32, 8, 10), (40, 10, 10), (48, 12, 10), (56, 14, 10)]
        >>> len(rows.test.train), len(rows.test.test)
        (80, 20)
        """
        if not 0 < test_fraction < 1:
            raise ConfigError(f"test_fraction must be above 0 and below 1; got {test_fraction}.")
        before, after = split_in_time(panel, 1 - test_fraction, test_fraction)
        try:
            found = rolling(before, origins)
            early = (1 - VALIDATION_SHARE) * (1 - test_fraction)
            lead_in = split_in_time(panel, early, 1 - early)[1]
            chosen = split_in_time(before, 1 - VALIDATION_SHARE, VALIDATION_SHARE)[1]
            return cls(found, checked(Parts(before, chosen, after, lead_in, "honest")))
        except DataError as error:
            raise DataError(
                f"{len(panel):,} rows in {panel.n_series:,} series are too few to tune on at {origins} "
                f"origins, with {test_fraction:.0%} of them set aside: {error}"
            ) from None
