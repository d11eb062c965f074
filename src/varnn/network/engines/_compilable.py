"""Which cells have compiled kernels; asking does not load the compiler."""

from varnn.network.cell import Architecture


def supports(architecture: Architecture) -> bool:
    """Tell whether there are compiled kernels for a cell: RM with the paper's relu memory.

    The other variants multiply matrices that depend on the state, which BLAS does best.

    Examples
    --------
    >>> supports(Architecture.of("RM", n_inputs=2)), supports(Architecture.of("ARM", n_inputs=2))
    (True, False)
    """
    switches = (architecture.accumulate, architecture.activation_memory)
    kinds = (architecture.residual, architecture.memory_activation)
    return switches == (False, False) and kinds == ("projected", "relu")
