"""Gradient boosting: LightGBM where it is installed, else scikit-learn's own."""

import importlib.util
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import numpy.typing as npt

from varnn.baselines._history import Precision
from varnn.baselines._regression import Examples
from varnn.errors import check_choice, require

BoostingLibrary = Literal["auto", "lightgbm", "sklearn"]
PATIENCE = 50  # rounds without a better validation error, after which LightGBM stops


@dataclass(kw_only=True, eq=False)
class Boosting:
    """Gradient boosting of trees with up to 31 leaves; validation examples choose how many are kept.

    Parameters
    ----------
    rounds : int, default 500
        Trees at most; all of them without validation examples.
    learning_rate : float, default 0.05
        Share of each tree that is added.
    library : {"auto", "lightgbm", "sklearn"}, default "auto"
        ``"auto"`` is LightGBM where it is installed.
    n_jobs : int, default 1
        Threads of LightGBM; results do not depend on them. One by default: where cores are shared,
        as when models are compared in parallel, its threads wait for each other most of the time.
    random_state : int, default 2025
        Seed; with these settings only scikit-learn's binning of many rows draws from it.

    References
    ----------
    J. H. Friedman, "Greedy function approximation: a gradient boosting machine", Annals of Statistics 29
    (2001), 1189-1232.

    G. Ke et al., "LightGBM: a highly efficient gradient boosting decision tree", Advances in Neural
    Information Processing Systems 30 (2017).
    """

    rounds: int = 500
    learning_rate: float = 0.05
    library: BoostingLibrary = "auto"
    n_jobs: int = 1
    random_state: int = 2025
    model_: Any = field(default=None, init=False, repr=False)
    precision: ClassVar[Precision] = np.float32

    def fit(self, examples: Examples, validation: Examples | None) -> None:
        """Grow the trees, and keep as many as are best on the validation examples."""
        check_choice("library", self.library, get_args(BoostingLibrary))
        self.check_packages()
        self.model_ = (self._lightgbm if self._by_lightgbm() else self._sklearn)(examples, validation)

    def check_packages(self) -> None:
        """Say that LightGBM is needed where it was asked for by name, and either library where none is."""
        if self.library == "lightgbm":
            require("lightgbm", extra="baselines", purpose="library='lightgbm'")
        elif not self._by_lightgbm():
            require("sklearn", extra="baselines", purpose="boosting without LightGBM")

    def _by_lightgbm(self) -> bool:
        found = importlib.util.find_spec("lightgbm") is not None
        return self.library == "lightgbm" or (self.library == "auto" and found)

    def predict(self, regressors: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Predict (B,) labels."""
        return np.asarray(self.model_.predict(regressors))

    def _lightgbm(self, examples: Examples, validation: Examples | None) -> Any:
        import lightgbm

        settings = {
            "objective": "regression",
            "metric": "l2",
            "learning_rate": self.learning_rate,
            "num_leaves": 31,
            "min_data_in_leaf": 20,
            "seed": self.random_state,
            "num_threads": self.n_jobs,
            "deterministic": True,
            "force_row_wise": True,
            "verbosity": -1,
        }
        rows = lightgbm.Dataset(examples[0], examples[1])
        if validation is None:
            return lightgbm.train(settings, rows, num_boost_round=self.rounds)
        return lightgbm.train(
            settings,
            rows,
            num_boost_round=self.rounds,
            valid_sets=[rows.create_valid(*validation)],
            callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
        )

    def _sklearn(self, examples: Examples, validation: Examples | None) -> Any:
        from sklearn.ensemble import HistGradientBoostingRegressor

        def grown(rounds: int) -> Any:
            model = HistGradientBoostingRegressor(
                max_iter=rounds,
                learning_rate=self.learning_rate,
                early_stopping=False,
                random_state=self.random_state,
            )
            return model.fit(*examples)

        model = grown(self.rounds)
        if validation is None:
            return model
        regressors, labels = validation
        errors = [float(np.mean((labels - one) ** 2)) for one in model.staged_predict(regressors)]
        return grown(int(np.argmin(errors)) + 1)  # the same seed grows the same first trees
