"""What the default is worth: ablations, streams it never saw, coverage, horizons."""
