"""Comparisons, diagnoses and fitted models -> figures and self-contained HTML pages."""
