"""Traces: readers of published formats, generators, and our own format.

Holds requests as arrays.
In: files, or the numbers of a generator. Out: a trace.
Never: a damaged line as a request; it is named with its place.
"""
