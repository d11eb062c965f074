"""What `varnn.scale` is worth: many models, many rows, many machines."""
