"""What tests and the examples in docstrings share: Keras is told to use torch, which is here anyway."""

import importlib.util
import os

os.environ.setdefault("KERAS_BACKEND", "torch")
_NEEDED = {"paper/keras.py": "keras"}
_NEEDED |= {f"adapters/{name}.py": name for name in ("river", "sktime", "mlflow", "skops")}
collect_ignore = [
    f"src/varnn/{file}" for file, one in _NEEDED.items() if importlib.util.find_spec(one) is None
]
