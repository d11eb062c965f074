"""Types to trust when skops loads a model: ``skops.io.load(file, trusted=TRUSTED)``.

skops writes estimators without pickle, and loads none but types that the caller names. These are all that a
fitted ``VARNNRegressor`` is made of: records of numbers, texts and arrays, none of which runs anything when
it is loaded. A ``.varnn`` file (``model.save``, ``varnn.load``) needs no such list: it holds arrays and JSON
alone, is checked value by value against what a model can be, and has a checksum; skops does neither.

>>> import skops.io
>>> from varnn import VARNNRegressor, datasets
>>> model = VARNNRegressor(epochs=1, hidden_size=4).fit(datasets.load("synthetic", rows=300))
>>> again = skops.io.loads(skops.io.dumps(model), trusted=TRUSTED)
>>> again.fitted_.fingerprint == model.fitted_.fingerprint
True
"""

TRUSTED = (
    "varnn.data.preparation.Scaling",
    "varnn.estimator.details.Details",
    "varnn.estimator.regressor.VARNNRegressor",
    "varnn.model.adaptation.Adaptation",
    "varnn.model.boosting.Trees",
    "varnn.model.experts.Experts",
    "varnn.model.fitted.Fitted",
    "varnn.model.fitted.LastRows",
    "varnn.model.forecast.direct.DirectPart",
    "varnn.model.forecast.forecaster.Forecaster",
    "varnn.model.intervals.error_scale.ErrorScale",
    "varnn.model.intervals.horizon_bands.HorizonBands",
    "varnn.model.linear.Form",
    "varnn.model.linear.LinearPart",
    "varnn.model.outliers.LabelFilter",
    "varnn.model.pipeline.FeaturePipeline",
    "varnn.model.training_record.TrainingRecord",
    "varnn.network.cell.Architecture",
    "varnn.network.cell.Weights",
)
"""Names of the types, as skops writes them."""
