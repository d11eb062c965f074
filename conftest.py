"""What tests and the examples in docstrings share: Keras is told to use torch, which is here anyway."""

import importlib.util
import os

os.environ.setdefault("KERAS_BACKEND", "torch")
collect_ignore = [] if importlib.util.find_spec("keras") else ["src/varnn/paper/keras.py"]
