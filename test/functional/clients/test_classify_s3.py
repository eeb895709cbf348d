"""Classes through s3api with boto3, on a running cluster."""

from __future__ import annotations

import uuid

import pytest
from botocore.exceptions import ClientError
from support import md5, pattern

from swift_dss.core.spans import ClassMap, Span
from swift_dss.wire.dssfile import encode_section

pytestmark = pytest.mark.cluster

BODY = pattern(5000, 's3')
PART = pattern(5 * 1024 * 1024, 's3 part')


@pytest.fixture
def bucket(s3):
    name = 's3-%s' % uuid.uuid4().hex[:12]
    s3.create_bucket(Bucket=name)
    return name


def with_header(s3, operation, **headers):
    """A client's hook that adds headers of ours to one operation."""
    def add(request, **_):
        for name, value in headers.items():
            request.headers[name.replace('_', '-')] = value
    s3.meta.events.register('before-sign.s3.' + operation, add)
    return lambda: s3.meta.events.unregister(
        'before-sign.s3.' + operation, add)


def class_of(swift, bucket, key):
    return swift.head_object(bucket, key).get('x-dss-object-class')


def test_class_by_metadata(swift, s3, bucket):
    s3.put_object(Bucket=bucket, Key='k', Body=BODY,
                  Metadata={'dss-class': 'gold'})
    assert class_of(swift, bucket, 'k') == '25'
    got = s3.get_object(Bucket=bucket, Key='k')
    assert got['Body'].read() == BODY
    assert got['Metadata'] == {'dss-class': 'gold'}


def test_class_and_ranges_by_header(swift, s3, bucket):
    undo = with_header(s3, 'PutObject', X_DSS_Object_Class='silver',
                       X_DSS_Range_Class='0-64-25')
    s3.put_object(Bucket=bucket, Key='k', Body=BODY)
    undo()
    headers = swift.head_object(bucket, 'k')
    assert headers['x-dss-object-class'] == '26'
    assert headers['x-dss-range-class'] == '0-64-25'


def test_a_bad_class_is_an_error_that_says_why(s3, bucket):
    with pytest.raises(ClientError) as caught:
        s3.put_object(Bucket=bucket, Key='bad', Body=BODY,
                      Metadata={'dss-class': 'platinum'})
    assert caught.value.response['ResponseMetadata'][
        'HTTPStatusCode'] == 400
    assert 'platinum' in str(caught.value)


def test_copy_keeps_the_class_unless_replaced(swift, s3, bucket):
    s3.put_object(Bucket=bucket, Key='k', Body=BODY,
                  Metadata={'dss-class': 'gold'})
    source = {'Bucket': bucket, 'Key': 'k'}
    s3.copy_object(Bucket=bucket, Key='kept', CopySource=source)
    assert class_of(swift, bucket, 'kept') == '25'
    s3.copy_object(Bucket=bucket, Key='new', CopySource=source,
                   MetadataDirective='REPLACE',
                   Metadata={'dss-class': 'silver'})
    assert class_of(swift, bucket, 'new') == '26'
    # Reclassified since: what its metadata says is history.
    swift.post_object(bucket, 'k', {'X-DSS-Object-Class': '3'})
    s3.copy_object(Bucket=bucket, Key='later', CopySource=source)
    assert class_of(swift, bucket, 'later') == '3'


@pytest.mark.parametrize('how', ['metadata', 'header'])
def test_multipart_class_reaches_parts_and_manifest(swift, s3, bucket, how):
    undo = None
    options = {}
    if how == 'metadata':
        options = {'Metadata': {'dss-class': 'gold'}}
    else:
        undo = with_header(s3, 'CreateMultipartUpload',
                           X_DSS_Object_Class='gold')
    upload = s3.create_multipart_upload(Bucket=bucket, Key='big/one',
                                        **options)['UploadId']
    if undo:
        undo()
    parts = []
    for number, body in ((1, PART), (2, BODY)):
        done = s3.upload_part(Bucket=bucket, Key='big/one', Body=body,
                              UploadId=upload, PartNumber=number)
        parts.append({'PartNumber': number, 'ETag': done['ETag']})
    s3.put_object(Bucket=bucket, Key='src', Body=PART,
                  Metadata={'dss-class': 'silver'})
    done = s3.upload_part_copy(
        Bucket=bucket, Key='big/one', UploadId=upload, PartNumber=3,
        CopySource={'Bucket': bucket, 'Key': 'src'})
    parts.append({'PartNumber': 3, 'ETag': done['CopyPartResult']['ETag']})
    s3.put_object(Bucket=bucket, Key='plain', Body=b'x')
    with pytest.raises(ClientError):
        # The second part is too small to be followed by a third.
        s3.complete_multipart_upload(
            Bucket=bucket, Key='big/one', UploadId=upload,
            MultipartUpload={'Parts': parts})
    parts = [parts[0], parts[2]]
    s3.complete_multipart_upload(
        Bucket=bucket, Key='big/one', UploadId=upload,
        MultipartUpload={'Parts': parts})
    got = s3.get_object(Bucket=bucket, Key='big/one')
    assert got['Body'].read() == PART + PART
    assert class_of(swift, bucket, 'big/one') == '25'
    segments = swift.get_container(bucket + '+segments')[1]
    assert segments
    for row in segments:
        assert class_of(swift, bucket + '+segments', row['name']) == '25'


def test_multipart_takes_the_buckets_default(swift, s3, bucket):
    swift.post_container(bucket, {'X-DSS-Container-Class': 'silver'})
    upload = s3.create_multipart_upload(Bucket=bucket, Key='k')['UploadId']
    done = s3.upload_part(Bucket=bucket, Key='k', Body=BODY,
                          UploadId=upload, PartNumber=1)
    s3.complete_multipart_upload(
        Bucket=bucket, Key='k', UploadId=upload, MultipartUpload={
            'Parts': [{'PartNumber': 1, 'ETag': done['ETag']}]})
    assert class_of(swift, bucket, 'k') == '26'
    for row in swift.get_container(bucket + '+segments')[1]:
        assert class_of(swift, bucket + '+segments', row['name']) == '26'


def test_dss_body_with_content_md5_of_the_whole(swift, s3, bucket):
    class_map = ClassMap.from_spans([Span(0, 64, 25)], 26)
    whole = encode_section(class_map, len(BODY)) + BODY
    undo = with_header(s3, 'PutObject', X_DSS_Object_File='True')
    done = s3.put_object(Bucket=bucket, Key='k', Body=whole,
                         ContentMD5=_base64_md5(whole))
    assert done['ETag'] == '"%s"' % md5(BODY)
    with pytest.raises(ClientError) as caught:
        s3.put_object(Bucket=bucket, Key='bad', Body=whole,
                      ContentMD5=_base64_md5(BODY))
    undo()
    assert caught.value.response['Error']['Code'] == 'BadDigest'
    got = s3.get_object(Bucket=bucket, Key='k')
    assert got['Body'].read() == BODY
    assert class_of(swift, bucket, 'k') == '26'


def _base64_md5(body):
    import base64
    return base64.b64encode(bytes.fromhex(md5(body))).decode()
