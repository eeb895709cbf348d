"""Nodes that tests run: beds of many, clusters of one, and single daemons.

Real processes on real files; what a test's fake needs is in ``rigs``. Nothing
here asserts: a test does that.
"""
