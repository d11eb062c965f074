"""A streamed step for other runtimes."""
