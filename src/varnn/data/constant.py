"""A target that never changes: nothing to learn, said in the same words wherever it is seen."""

import numpy as np

from varnn.data.panel import Panel


def constant_target(panel: Panel, rows: str = "training rows") -> str | None:
    """Say that all labels are alike; None if they are not, or there are none.

    Parameters
    ----------
    panel : Panel
        The rows; those without a label are passed over.
    rows : str, default="training rows"
        What they are called.

    Examples
    --------
    >>> print(constant_target(Panel.from_arrays(None, np.full(50, 7.5), target_name="load")))
    the target 'load' is 7.5 in all 50 training rows: there is nothing to learn, and predictions will be ...
    >>> constant_target(Panel.from_arrays(None, [1.0, 2.0])) is None
    True
    """
    labels = panel.target[~np.isnan(panel.target)]
    if not len(labels) or labels.min() != labels.max():
        return None
    return (
        f"the target {panel.target_name!r} is {labels[0]:g} in all {len(labels):,} {rows}: there is nothing "
        "to learn, and predictions will be about that"
    )
