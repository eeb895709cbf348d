"""The form of a version in S3: metadata, digests, seals, and the owner's mark.

Holds what makes an S3 object a version of ours, and the check that it is.
In: metadata and bytes of one version.
Out: user metadata, sealed bytes, verdicts. Plain keys of encryption never
leave.
"""
