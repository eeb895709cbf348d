"""Traces: readers of published formats, generators, and our own."""
