"""S3: the only room that imports boto3.

Holds the queue of uploads, and rooms for each way: up, down, collect, mend.
In: versions of the tier daemon, readers that lack bytes.
Never: a local byte removed without a proven copy, or a secret in a message.
"""
