"""The form of a version in S3: metadata, digests, seals, and the owner's mark.

Holds the form of a version in S3, and its check.
In: metadata and bytes of one version.
Out: user metadata, sealed bytes, verdicts.
Never: a plain key of encryption.
"""
