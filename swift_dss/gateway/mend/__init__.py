"""Mend: copies in S3 are asked for, proven and repaired.

Holds the scrub, the last proof before local bytes go, and the repair of a
lost or wrong copy.
In: versions whose copy in S3 is in question.
Out: verdicts and new uploads.
Never: a local byte removed.
"""
