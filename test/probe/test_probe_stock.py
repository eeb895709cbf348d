"""A stock Swift object server started over our files.

It may refuse a stub. It must never send a byte of it, and after a drain
it reads everything.
"""

from __future__ import annotations

import contextlib
import os
import shutil

import pytest
import stubs
from support import md5, quarantined, wait_until

from swift_dss.aio import processes
from swift_dss.core.residency import Tier

pytestmark = [pytest.mark.cluster, pytest.mark.damage]

#: What is asked of a copy first; a refusal takes the copy away.
ASKS = ({}, {'Range': 'bytes=0-0'}, {'Range': 'bytes=-1'},
        {'Range': 'bytes=1048576-1048999'},
        {'Range': 'bytes=0-99,2000000-2000099'})


@pytest.fixture
def stock(cluster):
    """The port of a stock object server over the same devices."""
    with _stock(cluster) as port:
        yield port


def test_stock_sends_no_wrong_byte_of_a_stub(any_objects, cluster, stock):
    made = [one for _ in range(2)
            for one in any_objects.make_all(stubs.ALL_STUBS)]
    refused = asked = 0
    for number, one in enumerate(made):
        for turn, copy in enumerate(any_objects.copies(one)):
            first = (number + turn) % len(ASKS)
            for headers in ASKS[first:] + ASKS[:first]:
                reply = any_objects.direct(one, copy, headers=headers,
                                           port=stock)
                asked += 1
                refused += reply.status >= 400
                assert reply.status in (404, 503), (one.name, headers)
                assert b'<html' in reply.body or not reply.body
    stubs.say('stock server, %s: %d stubs asked %d times, %d refused, 0 '
              'wrong bytes' % (any_objects.policy_name, 3 * len(made),
                               asked, refused))


def test_stock_serves_whole_files(any_objects, stock, cluster):
    one = any_objects.make('whole')
    whole_and_on_hdd = any_objects.make(stubs.HDD)
    any_objects.promote(whole_and_on_hdd)
    before = set(quarantined(cluster))
    for each in (one, whole_and_on_hdd):
        _same_answers(any_objects, each, stock)
    assert set(quarantined(cluster)) == before


def test_after_a_drain_stock_reads_everything(any_objects, cluster):
    made = any_objects.make_all(stubs.ALL_STUBS)
    # The bytes of ``attic`` live in S3 alone: they get another class.
    any_objects.swift.post_object(any_objects.container, made[-1].name, {
        'X-DSS-Object-Class': 'cloud'})
    any_objects.settle()
    for one in made:
        _drain(any_objects, one)
    with _stock(cluster) as port:
        processes.end(cluster.conf.root, ['object-server', 'tierd'])
        try:
            before = set(quarantined(cluster))
            for one in made:
                _same_bytes(any_objects, one, port)
            _run_stock_auditor(cluster)
            new = set(quarantined(cluster)) - before
            hashes = [copy.path.split(os.sep)[-2] for one in made
                      for copy in any_objects.copies(one)]
            assert len(hashes) == 3 * len(made)
            assert not [path for path in new if any(
                one in path for one in hashes)]
        finally:
            cluster.restart('object-server')
            cluster.restart('tierd')
    stubs.say('drain, %s: %d files read by stock Swift, 0 quarantined by '
              'its auditor' % (any_objects.policy_name, len(hashes)))


def _drain(objects, one):
    """Bring every byte of every copy home; a read does it from S3."""
    for copy in objects.copies(one):
        if copy.residency.remote is not None:
            reply = objects.direct(one, copy)
            assert reply.status == 200 and not reply.cut
    wait_until(lambda: all(
        extent.tiers & (Tier.SSD | Tier.HDD)
        for copy in objects.copies(one)
        for extent in copy.residency.extents), 30, 'fills')
    wait_until(lambda: not stubs.admin(
        objects.cluster, 'promote', object=one.path)['failed'], 10,
        'promotion')
    assert all(copy.is_whole for copy in objects.copies(one))


def _same_answers(objects, one, port):
    for copy in objects.copies(one):
        for headers in ASKS:
            ours = objects.direct(one, copy, headers=headers)
            theirs = objects.direct(one, copy, headers=headers, port=port)
            assert ours.status == theirs.status < 300
            if ',' not in headers.get('Range', ''):
                # Several ranges are parted by a random boundary.
                assert ours.body == theirs.body
            assert len(ours.body) == len(theirs.body)


def _same_bytes(objects, one, port):
    for copy in objects.copies(one):
        theirs = objects.direct(one, copy, port=port)
        assert (theirs.status, md5(theirs.body)) == (200, copy.etag)


def test_twin_the_stock_auditor_takes_stubs_for_rot(objects, cluster):
    """The wrong twin of R22: whoever counts false quarantines sees them."""
    made = objects.make(stubs.HDD)
    before = set(quarantined(cluster))
    _stock_etc(cluster)
    _run_stock_auditor(cluster)
    wait_until(lambda: not objects.copies(made), 10, 'the stubs to go')
    false = len(set(quarantined(cluster)) - before)
    assert false >= 3
    stubs.say('wrong twin, the stock auditor: %d false quarantines (must be '
              'more than 0)' % false)


@contextlib.contextmanager
def _stock(cluster):
    conf = cluster.conf
    etc = _stock_etc(cluster)
    port = conf.base_port + 9
    child = processes.spawn(
        conf.root, 'stock-object-server',
        os.path.join(conf.log, 'stock-object-server.log'),
        ['-m', 'swift_dss.aio.run', etc, 'object-server',
         os.path.join(etc, 'object-server.conf')])
    try:
        wait_until(lambda: processes.listening(port), 30, 'stock server')
        yield port
    finally:
        processes.end(conf.root, ['stock-object-server'])
        child.wait()


def _stock_etc(cluster):
    """The cluster's configuration with Swift's own diskfiles."""
    conf = cluster.conf
    etc = conf.path('etc-stock')
    shutil.rmtree(etc, ignore_errors=True)
    shutil.copytree(conf.etc, etc)
    changes = (
        ('swift.conf', 'egg:swift_dss#dss.fs', 'egg:swift#replication.fs'),
        ('swift.conf', 'egg:swift_dss#dss_ec.fs',
         'egg:swift#erasure_coding.fs'),
        ('object-server.conf', 'egg:swift_dss#object', 'egg:swift#object'),
        ('object-server.conf', 'bind_port = %d' % conf.object_port,
         'bind_port = %d' % (conf.base_port + 9)),
        ('object-server.conf', 'swift_dir = ' + conf.etc,
         'swift_dir = ' + etc))
    for name, old, new in changes:
        path = os.path.join(etc, name)
        with open(path) as source:
            text = source.read()
        assert old in text, (name, old)
        with open(path, 'w') as out:
            out.write(text.replace(old, new))
    return etc


def _run_stock_auditor(cluster):
    conf = cluster.conf
    etc = conf.path('etc-stock')
    log = os.path.join(conf.log, 'stock-object-auditor.log')
    child = processes.spawn(
        conf.root, 'stock-object-auditor', log,
        ['-m', 'swift_dss.aio.run', etc, 'object-auditor',
         os.path.join(etc, 'object-server.conf'), 'once'])
    assert child.wait(300) == 0, processes.tail(log)
