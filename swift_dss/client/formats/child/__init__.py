"""A classifier in a process that can do nothing else.

Holds the program of a child, and the walls that it puts around itself.
In: a job as JSON, and open files by their numbers.
Out: one JSON object.
Never: files, sockets or processes of its own.
"""
