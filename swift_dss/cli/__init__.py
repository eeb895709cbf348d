"""Entry points of the console scripts.

Holds one file a verb, and what verbs share: questions, tables, progress.
In: words of a command line.
Never: a decision or a byte of an object; other rooms have these.
"""
