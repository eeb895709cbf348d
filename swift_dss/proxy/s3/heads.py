"""HEADs of objects through s3api."""

from __future__ import annotations

from typing import Any

from swift_dss.wire import names

HEADER = 'x-amz-storage-class'


def head(app: Any, req: Any) -> Any:
    """The answer to a HEAD of the object, or the version, that a request of
    S3 is about.

    :returns: s3api's ``S3Response``
    """
    version = req.params.get('versionId')
    return req.get_response(
        app, 'HEAD', query={} if version is None else {'version-id': version})


def in_force(answer: Any) -> str:
    """The storage class of the object that an answer is about.

    :param answer: s3api's ``S3Response``, which keeps Swift's headers
    """
    return str(answer.sw_headers.get(names.STORAGE_CLASS) or names.STANDARD)
