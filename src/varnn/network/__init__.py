"""Scaled rows -> trained weights: the paper's cell (one step), engines (whole windows) and training."""
