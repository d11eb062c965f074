"""A regressor and rows -> a regressor with settings that were searched for, if they are better."""
