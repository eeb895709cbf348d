"""The least rights that the gateway's key pair needs, as a policy document.

Each action is there because a call of ours needs it; a test asks a real
server with exactly these rights. Nothing lets the key make, change or
remove buckets, read policies, or touch keys outside the prefix.
"""

from __future__ import annotations

from typing import Any, Dict, List

from swift_dss.core.config import GatewayConf

#: Actions on keys, with the calls that need them.
OBJECT_ACTIONS = {
    's3:GetObject': ('get_object', 'head_object'),
    's3:PutObject': ('put_object', 'create_multipart_upload',
                     'upload_part', 'complete_multipart_upload'),
    's3:DeleteObject': ('delete_object',),
    's3:AbortMultipartUpload': ('abort_multipart_upload',),
    's3:ListMultipartUploadParts': ('list_parts',),
}
#: Actions on the bucket. Without ListBucket S3 answers 403 for a key that
#: does not exist, and nothing could be proven to be missing.
BUCKET_ACTIONS = {
    's3:ListBucket': ('head_object', 'list_objects_v2'),
    's3:ListBucketMultipartUploads': ('list_multipart_uploads',),
    # To say that deleted keys stay as old versions; nothing else needs it.
    's3:GetBucketVersioning': ('get_bucket_versioning',),
}
#: Rights that only ``gateway gc --versions`` needs besides.
VERSION_ACTIONS = {
    's3:ListBucketVersions': ('list_object_versions',),
    's3:DeleteObjectVersion': ('delete_object',),
}
_READ_ONLY = frozenset(('s3:GetObject', 's3:ListBucket'))


def policy(conf: GatewayConf, read_only: bool = False,
           versions: bool = False) -> Dict[str, Any]:
    """An IAM policy document for the key pair.

    :param read_only: for a restore: nothing is written
    :param versions: also those that remove old versions
    """
    on_keys = ['s3:DeleteObjectVersion'] if versions else []
    on_lists = ['s3:ListBucketVersions'] if versions else []
    def wanted(actions: Dict[str, Any]) -> List[str]:
        return [action for action in sorted(actions)
                if not read_only or action in _READ_ONLY]

    bucket = 'arn:aws:s3:::%s' % conf.bucket
    on_bucket: Dict[str, Any] = {
        'Sid': 'Bucket', 'Effect': 'Allow',
        'Action': wanted(BUCKET_ACTIONS) + on_lists,
        'Resource': bucket}
    if conf.prefix and read_only:
        on_bucket['Condition'] = {
            'StringLike': {'s3:prefix': conf.prefix + '*'}}
    return {'Version': '2012-10-17', 'Statement': [on_bucket, {
        'Sid': 'Objects', 'Effect': 'Allow',
        'Action': wanted(OBJECT_ACTIONS) + on_keys,
        'Resource': '%s/%s*' % (bucket, conf.prefix)}]}
