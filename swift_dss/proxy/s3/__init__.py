"""s3api with storage classes: what S3 clients say about classes.

Holds the seam in Swift's s3api, and a controller for each verb that it lacks.
In: requests of S3 clients, which s3api has parsed.
Never: a class map, or a decision about one: the filter below has both.
"""
