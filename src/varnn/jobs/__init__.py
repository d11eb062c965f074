"""A function and many jobs -> their results: on the cores of this machine, or on a Ray cluster."""
