"""What an answer of S3 must have.

A portal's page that happens to be XML, or a server that leaves out a field,
answers with a good status too. boto3 takes from an answer what it finds there,
so that such a page would be an empty bucket.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping, Tuple

_Names = Tuple[str, ...]

_OF_A_LIST = ('IsTruncated',)
_VERSION = ('Key', 'VersionId', 'IsLatest', 'LastModified')
#: Operation -> fields of the answer, and of each row of its lists.
_FIELDS: Dict[str, Tuple[_Names, Dict[str, _Names]]] = {
    'head_object': (('ContentLength',), {}),
    'get_object': (('ContentLength',), {}),
    'create_multipart_upload': (('UploadId',), {}),
    'list_parts': (_OF_A_LIST, {'Parts': ('PartNumber', 'ETag', 'Size')}),
    'list_multipart_uploads': (_OF_A_LIST, {'Uploads': ('Key', 'UploadId')}),
    'list_objects_v2': (_OF_A_LIST, {'Contents': ('Key', 'Size')}),
    'list_object_versions': (_OF_A_LIST, {
        'Versions': _VERSION, 'DeleteMarkers': _VERSION})}


def lacking(operation: str, answer: Mapping[str, Any]) -> str:
    """The first field that an answer should have and has not; '' if it has
    all of them.

    :param operation: as boto3 names its methods
    """
    fields, lists = _FIELDS.get(operation, ((), {}))
    rows = [(answer, fields)]
    rows += [(row, names) for name, names in lists.items()
             for row in answer.get(name, ())]
    for row, names in rows:
        for name in names:
            if row.get(name) in (None, ''):
                return name
    return ''
