"""Walk: work that goes over all versions of a disk.

Holds the survey, comparison with S3, healing of quarantine, drain and
relocation.
In: folders of the devices, an operator's order. Out: rows, reports, moves.
Never: a policy that is not ours.
"""
