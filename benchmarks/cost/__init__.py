"""What the default costs: a step, a line, a fleet, a backtest, a fit, beside what one would take instead."""
