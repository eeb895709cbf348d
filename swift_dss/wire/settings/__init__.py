"""The operator's files: class table, rules, node configuration, policies.

In: text of files. Out: values of ``core``, or errors that name the file,
the position and the reason. No file is opened here.
"""
