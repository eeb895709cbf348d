"""The link to S3: requests, credentials, retries and shares of bandwidth.

Holds the typed S3 client and the rules of its use: circuit breaker, probe of
S3, back-off, workers and bytes a class.
In: verbs of the other rooms of the gateway (put, get, head, list, delete).
Out: answers of S3 and typed errors.
Never: an object of boto3.
"""
