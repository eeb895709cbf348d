"""The key's rights are those that the calls need, and no more."""

from __future__ import annotations

import pathlib
import re

from swift_dss.core.config import GatewayConf
from swift_dss.gateway.link.rights import (
    BUCKET_ACTIONS, OBJECT_ACTIONS, VERSION_ACTIONS, policy)

ROOM = pathlib.Path(__file__).resolve().parents[3] / 'swift_dss' / 'gateway'
CONF = GatewayConf(bucket='b', prefix='p/')


def calls():
    """Every operation of S3 that our client asks for."""
    text = (ROOM / 'link' / 'client.py').read_text()
    return set(re.findall(r"_call\(\s*'([a-z0-9_]+)'", text))


def test_every_call_has_its_right_and_every_right_its_call():
    needed = {call for calls in (*OBJECT_ACTIONS.values(),
                                 *BUCKET_ACTIONS.values(),
                                 *VERSION_ACTIONS.values())
              for call in calls}
    assert calls() and calls() == needed


def test_nothing_outside_the_prefix_and_no_right_on_buckets_themselves():
    document = policy(CONF)
    bucket, objects = document['Statement']
    assert objects['Resource'] == 'arn:aws:s3:::b/p/*'
    assert bucket['Resource'] == 'arn:aws:s3:::b'
    for action in bucket['Action'] + objects['Action']:
        assert '*' not in action
        if action == 's3:GetBucketVersioning':
            continue  # it changes nothing
        assert not re.search('CreateBucket|DeleteBucket|Policy|Acl|Version',
                             action)


def test_a_restore_may_only_read():
    document = policy(CONF, read_only=True)
    assert {action for statement in document['Statement']
            for action in statement['Action']} == {'s3:GetObject',
                                                   's3:ListBucket'}


def test_old_versions_may_be_removed_only_if_asked_for():
    def said(**options):
        return {action for statement in policy(CONF, **options)['Statement']
                for action in statement['Action']}
    assert said(versions=True) - said() == set(VERSION_ACTIONS)
