"""Speed, measured: contenders take turns in one run, and only their ratios are claims."""
