"""Panels, arrays, frames -> `VARNNRegressor`: the scikit-learn contract over all rooms above."""
