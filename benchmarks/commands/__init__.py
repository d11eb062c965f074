"""One thin file per bench, or per group of them; `benchmarks.__main__` names them all."""
