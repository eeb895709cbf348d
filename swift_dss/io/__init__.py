"""Classified I/O on local tiers. One carrier, one file."""
