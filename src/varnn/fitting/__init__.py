"""Panel + settings -> fitted models: choices on validation rows, in their order, then training on all rows.

`stages` has `fit`, which does one stage after the other; `_procedure` is the way each goes, `one_step` and
`horizon` are what differs between them.
"""

from varnn.fitting._procedure import Stage
from varnn.fitting.settings import Settings
from varnn.fitting.stages import fit

__all__ = ["Settings", "Stage", "fit"]
