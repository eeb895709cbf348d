"""Up: versions on their way to S3, and deletions on theirs.

Holds the life of an upload (jobs), the dispatcher and its workers, single and
multipart uploads, the bundler, and deletions.
In: jobs of the queue. Out: verified copies in S3.
Never: a version that counts as sent without a proof.
"""
