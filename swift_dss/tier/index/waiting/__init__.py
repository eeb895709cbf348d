"""Versions that wait for their classes, in a file beside the index.

Holds that file: the index may be replaced at any time, and events come once.
In: versions and times. Out: the version that is due first.
Never: a decision about a version.
"""
