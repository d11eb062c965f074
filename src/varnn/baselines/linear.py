"""Least squares."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from varnn.baselines._history import Precision
from varnn.baselines._regression import Examples
from varnn.errors import require


@dataclass(kw_only=True, eq=False)
class LeastSquares:
    """Ordinary least squares: scikit-learn's, in float64, which the published digits depend on."""

    model_: Any = field(default=None, init=False, repr=False)
    precision: ClassVar[Precision] = np.float64

    def fit(self, examples: Examples, validation: Examples | None) -> None:
        """Solve for the coefficients; there is nothing for validation to decide."""
        self.check_packages()
        from sklearn.linear_model import LinearRegression  # late: importing it takes longer than most fits

        # The regressors are ours to overwrite, and may be large: no copy.
        self.model_ = LinearRegression(copy_X=False).fit(*examples)

    def check_packages(self) -> None:
        """Say that scikit-learn is needed, where it is not installed."""
        require("sklearn", extra="baselines", purpose="least squares")

    def predict(self, regressors: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Predict (B,) labels."""
        return np.asarray(self.model_.predict(regressors))
