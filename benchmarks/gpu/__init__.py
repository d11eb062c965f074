"""The kernel that trains members on a GPU: is it right (``check``), and how fast is it (``speed``).

Both run where the core of varnn, torch and numba are, and none of the packages of the command:
``python -m benchmarks.gpu.check``.
"""
