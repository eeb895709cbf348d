"""Up: versions on their way to S3, and deletions on theirs.

Holds single and multipart uploads, the bundler, and the queue's workers for
deletions.
In: jobs of the queue.
Out: verified copies in S3. A version counts as sent on a proof only.
"""
