"""Networks of one hidden layer as learners; torch is imported when one is first fitted.

The settings are the paper's: 128 units, a linear head, Adam at 3e-3, batches of 128, 50 epochs, and
the epoch that is best on the validation rows.
"""

import math
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from varnn.baselines._history import Precision, fitted
from varnn.baselines._regression import Examples
from varnn.errors import ConfigError, check_choice, require

if TYPE_CHECKING:
    from varnn.baselines._networks import TrainedNetwork

Kind = Literal["mlp", "rnn", "lstm", "gru"]


@dataclass(eq=False)
class Network:
    """Neural network of one hidden layer: a perceptron, or a recurrent layer on a window.

    Parameters
    ----------
    kind : {"mlp", "rnn", "lstm", "gru"}
        ``"mlp"`` on columns; ``"rnn"``, ``"lstm"`` or ``"gru"`` on steps. The first two are ReLU
        networks, as the paper says of all its networks; LSTM and GRU keep their standard gates.
    hidden_size : int, default 128
        Units of the layer; this and the next three are the paper's values by default.
    epochs : int, default 50
        Times that the examples are gone through.
    batch_size : int, default 128
        Examples of a step.
    learning_rate : float, default 3e-3
        Of Adam.
    patience : int, optional
        Epochs without a better validation error after which training ends; None never ends early.
    device : {"auto", "cpu", "cuda"}, default "auto"
        Where it is trained.
    random_state : int, default 2025
        Seed of weights and batches.
    activation : {"relu", "tanh"}, optional
        Of a recurrent layer; None is relu for an RNN and tanh for LSTM and GRU.

    Attributes
    ----------
    trained_ : TrainedNetwork
        The network and the history of its epochs. Without validation examples the last epoch is
        kept, with them the best one.

    References
    ----------
    J. L. Elman, "Finding structure in time", Cognitive Science 14 (1990), 179-211.

    S. Hochreiter and J. Schmidhuber, "Long short-term memory", Neural Computation 9 (1997), 1735-1780.

    K. Cho et al., "Learning phrase representations using RNN encoder-decoder for statistical machine
    translation", Proceedings of EMNLP (2014), 1724-1734.
    """

    kind: Kind
    _: KW_ONLY
    hidden_size: int = 128
    epochs: int = 50
    batch_size: int = 128
    learning_rate: float = 3e-3
    patience: int | None = None
    device: str = "auto"
    random_state: int = 2025
    activation: Literal["relu", "tanh"] | None = None
    trained_: "TrainedNetwork | None" = field(default=None, init=False, repr=False)
    precision: ClassVar[Precision] = np.float32

    def fit(self, examples: Examples, validation: Examples | None) -> None:
        """Train from fresh weights."""
        for name in ("hidden_size", "epochs", "batch_size", "patience"):
            size = getattr(self, name)
            if size is not None and (not isinstance(size, int | np.integer) or size < 1):
                raise ConfigError(f"{name} must be a whole number, at least 1; got {size!r}.")
        if self.activation is not None:
            check_choice("activation", self.activation, ("relu", "tanh"))
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise ConfigError(f"learning_rate must be above 0; got {self.learning_rate}.")
        self.check_packages()
        from varnn.baselines import _networks

        self.trained_ = _networks.train(self, examples, validation)

    def check_packages(self) -> None:
        """Say that torch is needed, where it is not installed."""
        require("torch", extra="train", purpose=f"the baseline {self.kind!r}")

    def predict(self, regressors: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Predict (B,) labels."""
        return fitted(self.trained_, self).predict(regressors)
