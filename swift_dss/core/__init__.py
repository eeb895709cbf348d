"""Vocabulary, limits and errors. Imports nothing else of ours.

Holds classes, spans, versions, residency, rules, and their limits.
In: values that another room has parsed.
Never: I/O, a clock, or a header's text.
"""
