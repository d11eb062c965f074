"""One row of one series: predict it, then learn from its label. Start reading in `row`."""
