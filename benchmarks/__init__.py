"""What the project claims, measured from a clone: ``python -m benchmarks --help`` lists the benches.

`speed` times contenders that take turns in one run, and only their ratios are claims; `accuracy` says what
the default is worth, `online` how it stands to published figures, and `robustness` what it endures. Each
leaves a JSON file in ``results``, and pages of ``docs`` are made from those alone. The installed package
imports none of this.
"""
