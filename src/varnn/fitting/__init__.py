"""Panel + settings -> fitted models: everything that is chosen on validation rows, then training on all rows.

`stages` has `fit`, which does one stage after the other; `_skeleton` is the way each goes, `one_step` and
`horizon` are what differs between them.
"""

from varnn.fitting.settings import Settings
from varnn.fitting.stages import fit

__all__ = ["Settings", "fit"]
