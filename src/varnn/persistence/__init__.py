"""Fitted models <-> ``.varnn`` files, their cards, and ONNX graphs."""
