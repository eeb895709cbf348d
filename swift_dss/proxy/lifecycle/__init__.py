"""S3's lifecycle rules and RestoreObject: classes that change by themselves.

Holds the rounds over buckets with rules, and the restorations of objects.
In: rules, rows of work. Out: POSTs of classes, deletions.
Never: a change of an object that is newer than the look that decided it.
"""
