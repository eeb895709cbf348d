"""Classifiers of file formats: the few bytes that open a file.

Holds the contract of a classifier, the ways to read a file, the list of
formats, and the plan that makes ranges of what they say.
In: a file's bytes, by offset; what a user asks for.
Never: a write, a decision of the server, a byte that no format asked for.
"""
