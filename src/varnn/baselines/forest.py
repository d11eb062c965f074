"""Random forests."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from varnn.baselines._history import Precision
from varnn.baselines._regression import Examples
from varnn.errors import require


@dataclass(kw_only=True, eq=False)
class Forest:
    """Random forest: scikit-learn's, with its defaults and the paper's 500 trees.

    Parameters
    ----------
    trees : int, default 500
        How many are grown.
    n_jobs : int, default -1
        Threads that grow them; results do not depend on them.
    random_state : int, default 2025
        Seed.

    References
    ----------
    L. Breiman, "Random forests", Machine Learning 45 (2001), 5-32.
    """

    trees: int = 500
    n_jobs: int = -1
    random_state: int = 2025
    model_: Any = field(default=None, init=False, repr=False)
    precision: ClassVar[Precision] = np.float32  # scikit-learn's trees work in it anyway

    def fit(self, examples: Examples, validation: Examples | None) -> None:
        """Grow the trees; there is nothing for validation to decide."""
        self.check_packages()
        from sklearn.ensemble import RandomForestRegressor  # late, as it takes a while to import

        forest = RandomForestRegressor(self.trees, n_jobs=self.n_jobs, random_state=self.random_state)
        # Threads would add the trees' predictions up in any order, and change the last digits.
        self.model_ = forest.fit(*examples).set_params(n_jobs=1)

    def check_packages(self) -> None:
        """Say that scikit-learn is needed, where it is not installed."""
        require("sklearn", extra="baselines", purpose="a random forest")

    def predict(self, regressors: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Predict (B,) labels."""
        return np.asarray(self.model_.predict(regressors))
