"""The same orders over rows of the index, for the daemon.

Holds what an access changes in a row, and which row goes first.
In: a row's numbers before an access.
Never: SQL; the index has that.
"""
