"""Many models, many rows, many machines: what outgrows one fit and one process."""
