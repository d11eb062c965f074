"""Arrays, frames, CSV, Parquet -> `Panel` -> rows split, filled, scaled -> windows; checks of user data."""
