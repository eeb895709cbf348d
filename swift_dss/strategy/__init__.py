"""Decisions. Pure: no I/O, clock, log, lock or randomness."""
