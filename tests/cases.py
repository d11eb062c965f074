"""Cells to test, and random data for them."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from varnn.data.panel import Panel
from varnn.network.cell import Architecture, Weights


class Case(NamedTuple):
    variant: str
    residual: str = "projected"
    activation: str = "relu"

    def architecture(self, n_inputs: int = 3, hidden_size: int = 6, memory_size: int = 4) -> Architecture:
        return Architecture.of(
            self.variant,  # type: ignore[arg-type]  # a name of a case
            n_inputs=n_inputs,
            hidden_size=hidden_size,
            memory_size=memory_size,
            residual=self.residual,  # type: ignore[arg-type]  # a name of a case
            memory_activation=self.activation,  # type: ignore[arg-type]  # a name of a case
        )


CASES = [
    Case(variant, "projected", activation)
    for variant in ("RM", "RM+AM", "ARM", "ARM+AM")
    for activation in ("relu", "tanh")
] + [Case(variant, residual) for variant in ("RM", "RM+AM") for residual in ("scalar", "none")]


def with_a_field(cell: Architecture, name: str, value: Any) -> Architecture:
    """The same cell with a field that nothing has heard of, at its default."""
    fields = [(name, Any, dataclasses.field(default=value))]
    longer = dataclasses.make_dataclass("Longer", fields, bases=(Architecture,), frozen=True, kw_only=True)
    other: Architecture = longer(**dataclasses.asdict(cell))
    return other


def random_weights(architecture: Architecture, seed: int, dtype: Any = np.float64) -> Weights:
    """Draw every matrix, biases too, so that no term is tested at zero."""
    generator = np.random.default_rng(seed)
    return Weights(
        **{
            name: (generator.normal(size=shape) / np.sqrt(shape[0])).astype(dtype)
            for name, shape in architecture.shapes.items()
        }
    )


def random_panel(
    lengths: list[int], n_inputs: int = 3, *, missing: float = 0.0, seed: int = 0, drift: float = 0.3
) -> Panel:
    """Make series whose target follows an input and a wandering level; some labels are missing."""
    generator = np.random.default_rng(seed)
    rows = sum(lengths)
    inputs = generator.normal(size=(rows, n_inputs))
    level = np.concatenate([np.cumsum(generator.normal(size=length)) for length in lengths])
    target = (inputs[:, 0] if n_inputs else 0) + drift * level
    target[generator.random(rows) < missing] = np.nan
    series = np.repeat([f"s{index}" for index in range(len(lengths))], lengths)
    return Panel.from_arrays(inputs, target, series=series)
