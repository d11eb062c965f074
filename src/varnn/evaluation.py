"""Predict a panel, judge predictions, compare models."""
