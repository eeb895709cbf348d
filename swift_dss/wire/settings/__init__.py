"""The operator's files: class table, rules, node configuration, policies.

Holds one grammar a file.
In: text of files. Out: values of ``core``, or errors that name the file,
the position and the reason.
Never: an open file, or a table that was applied in part.
"""
