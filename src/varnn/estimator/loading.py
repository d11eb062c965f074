"""A model file -> an estimator that is fitted."""

import logging
from pathlib import Path

from varnn.estimator._display import in_one_line
from varnn.estimator._settings import plain_settings, settings_of_file
from varnn.estimator.input import keep_names
from varnn.estimator.regressor import VARNNRegressor
from varnn.persistence import model_file

logger = logging.getLogger(__name__)


def load(path: str | Path) -> VARNNRegressor:
    """Read a model written by :meth:`VARNNRegressor.save`; torch is not needed to predict with it."""
    model = _estimator(model_file.read(path), path)
    logger.info("read the model in %s: %s", path, in_one_line(model.fitted_))
    return model


def to_bytes(model: VARNNRegressor, what: str) -> bytes:
    """What :meth:`VARNNRegressor.save` writes; ``what`` names the model in errors."""
    settings = plain_settings(model.get_params(deep=False))
    return model_file.packed(model.fitted_, settings, model.forecaster_, what)


def from_bytes(blob: bytes, what: str) -> VARNNRegressor:
    """Undo :func:`to_bytes`; ``what`` names the source in errors."""
    return _estimator(model_file.unpacked(blob, what), what)


def _estimator(contents: model_file.Contents, what: object) -> VARNNRegressor:
    fitted, settings, forecaster = contents
    model = VARNNRegressor(**settings_of_file(settings, what))
    model.fitted_, model.forecaster_ = fitted, forecaster
    model.history_ = fitted.training.history
    model.n_features_in_ = len(fitted.input_names)
    keep_names(model, fitted.input_names)
    return model
