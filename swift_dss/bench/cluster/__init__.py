"""Benchmarks on a running cluster, and the demo."""
