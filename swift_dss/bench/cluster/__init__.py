"""Benchmarks on a running cluster, and the demo.

Holds loads of clients and their measurements.
In: a cluster's address and account.
Never: an object of a container that the bench did not make.
"""
