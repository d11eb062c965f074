"""A card for a model hub: README.md with YAML front matter, made from the model; nothing is sent anywhere.

The front matter has the fields that the Hugging Face Hub reads; it is written as JSON, which YAML holds, so
that no name of a column can break it. ``huggingface-cli upload``, or git, take the folder from there.
"""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from varnn.data.files import write_atomically
from varnn.estimator.regressor import VARNNRegressor
from varnn.persistence import card

FILE = "model.varnn"
_TASK = "time-series-forecasting"
_TAGS = ("time-series", "regression", "streaming", "varnn")


def model_card(
    model: VARNNRegressor,
    name: str,
    *,
    licence: str | None = None,
    data: str | None = None,
    tags: Sequence[str] = (),
    words: str = "",
) -> str:
    """Write the card of a fitted model, as Markdown with front matter.

    Parameters
    ----------
    model : VARNNRegressor
        A fitted one.
    name : str
        What to call it: the title.
    licence : str or None, default=None
        As the hub names it, such as "cc-by-4.0"; None leaves it out.
    data : str or None, default=None
        What it was trained on, in a few words; None is the name of the target.
    tags : sequence of str, default=()
        Tags beside those of the library.
    words : str, default=""
        What else there is to say, in Markdown: where the data are from, what it must not be used for.

    Examples
    --------
    >>> from varnn import VARNNRegressor, datasets
    >>> model = VARNNRegressor(epochs=1, hidden_size=4).fit(datasets.load("synthetic", rows=300))
    >>> print(model_card(model, "The load of a house", licence="cc0-1.0"))
    ---
    library_name: "varnn"
    license: "cc0-1.0"
    pipeline_tag: "time-series-forecasting"
    ...
    """
    facts: dict[str, Any] = {
        "library_name": "varnn",
        **({} if licence is None else {"license": licence}),
        "pipeline_tag": _TASK,
        "tags": list(dict.fromkeys([*_TAGS, *tags])),
    }
    measured = _measured(model)
    if measured:
        where = {"type": "held-out", "name": data or model.fitted_.target_name}
        results = [{"task": {"type": _TASK}, "dataset": where, "metrics": measured}]
        facts["model-index"] = [{"name": name, "results": results}]
    front = "\n".join(f"{field}: {json.dumps(value)}" for field, value in facts.items())
    said = [f"# {name}", *_lines(model), *([words.strip()] if words.strip() else []), _usage(model)]
    return f"---\n{front}\n---\n\n" + "\n\n".join(said) + "\n"


def save_folder(model: VARNNRegressor, folder: str | Path, name: str, **options: Any) -> None:
    """Write a folder for a hub: the model as ``model.varnn``, and its card as ``README.md``.

    Parameters
    ----------
    model : VARNNRegressor
        A fitted one.
    folder : str or Path
        Where; made if it is not there.
    name : str
        What to call the model.
    **options : Any
        Those of :func:`model_card`.

    Examples
    --------
    >>> import tempfile
    >>> from varnn import VARNNRegressor, datasets
    >>> model = VARNNRegressor(epochs=1, hidden_size=4).fit(datasets.load("synthetic", rows=300))
    >>> place = Path(tempfile.mkdtemp())
    >>> save_folder(model, place, "The load of a house")
    >>> sorted(one.name for one in place.iterdir())
    ['README.md', 'model.varnn']
    """
    text, place = model_card(model, name, **options), Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    model.save(place / FILE)
    write_atomically(place / "README.md", text.encode())


def _measured(model: VARNNRegressor) -> list[dict[str, Any]]:
    """Errors on the rows held out, as the index of a hub has them; its names of metrics are its own."""
    found = model.fitted_.training.validation
    titles = {"model": "RMSE on rows held out", "persistence": "RMSE of persistence on the same rows"}
    return [
        {"type": "rmse", "name": title, "value": round(math.sqrt(found[one]), 6)}
        for one, title in titles.items()
        if one in found
    ]


def _lines(model: VARNNRegressor) -> list[str]:
    """The model's own card, with the settings that are not the default's."""
    usual = VARNNRegressor().get_params(deep=False)
    changed = {one: value for one, value in model.get_params(deep=False).items() if value != usual[one]}
    horizon = 1 if model.forecaster_ is None else model.forecaster_.horizon
    lines = card.card(model.fitted_, changed, horizon).splitlines()
    return [one for one in lines if changed or not one.startswith("Settings: ")]


def _usage(model: VARNNRegressor) -> str:
    inputs = "inputs by name" if model.fitted_.input_names else "{}"
    return (
        "```python\n"
        "import varnn\n\n"
        f'model = varnn.load("{FILE}")         # nothing is unpickled, and torch is not needed\n'
        "predictions = model.predict_frame(frame)   # each row from the labels before it\n"
        "live = model.stream()                      # or one step at a time\n"
        f"y_hat = live.predict(x)                    # x: {inputs}\n"
        "live.observe(y)                            # the error becomes memory\n"
        "```"
    )
