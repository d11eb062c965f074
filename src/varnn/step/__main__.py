"""``python -m varnn.step``: compile the step ahead of its first use, for example in an image."""

from varnn.step.series import warm_up

warm_up()
