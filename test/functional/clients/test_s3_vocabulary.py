"""S3's own words for classes, by unmodified clients on a running cluster."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import uuid

import pytest
from botocore.exceptions import ClientError
from support import pattern

pytestmark = pytest.mark.cluster

BODY = pattern(5000, 's3 words')
PART = pattern(5 * 1024 * 1024, 's3 words part')
#: Names of ``etc/dss-classes.conf-sample``: what is said, class, what is seen.
SAID = [('STANDARD_IA', '26', 'STANDARD_IA'),
        ('ONEZONE_IA', '26', 'STANDARD_IA'),
        ('DEEP_ARCHIVE', '27', 'GLACIER_IR'),
        ('STANDARD', None, 'STANDARD')]


@pytest.fixture
def bucket(s3):
    name = 'words-%s' % uuid.uuid4().hex[:12]
    s3.create_bucket(Bucket=name)
    return name


def class_of(swift, bucket, key):
    return swift.head_object(bucket, key).get('x-dss-object-class')


def seen(s3, bucket, key):
    """The storage class as each verb that shows one has it."""
    head = s3.head_object(Bucket=bucket, Key=key).get(
        'StorageClass', 'STANDARD')
    got = s3.get_object(Bucket=bucket, Key=key)
    got['Body'].close()
    attributes = s3.get_object_attributes(
        Bucket=bucket, Key=key, ObjectAttributes=['StorageClass'])
    classes = {head, got.get('StorageClass', 'STANDARD'),
               attributes['StorageClass']}
    assert len(classes) == 1, classes
    return classes.pop()


def listed(s3, bucket, key):
    classes = set()
    for verb in ('list_objects', 'list_objects_v2'):
        for row in getattr(s3, verb)(Bucket=bucket, Prefix=key)['Contents']:
            if row['Key'] == key:
                classes.add(row['StorageClass'])
    for row in s3.list_object_versions(Bucket=bucket,
                                       Prefix=key)['Versions']:
        if row['Key'] == key:
            classes.add(row['StorageClass'])
    assert len(classes) == 1, classes
    return classes.pop()


@pytest.mark.parametrize('said, class_id, shown', SAID)
def test_put_says_a_storage_class(swift, s3, bucket, said, class_id, shown):
    s3.put_object(Bucket=bucket, Key='k', Body=BODY, StorageClass=said,
                  ContentType='text/plain')
    assert class_of(swift, bucket, 'k') == class_id
    assert seen(s3, bucket, 'k') == shown
    assert listed(s3, bucket, 'k') == shown
    got = s3.get_object(Bucket=bucket, Key='k')
    assert got['Body'].read() == BODY and got['ContentType'] == 'text/plain'
    rows = swift.get_container(bucket)[1]
    assert [row['content_type'] for row in rows] == ['text/plain']


def test_attributes_are_those_of_the_object(s3, bucket):
    s3.put_object(Bucket=bucket, Key='k', Body=BODY)
    attributes = s3.get_object_attributes(
        Bucket=bucket, Key='k', ObjectAttributes=[
            'ETag', 'ObjectSize', 'StorageClass'])
    assert attributes['ObjectSize'] == len(BODY)
    assert attributes['ETag'] == s3.head_object(
        Bucket=bucket, Key='k')['ETag'].strip('"')
    with pytest.raises(ClientError) as caught:
        s3.get_object_attributes(Bucket=bucket, Key='none',
                                 ObjectAttributes=['ETag'])
    assert caught.value.response['Error']['Code'] == 'NoSuchKey'


@pytest.mark.parametrize('name', ['PLATINUM', 'gold', 'standard_ia', ''])
@pytest.mark.parametrize('verb', ['put_object', 'create_multipart_upload'])
def test_an_unknown_storage_class_is_s3s_own_error(s3, bucket, name, verb):
    with pytest.raises(ClientError) as caught:
        getattr(s3, verb)(Bucket=bucket, Key='bad', StorageClass=name)
    assert caught.value.response['Error']['Code'] == 'InvalidStorageClass'
    assert caught.value.response['ResponseMetadata'][
        'HTTPStatusCode'] == 400
    assert 'Contents' not in s3.list_objects_v2(Bucket=bucket)


def test_copy_gives_another_storage_class(swift, s3, bucket):
    s3.put_object(Bucket=bucket, Key='k', Body=BODY,
                  StorageClass='STANDARD_IA')
    source = {'Bucket': bucket, 'Key': 'k'}
    for key, options, shown in (
            ('kept', {}, 'STANDARD_IA'),
            ('new', {'StorageClass': 'GLACIER'}, 'GLACIER_IR'),
            ('plain', {'StorageClass': 'STANDARD'}, 'STANDARD'),
            ('fresh', {'StorageClass': 'GLACIER',
                       'MetadataDirective': 'REPLACE'}, 'GLACIER_IR')):
        s3.copy_object(Bucket=bucket, Key=key, CopySource=source, **options)
        assert seen(s3, bucket, key) == shown
        assert listed(s3, bucket, key) == shown
    # Onto itself: S3's way to change what an object is stored as.
    s3.copy_object(Bucket=bucket, Key='k', CopySource=source,
                   StorageClass='GLACIER')
    assert seen(s3, bucket, 'k') == 'GLACIER_IR'
    assert s3.get_object(Bucket=bucket, Key='k')['Body'].read() == BODY
    with pytest.raises(ClientError) as caught:
        s3.copy_object(Bucket=bucket, Key='k', CopySource=source)
    assert caught.value.response['Error']['Code'] == 'InvalidRequest'


def test_classes_of_other_words_are_seen(swift, s3, bucket):
    swift.put_object(bucket, 'header', BODY, headers={
        'X-DSS-Object-Class': 'silver'})
    swift.put_object(bucket, 'rgw', BODY, headers={
        'X-Object-Storage-Class': 'STANDARD_IA'})
    s3.put_object(Bucket=bucket, Key='meta', Body=BODY,
                  Metadata={'dss-class': 'silver'})
    swift.put_object(bucket, 'later', BODY)
    assert listed(s3, bucket, 'later') == 'STANDARD'
    swift.post_object(bucket, 'later', {'X-DSS-Object-Class': 'silver'})
    swift.post_container(bucket, {'X-DSS-Container-Class': 'silver'})
    s3.put_object(Bucket=bucket, Key='default', Body=BODY)
    for key in ('header', 'rgw', 'meta', 'later', 'default'):
        assert seen(s3, bucket, key) == 'STANDARD_IA', key
        assert listed(s3, bucket, key) == 'STANDARD_IA', key
        assert swift.head_object(bucket, key)[
            'x-object-storage-class'] == 'STANDARD_IA'
    # A POST of metadata keeps the class, and a class the content type.
    swift.post_object(bucket, 'later', {'X-Object-Meta-A': 'b',
                                        'Content-Type': 'text/html'})
    assert listed(s3, bucket, 'later') == 'STANDARD_IA'
    assert {row['name']: row['content_type'] for row in swift.get_container(
        bucket)[1]}['later'] == 'text/html'
    swift.post_object(bucket, 'later', {'X-DSS-Object-Class': '0'})
    assert listed(s3, bucket, 'later') == 'STANDARD'
    assert seen(s3, bucket, 'later') == 'STANDARD'
    assert {row['name']: row['content_type'] for row in swift.get_container(
        bucket)[1]}['later'] == 'text/html'


def test_rgws_header_on_swifts_api(swift, bucket):
    from swiftclient.exceptions import ClientException
    with pytest.raises(ClientException) as caught:
        swift.put_object(bucket, 'bad', BODY, headers={
            'X-Object-Storage-Class': 'PLATINUM'})
    assert caught.value.http_status == 400
    assert b'STANDARD_IA' in caught.value.http_response_content
    swift.put_object(bucket, 'o', BODY)
    swift.post_object(bucket, 'o', {'X-Object-Storage-Class': 'GLACIER'})
    assert class_of(swift, bucket, 'o') == '27'


def test_a_content_type_that_looks_like_a_class_is_kept(swift, s3, bucket):
    for value in ('text/plain;x-dss-class=26', 'a/b;x-dss-class=1;c=d'):
        s3.put_object(Bucket=bucket, Key='k', Body=BODY, ContentType=value)
        assert [row['content_type'] for row in swift.get_container(
            bucket)[1]] == [value]
        assert listed(s3, bucket, 'k') == 'STANDARD'


def test_multipart(swift, s3, bucket):
    upload = s3.create_multipart_upload(
        Bucket=bucket, Key='big/one', StorageClass='ONEZONE_IA')['UploadId']
    assert [row['StorageClass'] for row in s3.list_multipart_uploads(
        Bucket=bucket)['Uploads']] == ['STANDARD_IA']
    parts = []
    for number, body in ((1, PART), (2, BODY)):
        done = s3.upload_part(Bucket=bucket, Key='big/one', Body=body,
                              UploadId=upload, PartNumber=number)
        parts.append({'PartNumber': number, 'ETag': done['ETag']})
    assert s3.list_parts(Bucket=bucket, Key='big/one', UploadId=upload)[
        'StorageClass'] == 'STANDARD_IA'
    s3.complete_multipart_upload(
        Bucket=bucket, Key='big/one', UploadId=upload,
        MultipartUpload={'Parts': parts})
    assert seen(s3, bucket, 'big/one') == 'STANDARD_IA'
    assert listed(s3, bucket, 'big/one') == 'STANDARD_IA'
    assert s3.get_object_attributes(
        Bucket=bucket, Key='big/one', ObjectAttributes=['ObjectParts'])[
        'ObjectParts']['TotalPartsCount'] == 2
    rows = swift.get_container(bucket + '+segments')[1]
    assert len(rows) == 2
    for row in rows:
        assert class_of(swift, bucket + '+segments', row['name']) == '26'


def test_old_versions_show_theirs(s3, bucket):
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={
        'Status': 'Enabled'})
    for storage_class in ('STANDARD_IA', 'GLACIER', 'STANDARD'):
        s3.put_object(Bucket=bucket, Key='k', Body=BODY,
                      StorageClass=storage_class)
    s3.delete_object(Bucket=bucket, Key='k')
    listing = s3.list_object_versions(Bucket=bucket)
    assert [row['StorageClass'] for row in listing['Versions']] == [
        'STANDARD', 'GLACIER_IR', 'STANDARD_IA']
    assert len(listing['DeleteMarkers']) == 1


# -- clients as they are -----------------------------------------------------

def _environment():
    """Ours, without what other clouds need."""
    return {name: value for name, value in os.environ.items()
            if not name.startswith('AWS_')}


def run(cluster, tmp_path, *command, **env):
    if shutil.which(command[0]) is None:
        pytest.skip('%s is not installed' % command[0])
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, timeout=120, env=dict(
            _environment(), HOME=str(tmp_path),
            AWS_ACCESS_KEY_ID='test:tester',
            AWS_SECRET_ACCESS_KEY='testing', AWS_DEFAULT_REGION='us-east-1',
            **env))
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_aws(cluster, swift, s3, bucket, tmp_path):
    (tmp_path / 'small').write_bytes(BODY)
    (tmp_path / 'large').write_bytes(PART * 2)
    for name in ('small', 'large'):
        run(cluster, tmp_path, 'aws', '--endpoint-url', cluster.conf.s3_url,
            's3', 'cp', name, 's3://%s/%s' % (bucket, name),
            '--storage-class', 'STANDARD_IA')
        assert class_of(swift, bucket, name) == '26'
        assert seen(s3, bucket, name) == 'STANDARD_IA'
        run(cluster, tmp_path, 'aws', '--endpoint-url', cluster.conf.s3_url,
            's3', 'cp', 's3://%s/%s' % (bucket, name), 'back')
        assert (tmp_path / 'back').read_bytes() == (
            tmp_path / name).read_bytes()
    run(cluster, tmp_path, 'aws', '--endpoint-url', cluster.conf.s3_url,
        's3', 'cp', 's3://%s/small' % bucket, 's3://%s/small' % bucket,
        '--storage-class', 'GLACIER_IR')
    assert listed(s3, bucket, 'small') == 'GLACIER_IR'


def test_rclone(cluster, swift, s3, bucket, tmp_path):
    (tmp_path / 'small').write_bytes(BODY)
    remote = [':s3:%s' % bucket, '--s3-provider', 'Other',
              '--s3-endpoint', cluster.conf.s3_url, '--s3-env-auth',
              '--s3-region', 'us-east-1']
    run(cluster, tmp_path, 'rclone', 'copy', 'small', *remote,
        '--s3-storage-class', 'DEEP_ARCHIVE')
    assert class_of(swift, bucket, 'small') == '27'
    tiers = json.loads(run(cluster, tmp_path, 'rclone', 'lsjson', *remote))
    assert [row['Tier'] for row in tiers] == ['GLACIER_IR']


def test_s3cmd(cluster, swift, s3, bucket, tmp_path):
    (tmp_path / 'small').write_bytes(BODY)
    host = cluster.conf.s3_url.split('//')[1].rstrip('/')
    options = ['--host', host, '--host-bucket', host, '--no-ssl',
               '--access_key', 'test:tester', '--secret_key', 'testing',
               '--config', '/dev/null']
    run(cluster, tmp_path, 's3cmd', *options, 'put', 'small',
        's3://%s/small' % bucket, '--storage-class', 'ONEZONE_IA')
    assert class_of(swift, bucket, 'small') == '26'
    assert 'STANDARD_IA' in run(
        cluster, tmp_path, 's3cmd', *options, 'info',
        's3://%s/small' % bucket)


def test_restic(cluster, swift, bucket, tmp_path):
    (tmp_path / 'data').mkdir()
    (tmp_path / 'data' / 'file').write_bytes(BODY)
    where = ['-r', 's3:%s/%s' % (cluster.conf.s3_url.rstrip('/'), bucket),
             '-o', 's3.storage-class=STANDARD_IA',
             '-o', 's3.bucket-lookup=path']
    for words in (['init'], ['backup', 'data'], ['check', '--read-data']):
        run(cluster, tmp_path, 'restic', *where, *words,
            RESTIC_PASSWORD='x')
    classes = {class_of(swift, bucket, row['name'])
               for row in swift.get_container(bucket)[1]}
    assert '26' in classes, classes


# -- tags --------------------------------------------------------------------

def tags_of(s3, bucket, key):
    return {tag['Key']: tag['Value'] for tag in s3.get_object_tagging(
        Bucket=bucket, Key=key)['TagSet']}


def tag_set(**tags):
    return {'TagSet': [{'Key': key.replace('_', '-'), 'Value': value}
                       for key, value in tags.items()]}


def test_tags_come_with_an_upload(swift, s3, bucket):
    s3.put_object(Bucket=bucket, Key='k', Body=BODY,
                  Tagging='a=b%20c&dss-class=silver&empty=&%C3%A9=%E6%97%A5')
    assert tags_of(s3, bucket, 'k') == {
        'a': 'b c', 'dss-class': 'silver', 'empty': '', 'é': '日'}
    assert class_of(swift, bucket, 'k') == '26'
    head = s3.head_object(Bucket=bucket, Key='k')
    assert head['StorageClass'] == 'STANDARD_IA'
    assert head['ResponseMetadata']['HTTPHeaders'][
        'x-amz-tagging-count'] == '4'
    assert s3.get_object(Bucket=bucket, Key='k')['TagCount'] == 4
    s3.put_object(Bucket=bucket, Key='k', Body=BODY)
    assert tags_of(s3, bucket, 'k') == {}
    assert class_of(swift, bucket, 'k') is None


def test_tags_are_set_and_deleted(swift, s3, bucket):
    swift.put_object(bucket, 'k', BODY, headers={
        'X-DSS-Object-Class': 'gold', 'X-DSS-Range-Class': '0-64-26',
        'X-Object-Meta-Dss-Class': 'gold', 'X-Object-Meta-A': 'b',
        'Content-Encoding': 'x', 'Content-Type': 'text/plain'})
    before = swift.head_object(bucket, 'k')
    s3.put_object_tagging(Bucket=bucket, Key='k', Tagging=tag_set(a='1'))
    assert tags_of(s3, bucket, 'k') == {'a': '1'}
    after = swift.head_object(bucket, 'k')
    for name in ('x-dss-object-class', 'x-dss-range-class', 'content-type',
                 'x-object-meta-a', 'content-encoding', 'etag',
                 'x-object-meta-dss-class'):
        assert after[name] == before[name], name
    s3.put_object_tagging(Bucket=bucket, Key='k', Tagging=tag_set(
        b='2', dss_class='silver'))
    assert tags_of(s3, bucket, 'k') == {'b': '2', 'dss-class': 'silver'}
    assert class_of(swift, bucket, 'k') == '26'
    assert listed(s3, bucket, 'k') == 'STANDARD_IA'
    # Another class in force: the tags that are read say so.
    swift.post_object(bucket, 'k', {'X-DSS-Object-Class': 'gold'})
    assert tags_of(s3, bucket, 'k') == {'b': '2', 'dss-class': 'gold'}
    s3.delete_object_tagging(Bucket=bucket, Key='k')
    assert tags_of(s3, bucket, 'k') == {}
    assert class_of(swift, bucket, 'k') == '25'
    assert swift.head_object(bucket, 'k')['x-object-meta-a'] == 'b'
    assert s3.get_object(Bucket=bucket, Key='k')['Body'].read() == BODY


@pytest.mark.parametrize('tags, code', [
    ({'dss-class': 'platinum'}, 'InvalidRequest'),
    ({'x' * 129: ''}, 'InvalidTag'), ({'a': 'x' * 257}, 'InvalidTag'),
    ({str(at): '' for at in range(11)}, 'InvalidTag')])
def test_bad_tags_are_refused(s3, bucket, tags, code):
    from urllib.parse import urlencode
    s3.put_object(Bucket=bucket, Key='k', Body=BODY, Tagging='a=b')
    with pytest.raises(ClientError) as caught:
        s3.put_object(Bucket=bucket, Key='bad', Body=BODY,
                      Tagging=urlencode(tags))
    assert caught.value.response['Error']['Code'] == code
    with pytest.raises(ClientError) as caught:
        s3.put_object_tagging(Bucket=bucket, Key='k', Tagging={'TagSet': [
            {'Key': key, 'Value': value} for key, value in tags.items()]})
    assert caught.value.response['Error']['Code'] == code
    assert tags_of(s3, bucket, 'k') == {'a': 'b'}
    for verb, options in (('get_object_tagging', {}), (
            'put_object_tagging', {'Tagging': tag_set(a='b')}), (
            'delete_object_tagging', {})):
        with pytest.raises(ClientError) as caught:
            getattr(s3, verb)(Bucket=bucket, Key='none', **options)
        assert caught.value.response['Error']['Code'] == 'NoSuchKey'


def test_copies_and_multipart_uploads_keep_tags(swift, s3, bucket):
    s3.put_object(Bucket=bucket, Key='k', Body=BODY, Tagging='a=b')
    source = {'Bucket': bucket, 'Key': 'k'}
    for key, options, wanted in (
            ('kept', {}, {'a': 'b'}),
            ('fresh', {'MetadataDirective': 'REPLACE'}, {'a': 'b'}),
            ('new', {'TaggingDirective': 'REPLACE', 'Tagging': 'c=d'},
             {'c': 'd'}),
            ('none', {'TaggingDirective': 'REPLACE'}, {})):
        s3.copy_object(Bucket=bucket, Key=key, CopySource=source, **options)
        assert tags_of(s3, bucket, key) == wanted, key
    upload = s3.create_multipart_upload(
        Bucket=bucket, Key='big', Tagging='a=b&dss-class=silver')['UploadId']
    done = s3.upload_part(Bucket=bucket, Key='big', Body=BODY,
                          UploadId=upload, PartNumber=1)
    s3.complete_multipart_upload(
        Bucket=bucket, Key='big', UploadId=upload, MultipartUpload={
            'Parts': [{'PartNumber': 1, 'ETag': done['ETag']}]})
    assert tags_of(s3, bucket, 'big') == {'a': 'b', 'dss-class': 'silver'}
    assert class_of(swift, bucket, 'big') == '26'


def test_a_post_of_swift_keeps_tags(swift, s3, bucket):
    s3.put_object(Bucket=bucket, Key='k', Body=BODY, Tagging='a=b')
    swift.post_object(bucket, 'k', {'X-Object-Meta-A': 'b'})
    assert tags_of(s3, bucket, 'k') == {'a': 'b'}
    swift.post_object(bucket, 'k', {'X-DSS-Object-Class': 'gold'})
    assert tags_of(s3, bucket, 'k') == {'a': 'b'}
