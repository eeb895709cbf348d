"""Benchmarks in the kernel lab, in virtual time."""
