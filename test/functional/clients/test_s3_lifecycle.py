"""Lifecycle rules and RestoreObject by boto3, on a running cluster."""

from __future__ import annotations

import datetime
import json
import uuid

import pytest
from botocore.exceptions import ClientError
from support import pattern, wait_until
from swiftclient.exceptions import ClientException
from test_s3_vocabulary import run

from swift_dss.aio import processes

pytestmark = pytest.mark.cluster

BODY = pattern(5000, 's3 lifecycle')
PART = pattern(5 * 1024 * 1024, 's3 lifecycle part')
LONG_AGO = datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)


@pytest.fixture
def bucket(s3):
    name = 'life-%s' % uuid.uuid4().hex[:12]
    s3.create_bucket(Bucket=name)
    yield name
    s3.delete_bucket_lifecycle(Bucket=name)


def rule(**parts):
    return dict({'ID': uuid.uuid4().hex, 'Status': 'Enabled',
                 'Filter': {'Prefix': ''}}, **parts)


def put_rules(s3, bucket, *rules):
    s3.put_bucket_lifecycle_configuration(
        Bucket=bucket, LifecycleConfiguration={'Rules': list(rules)})


def rules_of(s3, bucket):
    return s3.get_bucket_lifecycle_configuration(Bucket=bucket)['Rules']


def class_of(swift, bucket, key):
    return swift.head_object(bucket, key).get('x-dss-object-class')


def to(storage_class, **when):
    return [dict({'StorageClass': storage_class}, **(
        when or {'Date': LONG_AGO}))]


def code_of(caught):
    return caught.value.response['Error']['Code']


def test_rules_are_kept_shown_and_deleted(s3, bucket):
    with pytest.raises(ClientError) as caught:
        rules_of(s3, bucket)
    assert code_of(caught) == 'NoSuchLifecycleConfiguration'
    rules = [
        rule(Transitions=to('STANDARD_IA', Days=30) + to('GLACIER', Days=90),
             Expiration={'Days': 365}),
        rule(Status='Disabled', Filter={'And': {
            'Prefix': 'é/', 'Tags': [{'Key': 'a', 'Value': 'b'}],
            'ObjectSizeGreaterThan': 5}}, Expiration={'Date': LONG_AGO})]
    put_rules(s3, bucket, *rules)
    shown = rules_of(s3, bucket)
    assert [{key: value.replace(tzinfo=None) if key == 'Date' else value
             for key, value in rule.items()} for rule in shown] == rules
    s3.delete_bucket_lifecycle(Bucket=bucket)
    with pytest.raises(ClientError) as caught:
        rules_of(s3, bucket)
    assert code_of(caught) == 'NoSuchLifecycleConfiguration'
    s3.head_bucket(Bucket=bucket)


def test_a_transition_changes_the_class_of_what_fits(swift, s3, bucket):
    for key, tags in (('in/tagged', 'a=b'), ('in/other', 'a=c'),
                      ('out/tagged', 'a=b')):
        s3.put_object(Bucket=bucket, Key=key, Body=BODY, Tagging=tags,
                      Metadata={'color': 'red'})
    put_rules(s3, bucket, rule(
        Filter={'And': {'Prefix': 'in/', 'Tags': [
            {'Key': 'a', 'Value': 'b'}]}}, Transitions=to('STANDARD_IA')))
    wait_until(lambda: class_of(swift, bucket, 'in/tagged') == '26', 60)
    head = s3.head_object(Bucket=bucket, Key='in/tagged')
    assert head['StorageClass'] == 'STANDARD_IA'
    assert head['Metadata'] == {'color': 'red'}
    assert s3.get_object(Bucket=bucket, Key='in/tagged')[
        'Body'].read() == BODY
    assert class_of(swift, bucket, 'in/other') is None
    assert class_of(swift, bucket, 'out/tagged') is None
    # The owner's word counts from now on: the rule is about older things.
    put_rules(s3, bucket, rule(Transitions=to('STANDARD_IA', Days=300)))
    swift.post_object(bucket, 'in/tagged', {'X-DSS-Object-Class': 'gold'})
    assert class_of(swift, bucket, 'in/tagged') == '25'


def test_days_count_from_the_upload(swift, s3, bucket):
    # A day of this cluster is six seconds.
    upload = s3.create_multipart_upload(Bucket=bucket, Key='big')['UploadId']
    done = s3.upload_part(Bucket=bucket, Key='big', Body=BODY,
                          UploadId=upload, PartNumber=1)
    s3.complete_multipart_upload(
        Bucket=bucket, Key='big', UploadId=upload, MultipartUpload={
            'Parts': [{'PartNumber': 1, 'ETag': done['ETag']}]})
    s3.put_object(Bucket=bucket, Key='gone', Body=BODY)
    put_rules(s3, bucket,
              rule(Filter={'Prefix': 'big'},
                   Transitions=to('STANDARD_IA', Days=1) + to(
                       'GLACIER', Days=2)),
              rule(Filter={'Prefix': 'gone'}, Expiration={'Days': 2},
                   Transitions=to('STANDARD_IA', Days=1)))
    wait_until(lambda: class_of(swift, bucket, 'big') in ('26', '27'), 60)
    wait_until(lambda: class_of(swift, bucket, 'big') == '27' and
               'x-dss-class-state' not in swift.head_object(bucket, 'big'),
               60)
    where = bucket + '+segments'
    assert {class_of(swift, where, row['name']) for row in
            swift.get_container(where)[1]} == {'27'}

    def is_gone():
        try:
            swift.head_object(bucket, 'gone')
        except ClientException as err:
            return err.http_status == 404
    wait_until(is_gone, 60)
    # A listing forgets it too, though its class is younger than its data.
    wait_until(lambda: [row['name'] for row in swift.get_container(
        bucket)[1]] == ['big'], 60)


@pytest.mark.damage
def test_a_killed_proxy_leaves_a_round_that_another_finishes(
        cluster, swift, s3, bucket):
    names = ['k%03d' % number for number in range(40)]
    for name in names:
        swift.put_object(bucket, name, b'')
    put_rules(s3, bucket, rule(Transitions=to('STANDARD_IA')))
    wait_until(lambda: class_of(swift, bucket, names[0]) == '26', 60)
    assert processes.kill(cluster.conf.root, ['proxy-server'])
    cluster.restart('proxy-server')
    done = sum(class_of(swift, bucket, name) == '26' for name in names)
    print('figure: killed with %d of 40 transitions done' % done)
    wait_until(lambda: class_of(swift, bucket, names[-1]) == '26', 60)
    assert {class_of(swift, bucket, name) for name in names} == {'26'}


def test_aws(cluster, swift, s3, bucket, tmp_path):
    s3.put_object(Bucket=bucket, Key='k', Body=BODY)

    def aws(verb, *words):
        return run(cluster, tmp_path, 'aws', '--endpoint-url',
                   cluster.conf.s3_url, 's3api', verb, '--bucket', bucket,
                   *words)
    rules = {'Rules': [{
        'ID': 'i', 'Status': 'Enabled', 'Filter': {'Prefix': 'k'},
        'Transitions': [{'Date': '2020-01-01', 'StorageClass': 'GLACIER'}]}]}
    aws('put-bucket-lifecycle-configuration', '--lifecycle-configuration',
        json.dumps(rules))
    shown = json.loads(aws('get-bucket-lifecycle-configuration'))
    assert shown['Rules'][0]['Transitions'][0]['StorageClass'] == 'GLACIER'
    wait_until(lambda: class_of(swift, bucket, 'k') == '27', 60)
    aws('restore-object', '--key', 'k', '--restore-request', 'Days=100')
    assert class_of(swift, bucket, 'k') == '28'
    assert 'ongoing-request' in aws('head-object', '--key', 'k')


def restore_of(s3, bucket, key):
    return s3.head_object(Bucket=bucket, Key=key).get('Restore', '')


def restore(s3, bucket, key, days=1):
    return s3.restore_object(Bucket=bucket, Key=key, RestoreRequest={
        'Days': days, 'GlacierJobParameters': {'Tier': 'Standard'}})[
            'ResponseMetadata']['HTTPStatusCode']


def test_restored_objects_have_their_class_for_some_days(swift, s3, bucket):
    s3.put_object(Bucket=bucket, Key='k', Body=BODY, StorageClass='GLACIER',
                  Tagging='a=b')
    s3.put_object(Bucket=bucket, Key='owned', Body=BODY)
    assert restore(s3, bucket, 'k', 100) == 202
    assert class_of(swift, bucket, 'k') == '28'
    assert restore(s3, bucket, 'owned') == 202
    swift.post_object(bucket, 'owned', {'X-DSS-Object-Class': 'gold'})
    assert restore_of(s3, bucket, 'owned') == ''
    wait_until(lambda: 'ongoing-request="false", expiry-date="'
               in restore_of(s3, bucket, 'k'), 60)
    assert restore(s3, bucket, 'k', 1) == 200
    assert s3.get_object(Bucket=bucket, Key='k')['Body'].read() == BODY
    # A copy is nobody's restoration.
    s3.copy_object(Bucket=bucket, Key='copy', CopySource={
        'Bucket': bucket, 'Key': 'k'})
    assert class_of(swift, bucket, 'copy') == '27'
    assert restore_of(s3, bucket, 'copy') == ''
    wait_until(lambda: class_of(swift, bucket, 'k') == '27', 60)
    assert restore_of(s3, bucket, 'k') == ''
    assert s3.get_object_tagging(Bucket=bucket, Key='k')['TagSet'] == [
        {'Key': 'a', 'Value': 'b'}]
    assert class_of(swift, bucket, 'owned') == '25'
    with pytest.raises(ClientError) as caught:
        restore(s3, bucket, 'none')
    assert code_of(caught) == 'NoSuchKey'
