"""Models <-> what other libraries expect of one: river, sktime, MLflow, skops, and a card for a model hub."""
