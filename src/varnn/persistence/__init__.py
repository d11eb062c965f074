"""Fitted models <-> ``.varnn`` files, and their cards."""
