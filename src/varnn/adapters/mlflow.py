"""A flavour for MLflow: a ``.varnn`` file as an MLflow model with signature, example and pyfunc.

``varnn.mlflow`` is this module. Nothing is pickled: the model lies in the artifact as ``model.varnn``, which
:func:`varnn.load` reads, too.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from varnn._version import VERSION
from varnn.data.categories import input_name, source_columns
from varnn.errors import DataError, require
from varnn.estimator.loading import load
from varnn.estimator.regressor import VARNNRegressor
from varnn.model.warm_start import rows_kept

if TYPE_CHECKING:
    import pandas as pd

FLAVOUR = "varnn"
FILE = "model.varnn"
_ROWS = 5  # of an input example
_PURPOSE = "varnn.mlflow"


def save_model(
    model: VARNNRegressor,
    path: str | Path,
    *,
    signature: Any = None,
    input_example: Any = None,
    pip_requirements: Sequence[str] | str | None = None,
    extra_pip_requirements: Sequence[str] | str | None = None,
    conda_env: Mapping[str, Any] | str | None = None,
    code_paths: Sequence[str] | None = None,
    metadata: Mapping[str, Any] | None = None,
    mlflow_model: Any = None,
) -> None:
    """Write a fitted model as a folder that MLflow can load, serve and register.

    Parameters
    ----------
    model : VARNNRegressor
        A fitted one.
    path : str or Path
        Folder to make.
    signature : ModelSignature or None, default=None
        What goes in and comes out; None is :func:`signature_of` the model, False is none.
    input_example : DataFrame or None, default=None
        Some rows; None is :func:`example_of` the model, False is none.
    pip_requirements, extra_pip_requirements, conda_env : list of str, str or None
        What the model needs to run, as MLflow has it; None is :func:`default_requirements`.
    code_paths : list of str or None, default=None
        Folders to put beside the model and to import from, as MLflow has it: ``["src/varnn"]`` of a clone,
        where no package index has this library.
    metadata : mapping or None, default=None
        Facts to keep with the model.
    mlflow_model : mlflow.models.Model or None, default=None
        The description to add this flavour to, as MLflow gives it.

    Examples
    --------
    >>> import tempfile
    >>> from varnn import VARNNRegressor, datasets, mlflow
    >>> model = VARNNRegressor(epochs=1, hidden_size=4).fit(datasets.load("synthetic", rows=300))
    >>> place = Path(tempfile.mkdtemp(), "house")
    >>> mlflow.save_model(model, place)
    >>> sorted(one.name for one in place.iterdir())[:2]
    ['MLmodel', 'conda.yaml']
    """
    require("mlflow", extra="mlflow", purpose=_PURPOSE)
    import yaml
    from mlflow import pyfunc
    from mlflow.models import Model
    from mlflow.models.model import MLMODEL_FILE_NAME
    from mlflow.models.utils import _save_example
    from mlflow.utils import environment, model_utils

    environment._validate_env_arguments(conda_env, pip_requirements, extra_pip_requirements)
    place = Path(path).resolve()
    model_utils._validate_and_prepare_target_save_path(str(place))
    code = model_utils._validate_and_copy_code_paths(code_paths, str(place))
    described = Model() if mlflow_model is None else mlflow_model
    described.signature = signature_of(model) if signature is None else signature or None  # False: none
    example = input_example
    if example is None and model.fitted_.last_rows:  # a model may be made to keep none
        example = example_of(model)
    if example is not None and example is not False:
        _save_example(described, example, str(place))
    if metadata is not None:
        described.metadata = dict(metadata)
    model.save(place / FILE)
    files = {"conda_env": environment._CONDA_ENV_FILE_NAME, "python_env": environment._PYTHON_ENV_FILE_NAME}
    pyfunc.add_to_model(described, loader_module=__name__, data=FILE, code=code, **files)
    described.add_flavor(FLAVOUR, varnn_version=VERSION, data=FILE, code=code)
    described.model_size_bytes = (place / FILE).stat().st_size
    described.save(str(place / MLMODEL_FILE_NAME))
    if conda_env is None:
        needed = default_requirements() if pip_requirements is None else None
        conda_env, listed, constraints = environment._process_pip_requirements(
            needed, pip_requirements, extra_pip_requirements
        )
    else:
        conda_env, listed, constraints = environment._process_conda_env(conda_env)
    (place / files["conda_env"]).write_text(yaml.safe_dump(conda_env), encoding="utf-8")
    (place / environment._REQUIREMENTS_FILE_NAME).write_text("\n".join(listed), encoding="utf-8")
    if constraints:
        (place / environment._CONSTRAINTS_FILE_NAME).write_text("\n".join(constraints), encoding="utf-8")
    environment._PythonEnv.current().to_yaml(str(place / files["python_env"]))


def log_model(model: VARNNRegressor, name: str = "model", **options: Any) -> Any:
    """Log a fitted model to the active run of MLflow.

    Parameters
    ----------
    model : VARNNRegressor
        A fitted one.
    name : str, default="model"
        What to call it.
    **options : Any
        Those of :func:`save_model`, and of MLflow's own ``Model.log``: ``registered_model_name``, ``params``,
        ``tags``, ``step``, ...

    Returns
    -------
    ModelInfo
        With ``model_uri``, for :func:`load_model` and ``mlflow.pyfunc.load_model``.

    Examples
    --------
    >>> import tempfile
    >>> import mlflow as server
    >>> from varnn import VARNNRegressor, datasets, mlflow
    >>> model = VARNNRegressor(epochs=1, hidden_size=4).fit(datasets.load("synthetic", rows=300))
    >>> place = Path(tempfile.mkdtemp())
    >>> server.set_tracking_uri(f"sqlite:///{place}/runs.db")
    >>> houses = server.create_experiment("houses", artifact_location=str(place))
    >>> with server.start_run(experiment_id=houses):
    ...     logged = mlflow.log_model(model, "house")
    >>> type(mlflow.load_model(logged.model_uri)).__name__
    'VARNNRegressor'
    """
    require("mlflow", extra="mlflow", purpose=_PURPOSE)
    from mlflow.models import Model

    from varnn.adapters import mlflow as flavour

    return Model.log(artifact_path=None, name=name, flavor=flavour, model=model, **options)


def load_model(model_uri: str | Path, dst_path: str | None = None) -> VARNNRegressor:
    """Load a model that :func:`save_model` or :func:`log_model` wrote.

    Parameters
    ----------
    model_uri : str or Path
        A folder, or an address of MLflow: ``models:/...``, ``runs:/...``.
    dst_path : str or None, default=None
        Folder to download to.
    """
    require("mlflow", extra="mlflow", purpose=_PURPOSE)
    from mlflow.tracking.artifact_utils import _download_artifact_from_uri
    from mlflow.utils import model_utils

    place = _download_artifact_from_uri(artifact_uri=str(model_uri), output_path=dst_path)
    facts = model_utils._get_flavor_configuration(model_path=place, flavor_name=FLAVOUR)
    model_utils._add_code_from_conf_to_system_path(place, facts)
    return load(Path(place, facts["data"]))


def default_requirements() -> list[str]:
    """What a model needs to predict, of which torch is no part.

    Examples
    --------
    >>> default_requirements()[0].startswith("varnn==")
    True
    """
    pandas = require("pandas", extra="mlflow", purpose=_PURPOSE)
    return [f"varnn=={VERSION}", f"pandas=={pandas.__version__}"]


def signature_of(model: VARNNRegressor) -> Any:
    """Columns that a model takes, and gives: a signature of MLflow.

    Inputs must be there; target, and time and series where the model was fitted with such columns, may be.
    ``interval`` is a parameter: a level such as 0.9 adds ``lower_90`` and ``upper_90``.

    Examples
    --------
    >>> from varnn import VARNNRegressor, datasets
    >>> model = VARNNRegressor(epochs=1, hidden_size=4).fit(datasets.load("synthetic", rows=300))
    >>> signature_of(model).inputs.input_names()
    ['demand', 'temperature', 'pressure', 'phase_sin', 'phase_cos', 'load']
    """
    require("mlflow", extra="mlflow", purpose=_PURPOSE)
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, ParamSchema, ParamSpec, Schema

    fitted = model.fitted_
    columns = source_columns(fitted.input_names, fitted.categories)
    specs = [ColSpec("string" if one in fitted.categories else "double", one) for one in columns]
    specs.append(ColSpec("double", fitted.target_name, required=False))
    times = [one.time for one in fitted.last_rows.values() if one.time is not None]
    if fitted.time_name and "," not in fitted.time_name and times:
        kind = "datetime" if times[0].dtype.kind == "M" else "double"
        specs.append(ColSpec(kind, fitted.time_name, required=False))
    if fitted.series_name:
        specs.append(ColSpec("string", fitted.series_name, required=False))
    return ModelSignature(
        inputs=Schema(specs),
        outputs=Schema([ColSpec("double", "prediction")]),
        params=ParamSchema([ParamSpec("interval", "double", 0.0)]),
    )


def example_of(model: VARNNRegressor) -> "pd.DataFrame":
    """Rows that a model can predict: the first of those that it keeps of its training rows.

    Examples
    --------
    >>> from varnn import VARNNRegressor, datasets
    >>> model = VARNNRegressor(epochs=1, hidden_size=4).fit(datasets.load("synthetic", rows=300))
    >>> len(example_of(model))
    5
    """
    pandas = require("pandas", extra="mlflow", purpose=_PURPOSE)
    fitted, kept = model.fitted_, rows_kept(model.fitted_)
    first = np.arange(min(_ROWS, int(kept.lengths[0])))
    columns: dict[str, Any] = dict(zip(kept.input_names, kept.inputs[first].T, strict=True))
    for column, known in fitted.categories.items():
        flags = np.array([columns.pop(input_name(column, one)) for one in known])
        columns[column] = [known[row.argmax()] if row.any() else None for row in flags.T]
    columns[fitted.target_name] = kept.target[first]
    if fitted.time_name and "," not in fitted.time_name and kept.time is not None:
        columns[fitted.time_name] = kept.time[first]
    if fitted.series_name:
        columns[fitted.series_name] = [kept.ids[0]] * len(first)
    return pandas.DataFrame(columns)  # type: ignore[no-any-return]  # a module that may be absent has no types


class Predictor:
    """What ``mlflow.pyfunc.load_model`` gives: rows of a table in, predictions out.

    Each row is predicted from its inputs and the labels before it, if the table has the target; without any
    label the rows are taken to follow the training rows, in closed loop.
    """

    def __init__(self, model: VARNNRegressor) -> None:
        self.model = model

    def get_raw_model(self) -> VARNNRegressor:
        """Give the model itself, as MLflow asks for it."""
        return self.model

    def predict(self, model_input: Any, params: Mapping[str, Any] | None = None) -> Any:
        """Predict the rows of a table; ``params={"interval": 0.9}`` adds bounds."""
        if not hasattr(model_input, "columns"):
            raise DataError(
                f"the model takes a table with columns by name; got {type(model_input).__name__}. "
                "Give a pandas.DataFrame."
            )
        level = (params or {}).get("interval") or None
        found = self.model.predict_frame(model_input, interval=level)
        return found[
            [one for one in found.columns if one == "prediction" or one.startswith(("lower_", "upper_"))]
        ]


def _load_pyfunc(path: str) -> Predictor:
    """Load what ``mlflow.pyfunc`` wraps; its name is MLflow's."""
    return Predictor(load(path))
