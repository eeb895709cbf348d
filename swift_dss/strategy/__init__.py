"""Decisions. Pure: no I/O, clock, log, lock or randomness.

Holds one file a question: classify, place, admit, evict, bundle, fetch ahead.
In: facts and figures as values. Out: verdicts as values.
Never: a byte that moves; engines do that.
"""
