"""Formats of archives: the ZIP family, tar.

Holds one file a format: the directory of its members.
In: a reader of the file.
Never: a member's data.
"""
