"""The all-in-one cluster: every part, on one machine."""
