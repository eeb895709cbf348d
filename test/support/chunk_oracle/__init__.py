"""The kernel's chunk cache twice: a reference in Python, and its own C.

Holds the verbs, the reference, the shared library, traces and scenarios.
In: rows of calls, classed traces. Out: decisions and counters to compare.
Tests and test/bench use it; the product never does.
"""
