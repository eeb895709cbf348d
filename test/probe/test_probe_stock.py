"""A stock Swift object server started over our files.

It may refuse a stub. It must never send a byte of it, and after a drain
it reads everything.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time

import pytest
from support import manual, md5, quarantined, tier, wait_until
from support.rigs import remote_stubs as stubs
from swiftclient import ClientException

from swift_dss.aio import processes

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
    made = [obj for _ in range(2)
            for obj in any_objects.make_all(stubs.ALL_STUBS)]
    refused = asked = 0
    for number, obj in enumerate(made):
        for turn, copy in enumerate(any_objects.copies(obj)):
            first = (number + turn) % len(ASKS)
            for headers in ASKS[first:] + ASKS[:first]:
                reply = any_objects.direct(obj, copy, headers=headers,
                                           port=stock)
                asked += 1
                refused += reply.status >= 400
                assert reply.status in (404, 503), (obj.name, headers)
                assert b'<html' in reply.body or not reply.body
    stubs.say('stock server, %s: %d stubs asked %d times, %d refused, 0 '
              'wrong bytes' % (any_objects.policy_name, 3 * len(made),
                               asked, refused))


def test_stock_serves_whole_files(any_objects, stock, cluster):
    obj = any_objects.make('whole')
    whole_and_on_hdd = any_objects.make(stubs.HDD)
    any_objects.promote(whole_and_on_hdd)
    before = set(quarantined(cluster))
    for each in (obj, whole_and_on_hdd):
        _same_answers(any_objects, each, stock)
    assert set(quarantined(cluster)) == before


@pytest.mark.parametrize('states', [stubs.LOCAL_STUBS, stubs.ALL_STUBS],
                         ids=['hdd-only', 'with-s3'])
def test_after_an_uninstall_stock_reads_everything(any_objects, cluster,
                                                   states):
    """The commands of the manual's "Uninstall", in its order."""
    drain, verify, place, clean = [
        command.words[1:] for command in manual.commands(
            manual.SOURCE / 'howto' / 'uninstall.rst')]
    made = any_objects.make_all(states)
    code, said = _command(cluster, *verify)
    assert code == 1 and said['stubs'] >= 3 * len(made)
    code, said = _command(cluster, *drain)
    assert (code, said['failures']) == (0, 0)
    with _stock(cluster) as port:
        processes.end(cluster.conf.root, ['object-server', 'tierd'])
        try:
            code, said = _command(cluster, *verify)
            assert (code, said['stubs'], said['quarantined']) == (0, 0, 0)
            assert _command(cluster, *place)[0] == 0
            assert _run(*clean, '--devices', cluster.conf.path(
                'devices')).returncode == 0
            before = set(quarantined(cluster))
            for obj in made:
                _same_bytes(any_objects, obj, port)
            _run_stock_auditor(cluster)
            new = set(quarantined(cluster)) - before
            hashes = [copy.path.split(os.sep)[-2] for obj in made
                      for copy in any_objects.copies(obj)]
            assert len(hashes) == 3 * len(made)
            assert not [path for path in new if any(
                object_hash in path for object_hash in hashes)]
        finally:
            cluster.restart('object-server')
            cluster.restart('tierd')
    for obj in made:
        assert any_objects.get(obj) == obj.body
    stubs.say('uninstall, %s: %d files read by stock Swift, 0 quarantined by '
              'its auditor' % (any_objects.policy_name, len(hashes)))


def _run(*words):
    return subprocess.run(
        [sys.executable, '-m', 'swift_dss.cli.main', *words],
        capture_output=True, text=True, timeout=300)


def _command(cluster, room, verb, *options):
    done = _run(room, verb, '--json', '--config',
                cluster.conf.path('etc', 'dss.conf'), *options)
    return done.returncode, json.loads(done.stdout)


def _verify(cluster, *options):
    return _command(cluster, 'tier', 'verify', *options)


def _is_hidden(cluster, copies):
    return [copy for copy in copies if os.path.exists(copy.path)]


@pytest.mark.parametrize('states', [stubs.LOCAL_STUBS, stubs.ALL_STUBS],
                         ids=['hdd-only', 'with-s3'])
def test_stock_started_by_mistake_loses_nothing(any_objects, cluster, states):
    """Every replica of every stub is quarantined, and one command brings
    all back, though sweeps and deletes ran in between."""
    before = _verify(cluster)[1]['replaced']
    made = any_objects.make_all(tuple(states) + ('whole',))
    posted = made[0]
    any_objects.swift.post_object(any_objects.container, posted.name,
                                  {'X-Object-Meta-Later': 'yes'})
    gone, newer = any_objects.make_all(states[:2])
    copies = {obj: any_objects.copies(obj) for obj in made + [gone, newer]}
    with _stock(cluster) as port:
        for obj in made + [gone, newer]:
            for copy in copies[obj]:
                any_objects.direct(obj, copy, port=port)
        _run_stock_auditor(cluster)
    whole = made[-1]
    for obj in made[:-1]:
        assert not _is_hidden(cluster, copies[obj])
    for copy in copies[whole]:
        assert os.path.exists(copy.path)
    assert _is_hidden(cluster, copies[gone] + copies[newer]) == []
    # The daemon hears of it all, and looks for what nobody needs.
    old = time.time() - 7200
    for copy in sum(copies.values(), []):
        with contextlib.suppress(FileNotFoundError):
            os.utime(any_objects.capacity_path(copy), (old, old))
    any_objects.swift.put_object(any_objects.container, newer.name, b'newer')
    with contextlib.suppress(ClientException):
        any_objects.swift.delete_object(any_objects.container, gone.name)
    any_objects.settle()
    tier(cluster, 'sweep')
    code, report = _verify(cluster)
    number = 3 * len(made[:-1])
    assert (code, report['quarantined'], report['replaced']) == (
        1, number, before + 6)
    assert {obj.path for obj in made[:-1]} == {
        patient['name'] for patient in report['patients']}
    in_s3 = {patient['name'] for patient in report['patients']
             if 's3' in patient['has']}
    assert bool(in_s3) == (states is stubs.ALL_STUBS)
    code, report = _command(cluster, 'gateway', 'gc', '--all', '--absent')
    assert (code, report['absent'], report['members_absent']) == (0, 0, 0)
    assert report['quarantined'] + report['members_quarantined'] >= len(in_s3)
    code, report = _verify(cluster, '--repair')
    assert (code, report['repair']['done']) == (0, {'healed': number})
    for obj in made:
        assert any_objects.get(obj) == obj.body
        for copy in any_objects.copies(obj):
            reply = any_objects.direct(obj, copy)
            assert (reply.status, md5(reply.body)) == (200, copy.etag)
        assert len(any_objects.copies(obj)) == 3
    headers = any_objects.swift.head_object(any_objects.container,
                                            posted.name)
    assert headers['x-object-meta-later'] == 'yes'
    assert any_objects.swift.get_object(
        any_objects.container, newer.name)[1] == b'newer'
    with pytest.raises(ClientException):
        any_objects.swift.get_object(any_objects.container, gone.name)
    any_objects.heal()
    for obj in made:
        assert any_objects.get(obj) == obj.body
    assert _verify(cluster)[0] == 0
    stubs.say('stock by mistake, %s, %s: %d files quarantined, %d brought '
              'back, 0 lost' % (any_objects.policy_name, '+'.join(states),
                                number, number))


def _same_answers(objects, obj, port):
    for copy in objects.copies(obj):
        for headers in ASKS:
            ours = objects.direct(obj, copy, headers=headers)
            theirs = objects.direct(obj, copy, headers=headers, port=port)
            assert ours.status == theirs.status < 300
            if ',' not in headers.get('Range', ''):
                # Several ranges are parted by a random boundary.
                assert ours.body == theirs.body
            assert len(ours.body) == len(theirs.body)


def _same_bytes(objects, obj, port):
    for copy in objects.copies(obj):
        theirs = objects.direct(obj, copy, port=port)
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
