"""Parts of :class:`varnn.VARNNRegressor`: what it takes, gives to other tools, and says of the future."""
