"""The simulated world: clock, S3, ring and databases."""
