"""Jobs that do next to nothing, of a module that imports nothing: what is left is what a job costs."""


def same(job: int, _: None) -> int:
    """Give the job back."""
    return job


def ready(_: int, __: None) -> str:
    """Import what a fit needs."""
    from varnn.evaluation import backtesting
    from varnn.fitting import fit

    return f"{backtesting.__name__} {fit.__name__}"
