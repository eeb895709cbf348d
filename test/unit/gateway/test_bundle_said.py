"""What the bucket hears of a bundle from others than the one who packed it."""

from __future__ import annotations

import sqlite3

import pytest
from test_bundle_following import Ranked
from test_bundle_keys import write_keys
from test_bundles_of_others import NAMES, NEW, OLD, SMALL

from swift_dss.gateway.bundle import since
from swift_dss.gateway.bundle.book import Book
from swift_dss.gateway.collect.keys import Wish
from swift_dss.gateway.restore.catalog import Catalog, Held
from swift_dss.gateway.ports import Upload

POSTED, LATER = '1700000050.00000', '1700000060.00000'
ALL = Wish(everything=True)


def colour(name, at=POSTED):
    return {'X-Object-Meta-Colour': name, 'X-Timestamp': at}


@pytest.fixture(params=[False, True], ids=['plain', 'sealed'])
def nodes(request, tmp_path):
    conf = {}
    if request.param:
        conf['key_file'] = str(tmp_path / 'keys')
        write_keys(conf['key_file'], 'k1', 'k1')
    made = Ranked(tmp_path, **conf)
    made.second()
    yield made
    made.stop()


def packed(nodes):
    """In a bundle of the first node, which the second one leans on."""
    versions = nodes.put(NAMES)
    nodes.replicate(NAMES)
    nodes.run(300)
    assert nodes.keys(1, versions) == set(nodes.bundles())
    return versions


def moved(nodes):
    """The same, and the first node has no replica any more."""
    versions = packed(nodes)
    for version in versions:
        nodes.disks[0].unlink(version)
    for view in nodes.views:
        view.disks = [nodes.disks[1]]
    return versions


def posted(nodes, number, version, name, at=POSTED):
    nodes.disks[number].post(version, colour(name, at))
    nodes.gateways[number].enqueue_renewals([(version, '7')])


def colours(nodes):
    """What a restore would find."""
    gateway = nodes.gateways[1]
    entries = list(Catalog(gateway.parts.conf, gateway.parts.client).walk())
    assert all(isinstance(entry, Held) for entry in entries), entries
    return {entry.name: entry.record.metadata.get('X-Object-Meta-Colour')
            for entry in entries}


def beside(nodes):
    return [key for key in nodes.s3.keys if '.since' in key]


def test_a_post_reaches_the_bucket_when_the_packer_has_lost_the_replica(
        nodes):
    versions = moved(nodes)
    posted(nodes, 1, versions[0], 'blue')
    nodes.run(1500, 20.0)
    assert colours(nodes)['/a/c/o0'] == 'blue'
    posted(nodes, 1, versions[0], 'green', LATER)
    posted(nodes, 1, versions[1], 'red')
    nodes.run(1500, 20.0)
    assert colours(nodes) == dict.fromkeys(
        ('/a/c/' + name for name in NAMES), None) | {
            '/a/c/o0': 'green', '/a/c/o1': 'red'}
    assert len(beside(nodes)) == 1


def test_what_the_packer_says_is_said_once(nodes):
    versions = packed(nodes)
    for number in (0, 1):
        posted(nodes, number, versions[0], 'blue')
    nodes.run(3000, 20.0)
    assert beside(nodes) == [nodes.bundles()[0] + '.since']
    assert colours(nodes)['/a/c/o0'] == 'blue'


def test_two_that_say_of_one_bundle_take_nothing_back(nodes):
    """Neither of two writers has read what the other one writes."""
    versions = packed(nodes)
    posted(nodes, 0, versions[1], 'red')
    nodes.run(1500, 20.0)
    nodes.disks[0].unlink(versions[0])
    posted(nodes, 1, versions[0], 'blue')
    nodes.run(1500, 20.0)
    # The packer has another one to tell of, and knows nothing of the first.
    posted(nodes, 0, versions[2], 'green')
    nodes.run(1500, 20.0)
    assert len(beside(nodes)) == 2
    shown = colours(nodes)
    assert [shown['/a/c/o%d' % number] for number in range(3)] == [
        'blue', 'red', 'green']


def test_a_bundle_that_is_written_anew_takes_along_what_others_said(nodes):
    versions = packed(nodes)
    old, = nodes.bundles()
    nodes.disks[1].post(versions[0], colour('blue'))
    nodes.gateways[1].enqueue_renewals([(versions[0], '7')])
    nodes.run(1500, 20.0)
    for version in versions[3:]:
        nodes.delete(version)
    nodes.run(300)
    assert old not in nodes.bundles() and len(nodes.bundles()) == 1
    nodes.run(3000, 20.0)
    assert colours(nodes)['/a/c/o0'] == 'blue'
    # With the bundle goes what lay beside it.
    assert not any(key.startswith(old) for key in nodes.s3.keys)


def test_what_was_said_of_the_old_bundle_is_said_of_the_new_one(nodes):
    """The one who wrote it anew had not heard of it yet."""
    versions = packed(nodes)
    for version in versions[3:]:
        nodes.delete(version)
    say = nodes.gateways[1].parts.bundles.renewer.run
    nodes.gateways[1].parts.bundles.renewer.run = lambda: None
    posted(nodes, 1, versions[0], 'blue')
    nodes.run(300)
    book = nodes.gateways[1].parts.book
    for version, _, not_before in book.due_renewals(nodes.now, 100):
        book.finish_renewal(version, not_before)
    assert not book.renewals()
    nodes.gateways[1].parts.bundles.renewer.run = say
    assert colours(nodes)['/a/c/o0'] is None
    for version in versions[2:3]:
        nodes.delete(version)
    nodes.run(3000, 20.0)
    assert nodes.keys(1, versions[:2]) == set(nodes.bundles())
    assert colours(nodes)['/a/c/o0'] == 'blue'


def test_a_collector_tells_at_once_and_takes_nothing_back(nodes):
    """A keeper may live that writes what lies beside the bundle, too."""
    versions = moved(nodes)
    key, = nodes.bundles()
    nodes.disks[1].tombstone(versions[0], NEW)
    assert nodes.gateways[1].collect(ALL).members == 1
    assert set(colours(nodes)) == {'/a/c/' + name for name in NAMES[1:]}
    keeper = nodes.gateways[0].parts
    member, where = keeper.book.find(versions[5].key)
    nodes.s3.keys[key + '.since'] = since.encode(
        since.Since({member.number}), keeper.bundles.packer.wrap(where)), {}
    nodes.disks[1].tombstone(versions[1], NEW)
    nodes.gateways[1].collect(ALL)
    assert len(colours(nodes)) == 3
    for version in versions[2:]:
        nodes.disks[1].tombstone(version, NEW)
    nodes.gateways[1].collect(ALL)
    assert not nodes.bundles() and not beside(nodes)


def spoils(nodes, times):
    """S3 acknowledges so many notes, and stores something else."""
    put, left = nodes.s3.put_object, [times]

    def spoil(**options):
        said = put(**options)
        if '.since' in options['Key'] and left[0]:
            left[0] -= 1
            _, metadata = nodes.s3.keys[options['Key']]
            nodes.s3.keys[options['Key']] = b'spoilt', metadata
        return said

    nodes.s3.put_object = spoil
    return left


@pytest.mark.parametrize('who', ['keeper', 'other', 'collector'])
@pytest.mark.parametrize('spoilt', [1, 9])
def test_a_note_that_s3_spoils_hides_no_bundle(nodes, who, spoilt):
    """It is as it was before, until its writer comes again. Where all are
    spoilt, there was none before."""
    versions = packed(nodes) if who == 'keeper' else moved(nodes)
    number = 0 if who == 'keeper' else 1

    def change(version, name):
        if who == 'collector':
            nodes.disks[1].tombstone(version, NEW)
        else:
            posted(nodes, number, version, name)

    def work():
        nodes.run(10, 10.0)
        if who == 'collector':
            nodes.gateways[1].collect(ALL)

    if spoilt == 1:
        change(versions[0], 'red')
        for _ in range(200):
            work()
        assert len(beside(nodes)) == 1
    before = colours(nodes)
    left = spoils(nodes, spoilt)
    change(versions[3], 'blue')
    for _ in range(200):
        work()
        if left[0] < spoilt:
            break
    assert left[0] < spoilt and colours(nodes) == before
    left[0] = 0
    for _ in range(200):
        work()
    after = dict(before, **{'/a/c/o3': 'blue'})
    if who == 'collector':
        del after['/a/c/o3']
    assert colours(nodes) == after


@pytest.mark.parametrize('who', ['keeper', 'other', 'collector'])
def test_a_note_that_rots_is_written_anew_by_its_writer(nodes, who):
    versions = packed(nodes) if who == 'keeper' else moved(nodes)
    key, = nodes.bundles()
    number = 0 if who == 'keeper' else 1
    path = since.path_of(key, '' if who == 'keeper' else
                         nodes.gateways[1].parts.book.writer())
    nodes.s3.keys[path] = b'spoilt', {}
    if who == 'collector':
        nodes.gateways[1].collect(ALL)
        assert set(colours(nodes).values()) == {None}
        return
    posted(nodes, number, versions[3], 'blue')
    nodes.run(3000, 20.0)
    assert colours(nodes)['/a/c/o3'] == 'blue'


def test_a_lost_book_has_the_node_look_at_every_bundle(nodes):
    versions = packed(nodes)
    first = nodes.gateways[0]
    nodes.run(200, 20.0)
    first.parts.rounds.look()
    assert first.parts.rounds.is_reconciled
    first.stop()
    (nodes.root / '0' / 'bundles.db').unlink()
    first = nodes.gateway(0)
    for disk in nodes.disks:
        disk.tombstone(versions[0], NEW)
    assert not first.parts.rounds.is_reconciled
    nodes.run(100)
    first.parts.rounds.look()
    assert first.parts.rounds.is_reconciled
    # It keeps the bundle again, and tells of the member with its others.
    nodes.run(20)
    assert set(colours(nodes)) == {'/a/c/' + name for name in NAMES[1:]}


def test_records_of_one_version_merge_to_the_newest():
    def record(colour, at, kind=''):
        made = {'X-Timestamp': at, 'X-Object-Meta-Colour': colour,
                'name': '/a/c/o', 'Content-Type': kind or 'a/b'}
        if kind:
            made['Content-Type-Timestamp'] = at
        return {'v': 1, 'timestamp': OLD, 'metadata': made, 'map': '0-9-1'}
    blue, red = record('blue', POSTED, 'c/d'), record('red', LATER)
    for records in ((blue, red), (red, blue)):
        joined = since.join(since.Since(records={3: record})
                            for record in records)
        said = joined.records[3]['metadata']
        assert said['X-Object-Meta-Colour'] == 'red'
        assert said['Content-Type'] == 'c/d'
        assert said['name'] == '/a/c/o'


def test_what_the_bundle_says_itself_is_not_said_beside_it(nodes):
    posted_before = nodes.disks[0].put(
        'p', b'p' * 3000, OLD, class_map=SMALL, metadata=colour('blue'))
    nodes.gateways[0].enqueue_uploads(
        [Upload(posted_before, '7', True, 1)])
    nodes.put(NAMES)
    nodes.disks[1].put('p', b'p' * 3000, OLD, class_map=SMALL,
                       metadata=colour('blue'))
    nodes.gateways[1].enqueue_uploads([Upload(posted_before, '7', True, 1)])
    nodes.run(300)
    assert nodes.keys(1, [posted_before]) == set(nodes.bundles())
    nodes.gateways[1].enqueue_renewals([(posted_before, '7')])
    nodes.run(1500, 20.0)
    assert colours(nodes)['/a/c/p'] == 'blue' and not beside(nodes)


def test_what_a_third_node_has_said_is_not_said_again(nodes):
    versions = moved(nodes)
    posted(nodes, 1, versions[0], 'blue')
    nodes.run(1500, 20.0)
    path, = beside(nodes)
    nodes.s3.keys[path[:-16] + 'f' * 16] = nodes.s3.keys.pop(path)
    nodes.gateways[1].enqueue_renewals([(versions[0], '7')])
    nodes.run(1500, 20.0)
    assert beside(nodes) == [path[:-16] + 'f' * 16]


def test_a_keeper_that_missed_a_post_takes_it_from_beside_the_bundle(nodes):
    versions = packed(nodes)
    posted(nodes, 1, versions[0], 'blue')
    nodes.run(1500, 20.0)
    del nodes.gateways[1]
    for version in versions[3:]:
        nodes.delete(version)
    nodes.run(300)
    nodes.gateways[1] = nodes.gateways[0]
    assert len(nodes.bundles()) == 1 and not beside(nodes)
    assert colours(nodes)['/a/c/o0'] == 'blue'


def test_a_keeper_says_it_at_once_whatever_its_rank(nodes):
    versions = nodes.replicate(NAMES)
    nodes.run(2000, 20.0)
    shared = next(version for version in versions if nodes.disks[1].residency(
        version).remote.in_bundle)
    posted(nodes, 1, shared, 'blue')
    nodes.run(200)
    assert 'blue' in colours(nodes).values()


def test_a_book_of_the_release_before_is_no_lost_one(tmp_path):
    path = str(tmp_path / 'bundles.db')
    book = Book(path)
    assert not book.is_looked_through
    writer = book.writer()
    book.close()
    book = Book(path)
    assert book.writer() == writer and not book.is_looked_through
    book.close()
    with sqlite3.connect(path) as old:
        old.execute('DROP TABLE facts')
    old.close()
    book = Book(path)
    assert book.writer() != writer and book.is_looked_through
    book.close()
