"""Which cells an implementation of the equations computes, said field by field of `Architecture`.

`varnn.network.cell` is the truth; whatever computes a cell faster, or elsewhere, says here what it is right
for. What it does not name it does not handle, so that a field added to `Architecture` later is never
computed by code that has not heard of it.
"""

from collections.abc import Container, Mapping
from dataclasses import fields

from varnn.errors import ConfigError
from varnn.network.cell import Architecture


class _Anything:
    """Holds every value."""

    def __contains__(self, value: object) -> bool:
        return True


ANY: Container[object] = _Anything()


class HandledCells:
    """The cells that one implementation is right for.

    Parameters
    ----------
    accepted : mapping of str to container
        Name of each field of `Architecture` and the values that are handled; `ANY` for all of them.
    others : container, default ()
        What is handled of the fields that are not named: nothing, not even a default, of which code that
        was written before the field cannot know what it means.

    Examples
    --------
    >>> sizes = dict.fromkeys(["n_inputs", "hidden_size", "memory_size", "horizon"], ANY)
    >>> kinds = {"residual": ("projected",), "memory_activation": ("relu", "tanh")}
    >>> handled = HandledCells({**sizes, **kinds, "accumulate": (False,), "activation_memory": ANY})
    >>> Architecture.of("RM", n_inputs=2) in handled
    True
    >>> handled.unhandled(Architecture.of("ARM", n_inputs=2))
    ['accumulate=True (only False)']
    """

    def __init__(self, accepted: Mapping[str, Container[object]], *, others: Container[object] = ()) -> None:
        self._accepted, self._others = dict(accepted), others

    def __contains__(self, architecture: Architecture) -> bool:
        """Tell whether all fields of a cell are handled."""
        return not self.unhandled(architecture)

    def unhandled(self, architecture: Architecture) -> list[str]:
        """Fields of a cell that are not handled, in words; none of a cell that is."""
        return [
            f"{field.name}={value!r} ({self._rule(field.name)})"
            for field in fields(architecture)
            if (value := getattr(architecture, field.name))
            not in self._accepted.get(field.name, self._others)
        ]

    def check(self, architecture: Architecture, *, by: str) -> None:
        """Refuse a cell that is not handled; ``by`` says by whom, to begin the message with."""
        if reasons := self.unhandled(architecture):
            raise ConfigError(
                f"{by} does not handle {', '.join(reasons)}. Use `predict`, which handles every network."
            )

    def _rule(self, name: str) -> str:
        accepted = self._accepted.get(name)
        if accepted is None:
            return "which it does not know of"
        return "only " + " or ".join(map(repr, accepted)) if isinstance(accepted, tuple) else "out of range"


# What `varnn.network.engines._piecewise` computes: RM with the paper's relu memory. The other variants
# multiply matrices that depend on the state, which BLAS does best. It is said here, not there, because asking
# must not load the compiler.
PIECEWISE_LINEAR = HandledCells(
    {
        "n_inputs": ANY,
        "hidden_size": ANY,
        "memory_size": ANY,
        "accumulate": (False,),
        "activation_memory": (False,),
        "residual": ("projected",),
        "memory_activation": ("relu",),
        "horizon": ANY,  # the rows after a step's own do not enter the memory
    }
)
