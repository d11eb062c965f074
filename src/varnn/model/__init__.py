"""Panel + weights -> predictions, intervals, forecasts: all that surrounds the network in the default."""
