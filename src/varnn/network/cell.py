"""The paper's equations, one step (eqs. 4-9, Algorithm 2).

::

    predict:  u = relu(W_z [x; h; u_prev] + b_z)      y_hat = W_o u + b_o      state = (h, u_prev)
    update:   e = y - y_hat      h = rho(W_h h_prev + W_e e + b_e)

The four variants are two switches: ARM keeps the term with W_h (``accumulate``), +AM keeps u_prev
(``activation_memory``). Both functions use ``@`` and plain operators on matrices only, so they run
on NumPy arrays and on torch tensors alike, and leading axes (members of an ensemble) broadcast:
weights are (..., rows, columns), states and inputs (..., B, size).

Shapes: B batch, D inputs, K hidden, M memory. Weights multiply from the right, as in ``x @ W``.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from varnn.errors import ConfigError, check_choice

Array: TypeAlias = Any  # a NumPy array or a torch tensor

Variant = Literal["RM", "RM+AM", "ARM", "ARM+AM"]
Residual = Literal["projected", "scalar", "none"]
MemoryActivation = Literal["relu", "tanh"]
VARIANTS: tuple[Variant, ...] = get_args(Variant)


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """Sizes and switches of a cell.

    Parameters
    ----------
    n_inputs, hidden_size, memory_size : int
        D, K and M.
    accumulate : bool
        The memory is fed by its own past too (ARM), not by the last error alone (RM).
    activation_memory : bool
        The previous hidden layer is an input of the next step (+AM).
    residual : {"projected", "scalar", "none"}, default "projected"
        ``"projected"`` is the paper's memory. The ablations: ``"scalar"`` hands on the bare error
        as one unit, ``"none"`` keeps the memory at zero.
    memory_activation : {"relu", "tanh"}, default "relu"
        rho.
    horizon : int, default 1
        Rows that a step predicts: its own, which alone feeds the memory, and those after it.

    Examples
    --------
    >>> cell = Architecture.of("ARM+AM", n_inputs=3, hidden_size=4)
    >>> cell.accumulate, cell.activation_memory, cell.memory_size
    (True, True, 3)
    >>> cell.shapes["fusion"]
    (10, 4)
    """

    n_inputs: int
    hidden_size: int
    memory_size: int
    accumulate: bool
    activation_memory: bool
    residual: Residual = "projected"
    memory_activation: MemoryActivation = "relu"
    horizon: int = 1

    @classmethod
    def of(
        cls,
        variant: Variant,
        *,
        n_inputs: int,
        hidden_size: int = 128,
        memory_size: int | None = None,
        residual: Residual = "projected",
        memory_activation: MemoryActivation = "relu",
        horizon: int = 1,
    ) -> "Architecture":
        """Cell by the paper's name of its variant; the memory is as wide as the inputs, m = d."""
        check_choice("variant", variant, VARIANTS)
        check_choice("residual", residual, get_args(Residual))
        check_choice("memory_activation", memory_activation, get_args(MemoryActivation))
        accumulate = variant.startswith("ARM")
        if accumulate and residual != "projected":
            raise ConfigError(
                f"residual={residual!r} has no memory to accumulate, which {variant} asks for. "
                f"Use variant={variant[1:]!r} with it."
            )
        sizes: dict[str, Any] = {"hidden_size": hidden_size, "memory_size": memory_size, "horizon": horizon}
        for name, size in sizes.items():
            if size is not None and (not isinstance(size, int | np.integer) or size < 1):
                raise ConfigError(f"{name} must be a whole number, at least 1; got {size!r}.")
        if residual == "scalar":
            memory_size = 1
        return cls(
            n_inputs=n_inputs,
            hidden_size=int(hidden_size),
            memory_size=max(n_inputs, 1) if memory_size is None else int(memory_size),
            accumulate=accumulate,
            activation_memory=variant.endswith("+AM"),
            residual=residual,
            memory_activation=memory_activation,
            horizon=int(horizon),
        )

    @property
    def shapes(self) -> dict[str, tuple[int, int]]:
        """Name and shape of each weight matrix; biases are one-row matrices."""
        fused = self.n_inputs + self.memory_size + self.activation_memory * self.hidden_size
        shapes = {
            "fusion": (fused, self.hidden_size),
            "fusion_bias": (1, self.hidden_size),
            "readout": (self.hidden_size, 1),
            "readout_bias": (1, 1),
        }
        if self.residual == "projected":
            shapes |= {"error": (1, self.memory_size), "error_bias": (1, self.memory_size)}
        if self.accumulate:
            shapes |= {"carry": (self.memory_size, self.memory_size)}
        if self.horizon > 1:
            later = self.horizon - 1
            shapes |= {"ahead": (self.hidden_size, later), "ahead_bias": (1, later)}
        return shapes

    def as_dict(self) -> dict[str, Any]:
        """Fields as a plain dictionary, for a file header."""
        return asdict(self)


class Weights(NamedTuple):
    """The matrices of a cell; those a variant does not have are None.

    fusion (D + M [+ K], K) is W_z and fusion_bias b_z, readout (K, 1) is W_o and readout_bias b_o,
    error (1, M) is W_e and error_bias b_e, carry (M, M) is W_h. Not of the paper: ahead (K, H - 1) and
    ahead_bias read the rows after a step's own from the same hidden layer.
    """

    fusion: Array
    fusion_bias: Array
    readout: Array
    readout_bias: Array
    error: Array = None
    error_bias: Array = None
    carry: Array = None
    ahead: Array = None
    ahead_bias: Array = None

    def as_dict(self) -> dict[str, Array]:
        """Matrices by name, without those the variant does not have."""
        return {name: value for name, value in self._asdict().items() if value is not None}


class State(NamedTuple):
    """What a cell hands to its next step: residual memory h (B, M), activation memory u (B, K)."""

    residual: Array
    activation: Array = None


def initial_weights(architecture: Architecture, seed: int) -> Weights:
    """Glorot-uniform matrices and zero biases, the initial weights of Keras; float32 NumPy arrays.

    Parameters
    ----------
    architecture : Architecture
        The cell.
    seed : int
        Where they are drawn from.

    References
    ----------
    X. Glorot and Y. Bengio, "Understanding the difficulty of training deep feedforward neural networks",
    AISTATS 2010.

    Examples
    --------
    >>> weights = initial_weights(Architecture.of("RM", n_inputs=3, hidden_size=4), seed=1)
    >>> weights.fusion.shape, float(weights.fusion_bias.sum())
    ((6, 4), 0.0)
    """
    generator = np.random.default_rng(seed)
    drawn: dict[str, npt.NDArray[np.float32]] = {}
    for name, (rows, columns) in architecture.shapes.items():
        limit = 0.0 if name.endswith("_bias") else np.sqrt(6 / (rows + columns))
        drawn[name] = generator.uniform(-limit, limit, (rows, columns)).astype(np.float32)
    return Weights(**drawn)


def weights_from(arrays: Mapping[str, Array]) -> Weights:
    """Collect named matrices into weights."""
    return Weights(**arrays)


def initial_state(architecture: Architecture, like: Array) -> State:
    """Zero state for a batch, on the device and in the precision of ``like`` (..., B, K)."""
    shape = like.shape[:-1]
    # new_zeros is torch's way to stay on a tensor's device; NumPy has only one place to be.
    zeros = like.new_zeros if hasattr(like, "new_zeros") else lambda size: np.zeros(size, like.dtype)
    return State(
        zeros((*shape, architecture.memory_size)),
        zeros((*shape, architecture.hidden_size)) if architecture.activation_memory else None,
    )


def project(architecture: Architecture, weights: Weights, x: Array) -> Array:
    """Project the inputs into the hidden layer, x (..., B, D) -> (..., B, K): their own part of its argument.

    It does not depend on the state, so many steps can share one product.
    """
    return x @ weights.fusion[..., : architecture.n_inputs, :] + weights.fusion_bias


def predict(
    architecture: Architecture, weights: Weights, projected: Array, state: State
) -> tuple[Array, Array]:
    """Predict one step: projected inputs (..., B, K) and state -> y_hat (..., B, 1), u (..., B, K)."""
    memory_from = architecture.n_inputs
    memory_to = memory_from + architecture.memory_size
    z = projected + state.residual @ weights.fusion[..., memory_from:memory_to, :]
    if architecture.activation_memory:
        z = z + state.activation @ weights.fusion[..., memory_to:, :]
    u = _relu(z)
    return u @ weights.readout + weights.readout_bias, u


def look_ahead(weights: Weights, u: Array) -> Array:
    """Predict the rows after a step's own from its hidden layer: u (..., B, K) -> (..., B, H - 1)."""
    return u @ weights.ahead + weights.ahead_bias


def update(
    architecture: Architecture,
    weights: Weights,
    error: Array,
    u: Array,
    state: State,
    missing: Array | None = None,
) -> State:
    """Update the memory by the error of the step just predicted: error (..., B, 1) -> the next state.

    ``missing`` (..., B, 1) marks rows with no label. Their residual memory is held: no error, no
    news. The activation memory needs no label and moves on.
    """
    activation = u if architecture.activation_memory else None
    if architecture.residual == "none":
        return State(state.residual, activation)
    if missing is not None:
        error = _where(missing, _zeros(error), error)  # a NaN would reach the gradients otherwise
    if architecture.residual == "scalar":
        h = error
    else:
        z = error * weights.error + weights.error_bias
        if architecture.accumulate:
            z = z + state.residual @ weights.carry
        h = _relu(z) if architecture.memory_activation == "relu" else _tanh(z)
    if missing is not None:
        h = _where(missing, state.residual, h)
    return State(h, activation)


def _relu(z: Array) -> Array:
    """Apply relu; a NumPy array is the caller's own intermediate result, and is overwritten."""
    if not isinstance(z, np.ndarray):
        return z.relu()
    # NumPy compares with a row of zeros twice as fast as with the number 0.
    return np.maximum(z, np.zeros(z.shape[-1], z.dtype), out=z)


def _tanh(z: Array) -> Array:
    return np.tanh(z) if isinstance(z, np.ndarray) else z.tanh()


def _where(condition: Array, left: Array, right: Array) -> Array:
    if isinstance(left, np.ndarray):
        return np.where(condition, left, right)
    return left.where(condition, right)


def _zeros(like: Array) -> Array:
    return np.zeros_like(like) if isinstance(like, np.ndarray) else like.new_zeros(like.shape)
