"""S3: the only room that imports boto3."""
