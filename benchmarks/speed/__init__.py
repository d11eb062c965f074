"""Training, scoring and streaming against named peers; only ratios of one interleaved run are claims."""
